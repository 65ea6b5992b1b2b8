"""The executing lane algebra: integers, floats, lanes and memory over the frame that runs now."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.sim.algebra.cross_lane import CrossLanes
from tilefw.sim.algebra.floating import FloatLanes
from tilefw.sim.algebra.integer import IntegerLanes
from tilefw.sim.algebra.memory import MemoryLanes
from tilefw.sim.algebra.shadow import ShadowLanes
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.report import Fault, first_true


class NumpyLanes(IntegerLanes, FloatLanes, CrossLanes, MemoryLanes):
    """One per launch; `frame`, `mask` and `batch` change as the engine moves on, `instruction` with each step."""

    def __init__(self, launch: Any) -> None:
        self.launch = launch
        self.wave_size = launch.chip.wave_size
        self.matrix_unit = launch.matrix_unit
        self.mask: Array | None = None
        self.instruction: Any = None
        self.tainted = False
        self.polls = 0
        self.quiet = False
        self.silent = False
        self.frame: Frame
        self.batch: Any = None
        self.shadow = ShadowLanes(self)

    def close(self) -> None:
        """The launch is over: drop what would otherwise live until the garbage collector comes by."""
        self.batch = self.launch.memory.reservations = None
        self.__dict__.pop("frame", None)
        self.shadow.__dict__.clear()

    def locate(self, a: int, b: int, lane: int) -> tuple[tuple[int, int, int], int, int]:
        """(workgroup, wave, lane) of a position in the running frame."""
        return self.locate_in(self.frame, a, b, lane)

    def locate_in(self, frame: Frame, a: int, b: int, lane: int) -> tuple[tuple[int, int, int], int, int]:
        group = int(np.broadcast_to(frame.group, frame.shape)[a, b, lane])
        wave = int(np.broadcast_to(frame.wave, frame.shape)[a, b, lane])
        return self.batch.workgroup(group), wave, lane

    def trap(self, message: str) -> None:
        self._stop(np.broadcast_to(np.True_ if self.mask is None else self.mask, self.frame.shape), message)

    def require(self, p: Array, message: str) -> None:
        bad = ~p if self.mask is None else ~p & self.mask
        if bad.any():
            self._stop(np.broadcast_to(bad, self.frame.shape), message)

    def _stop(self, bad: Array, message: str) -> None:
        if not bad.any():
            return
        self.launch.reporter.add(
            "trap", "TFW0812", message, self.instruction, count=int(bad.sum()), where=self.locate(*first_true(bad))
        )
        raise Fault
