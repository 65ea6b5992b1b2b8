"""The executing lane algebra: integers, floats, lanes and memory over the frame that runs now."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tilefw.sim.algebra.cross_lane import CrossLanes
from tilefw.sim.algebra.engines import EngineLanes
from tilefw.sim.algebra.exact import ExactLanes
from tilefw.sim.algebra.floating import FloatLanes
from tilefw.sim.algebra.group_matrix import GroupLanes
from tilefw.sim.algebra.integer import IntegerLanes
from tilefw.sim.algebra.multicast import MulticastLanes
from tilefw.sim.algebra.shadow import ShadowLanes
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.mask_stack import MaskStack
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.matrix.group_unit import GroupUnit
from tilefw.sim.matrix.unit import MatrixUnit
from tilefw.sim.program import Instruction
from tilefw.sim.report import LaunchStopped, first_true
from tilefw.sim.tracking.polls import Poll, PolledLoads


class NumpyLanes(IntegerLanes, FloatLanes, CrossLanes, EngineLanes, GroupLanes, MulticastLanes):
    """One per launch; `frame`, `mask` and `batch` change as the engine moves on, `instruction` with each step. `strayed`: a
    register stands for another integer than it holds, as far as that is followed."""

    def __init__(self, launch: LaunchState, matrix_unit: MatrixUnit) -> None:
        self.launch = launch
        self.wave_size = launch.chip.wave_size
        self.observers, self.counters = launch.diagnostics.observers, launch.diagnostics.counters
        self.matrix_unit, self.group_unit = matrix_unit, GroupUnit(matrix_unit.hardware)
        self.mask: Array | None = None
        self.instruction: Instruction
        self.tainted = False
        self.polls = self.idle_polls = self.stores = 0
        self.vain_polls: dict[tuple[int, bytes], Poll] = {}
        self.polled_loads = PolledLoads()
        self.by_words = False
        self.quiet = False
        self.strayed = False
        self.frame: Frame
        self.batch: Batch
        self.shadow = ShadowLanes(self)

    def close(self) -> None:
        """The launch is over: drop what would otherwise live until the garbage collector comes by."""
        for name in ("batch", "frame"):
            self.__dict__.pop(name, None)
        self.vain_polls = {}
        self.group_unit.close()
        self.shadow.__dict__.clear()
        for name in ("exact", "exact_addresses"):
            if name in self.__dict__:
                self.__dict__.pop(name).__dict__.clear()

    @cached_property
    def exact(self) -> ExactLanes:
        """The algebra with exact integers, for what computes offsets."""
        return ExactLanes(self, False)

    @cached_property
    def exact_addresses(self) -> ExactLanes:
        """The same for accesses."""
        return ExactLanes(self, True)

    def locate(self, a: int, b: int, lane: int) -> tuple[tuple[int, int, int], int, int]:
        """(workgroup, wave, lane) of a position in the running frame."""
        return self.locate_in(self.frame, a, b, lane)

    def locate_in(self, frame: Frame, a: int, b: int, lane: int) -> tuple[tuple[int, int, int], int, int]:
        group = int(np.broadcast_to(frame.group, frame.shape)[a, b, lane])
        wave = int(np.broadcast_to(frame.wave, frame.shape)[a, b, lane])
        return self.batch.workgroup(group), wave, lane

    def push_mask(self, p: Array) -> None:
        masks = self._mask_stack()
        self._stop_waves(masks.full(self.frame), f"the mask stack is full: it has {self.launch.chip.mask_stack} entries")
        masks.push(self.frame, p)
        self.mask = self.frame.active

    def pop_mask(self) -> None:
        masks = self._mask_stack()
        self._stop_waves(masks.empty(self.frame), "a pop of the mask stack without a push")
        masks.pop(self.frame)
        self.mask = self.frame.active

    def _mask_stack(self) -> MaskStack:
        assert self.batch.masks is not None, f"Chip.mask_stack of {self.launch.chip.name} is 0"
        return self.batch.masks

    def _stop_waves(self, bad: Array, message: str) -> None:
        executing = self.frame.view.active
        self._stop(np.broadcast_to(bad if executing is None else bad & executing, self.frame.shape), message)

    def trap(self, message: str) -> None:
        self._stop(np.broadcast_to(np.True_ if self.mask is None else self.mask, self.frame.shape), message)

    def require(self, p: Array, message: str) -> None:
        bad = ~p if self.mask is None else ~p & self.mask
        if bad.any():
            self._stop(np.broadcast_to(bad, self.frame.shape), message)

    def _stop(self, bad: Array, message: str) -> None:
        if not bad.any():
            return
        self.launch.diagnostics.reporter.add(
            "trap", "TFW0812", message, self.instruction, count=int(bad.sum()), where=self.locate(*first_true(bad))
        )
        raise LaunchStopped
