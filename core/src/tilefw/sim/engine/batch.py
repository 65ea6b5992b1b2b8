"""A batch of workgroups in flight: its registers and memory, its divergent paths, and what is unfinished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tilefw.sim.engine.divergence import DivergentPath
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.mask_stack import MaskStack
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Piece
from tilefw.sim.memory.copies import Copies
from tilefw.sim.memory.counting_barriers import BarrierWaits
from tilefw.sim.memory.engine_copies import EngineCopies
from tilefw.sim.memory.regions import Region
from tilefw.sim.memory.spaces import copies, no_space, owners_of
from tilefw.sim.tracking.events import Events
from tilefw.sim.tracking.queues import Kind


class BatchMemory:
    """The spaces of which each workgroup, wave or lane has a copy (`owners`), beside the launch's arguments and constants."""

    def __init__(self, launch: LaunchState, shape: tuple[int, int, int]) -> None:
        self._chip, self._shape = launch.chip, shape
        self._bytes = {"local": launch.memory.local_bytes, **launch.memory.spaces}
        self.owners = owners_of(launch.chip)
        self._regions = {
            "shared": Region(0, launch.memory.shared_bytes, copies=shape[0], label="shared memory"),
            "param": launch.memory.parameters,
            "const": launch.memory.constants,
        }

    def region(self, space: str) -> Region:
        """The memory of one space, the copies of all owners side by side. Raises PluginError (TFW0516)."""
        region = self._regions.get(space)
        if region is None:  # made when it is first touched
            owner = self.owners.get(space)
            if owner is None:
                raise no_space(self._chip, space)
            region = Region(0, self._bytes[space], copies=copies(owner, self._shape), label=f"{space} memory")
            self._regions[space] = region
        return region

    def __iter__(self) -> Iterator[Region]:
        """The regions that there are by now."""
        return iter(self._regions.values())

    def close(self) -> None:
        self._regions.clear()


class Batch:
    """Workgroups `workgroups` (numbers in the grid), run together.

    `frame` has the registers of all their threads. `alive` are the threads that have not ended, in the shape of masks: [workgroups,
    waves, lanes], or [workgroups, waves, 1] where a program counter belongs to a wave; `lanes_of_mask` threads share one bit of it.
    `masks` says which lanes are awake, where the chip has a mask stack. `clocks[g, w, v]` is what wave w of workgroup g knows of
    wave v's clock (checks/races.py).
    """

    def __init__(self, launch: LaunchState, workgroups: Array, settling: Sequence[Kind] = ()) -> None:
        self.launch = launch
        self.workgroups = np.asarray(workgroups, dtype=np.int64)
        geometry, ordered = launch.geometry, launch.diagnostics.observers.orders_accesses
        self.frame = Frame.of_batch(len(workgroups), geometry.waves, launch.chip.wave_size)
        x, y, _ = geometry.grid
        self.coordinates: tuple[Array, ...] = tuple(
            part.astype(np.uint32) for part in (self.workgroups % x, self.workgroups // x % y, self.workgroups // (x * y))
        )
        self.memory = BatchMemory(launch, self.frame.shape)
        self.alive = self._first_mask()
        self.lanes_of_mask = launch.chip.wave_size // self.alive.shape[2]
        self.started = int(self.alive[0].sum()) * self.lanes_of_mask
        self.paths = [DivergentPath(0, None if self.alive.all() else self.alive.copy())]
        waves = geometry.waves if ordered else 1
        self.clocks: Array = np.broadcast_to(np.eye(waves, dtype=np.int64), (len(workgroups), waves, waves)).copy()
        self.events = Events(self.frame, self.clocks if ordered else None, launch.program, settling)
        self.copies = Copies(self.frame)
        self.engines = EngineCopies(self.frame.shape[0] * self.frame.shape[1] * self.frame.shape[2])
        self.barriers_changed = False
        self.barrier_waits = BarrierWaits(self.frame.shape[0] * self.frame.shape[1] * self.frame.shape[2])
        self.asked: dict[int, list[Piece]] = {}
        # Registers of a lane of each wave, 0 where it was dealt none: now, and the fewest that it has had.
        self.registers_dealt: Array = np.zeros((2, *self.frame.shape[:2]), dtype=np.int64)
        self.met: Array = np.zeros(self.frame.shape, dtype=np.int64)
        self.masks = self._first_masks() if launch.chip.mask_stack else None

    def _first_masks(self) -> MaskStack:
        """Lanes of threads that the workgroup has are awake."""
        thread = self.frame.wave * self.frame.shape[2] + self.frame.lane
        awake = np.broadcast_to(thread < self.launch.geometry.threads, self.frame.shape)
        return MaskStack(awake, self.launch.chip.mask_stack)

    def _first_mask(self) -> Array:
        """Who begins: every thread, or every wave with all its lanes."""
        groups, waves, width = self.frame.shape
        if not self.launch.chip.pc_per_lane:
            return np.ones((groups, waves, 1), dtype=np.bool_)
        thread = self.frame.wave * width + self.frame.lane
        return np.broadcast_to(thread < self.launch.geometry.threads, self.frame.shape).copy()

    def close(self) -> None:
        """Let go of everything large."""
        self.memory.close()
        self.frame.registers.clear()
        self.frame.poison.clear()
        self.frame.held.clear()
        self.copies.close()
        self.engines.close()
        self.asked.clear()

    def workgroup(self, slot: int) -> tuple[int, int, int]:
        """The coordinates of workgroup number `slot` of the batch."""
        x, y, z = self.coordinates
        return int(x[slot]), int(y[slot]), int(z[slot])

    # --- masks ---------------------------------------------------------------------------------------------------------

    def spread(self, frame: Frame, value: Array) -> Array:
        """A value of a frame, for those whom masks are about, in the shape of the batch's masks."""
        width = self.alive.shape[2]
        if frame is self.frame:
            return np.broadcast_to(value, self.alive.shape)
        full = np.zeros(self.alive.shape, dtype=value.dtype)
        full[frame.group[:, 0, 0], frame.wave[:, 0, 0]] = np.broadcast_to(value, (*frame.shape[:2], width))[:, 0, :]
        return full

    def full_mask(self, frame: Frame, mask: Array) -> Array:
        """A mask of a frame as one of the batch."""
        full = self.spread(frame, mask)
        return full.copy() if frame is self.frame else full

    def mask_of(self, path: DivergentPath) -> Array:
        return np.ones(self.alive.shape, dtype=np.bool_) if path.mask is None else path.mask

    # --- paths ---------------------------------------------------------------------------------------------------------

    def reconverge(self) -> None:
        """Paths at one block become one."""
        together: dict[tuple[int, tuple[int, ...], int], DivergentPath] = {}
        for path in self.paths:
            key = path.block, path.stack, path.part
            other = together.get(key)
            if other is None:
                together[key] = path
                continue
            mask = self.mask_of(other) | self.mask_of(path)
            ready = -1 if min(other.ready, path.ready) < 0 else min(other.ready, path.ready)
            whole = None if mask.all() else mask
            together[key] = DivergentPath(path.block, whole, path.stack, ready, min(other.polls, path.polls), path.part)
        self.paths = list(together.values())

    def sort_parts(self, second: Array) -> None:
        """Give every path its part of the waves, 1 where `second` holds, cutting those that have waves of both."""
        found: list[DivergentPath] = []
        for path in self.paths:
            if path.part >= 0:
                found.append(path)
                continue
            mask = self.mask_of(path)
            for part, chosen in enumerate((mask & ~second, mask & second)):
                if chosen.any():
                    whole = None if chosen.all() else chosen
                    found.append(DivergentPath(path.block, whole, path.stack, path.ready, path.polls, part))
        self.paths = found
