"""A batch of workgroups in flight: its registers and memory, and its strands: threads that stand at one place of the program.

The strand that is first in block order (steps/block_order.py) runs until it meets another (they join), splits at a branch, waits
or ends. So lanes that leave a loop early wait for the others behind it, as operations across lanes expect. But a loop may wait for
what those lanes are about to do: a strand that others keep from running gets a turn, soon when they poll memory, in the end in
any case.

Under a seed the waves are parted at random, and one part runs until it can go no further, then the other: what holds only
because waves happen to step together shows then. Lanes of a wave are never parted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.sim.checks.unread import Unread
from tilefw.sim.engine import flow
from tilefw.sim.engine.frame import CompactFrame, Frame
from tilefw.sim.engine.waiting import Waiting
from tilefw.sim.floats import Array
from tilefw.sim.memory.copies import Copies
from tilefw.sim.memory.regions import Region
from tilefw.sim.program import Special
from tilefw.sim.report import Fault
from tilefw.sim.tracking.events import Events
from tilefw.sim.tracking.history import WaveHistories

# Blocks after which a strand that others keep from running gets a turn, and how many polls (atomics, strong loads) make it soon.
LONG_WAIT = 16384
SHORT_WAIT = 64
POLLS = 8


@dataclass(slots=True)
class Strand:
    """Threads at block `block`; `mask` is a full mask, None for every thread of the batch: [workgroups, waves, lanes], or
    [workgroups, waves, 1] where a program counter belongs to a wave. `stack` holds the blocks to return to; `since` and
    `polls` say when it became ready, in blocks and polls of the batch; `part` which part of the waves it belongs to under a seed,
    -1 for not sorted yet."""

    block: int
    mask: Array | None
    stack: tuple[int, ...] = ()
    since: int = -1
    polls: int = 0
    part: int = -1


class Batch:
    """Workgroups `linear` (numbers in the grid), run together."""

    def __init__(self, launch: Any, linear: Array) -> None:
        self.launch = launch
        self.linear = np.asarray(linear, dtype=np.int64)
        self.frame = Frame.of_batch(len(linear), launch.waves, launch.chip.wave_size)
        x, y, _ = launch.grid
        self.coordinates = tuple(
            part.astype(np.uint32) for part in (self.linear % x, self.linear // x % y, self.linear // (x * y))
        )
        self._regions = {
            "shared": Region(0, launch.shared_bytes, copies=len(linear), label="shared memory"),
            "param": launch.parameters,
            "const": launch.constants,
        }
        self.alive = self._first_mask()
        self.lanes_of_mask = launch.chip.wave_size // self.alive.shape[2]
        self.started = int(self.alive[0].sum()) * self.lanes_of_mask
        whole = bool(self.alive.all())
        # The part is -1 where nothing parts the waves: one part then, with one turn.
        self.strands = [Strand(0, None if whole else self.alive.copy())]
        watch_unread = launch.races is not None and "leftovers" in launch.checks and launch.shared_bytes and launch.chip.pc_per_lane
        instructions = launch.prepared.program.instructions
        self.unread = Unread(self._regions["shared"], instructions, launch.waves) if watch_unread else None
        self.copies = Copies(self)
        self.waiting = Waiting(self)
        self.events = Events(self, launch.prepared.program, launch.prepared.settling)
        follows = launch.prepared.history is not None and not launch.checks.isdisjoint(("pending", "hazards"))
        self.histories = WaveHistories(self, launch.prepared.history) if follows else None
        # Sized by the check's encoding of waves: see checks/races.py.
        waves = launch.waves if launch.races is not None else 1
        self.clocks = np.broadcast_to(np.eye(waves, dtype=np.int64), (len(linear), waves, waves)).copy()
        self.blocks_run = 0
        random = launch.random
        self._second_part = None if random is None else random.random((len(linear), launch.waves, 1)) < 0.5
        self._turn_of = -1
        self._fill_registers()  # last: a first value may be loaded from memory

    def _first_mask(self) -> Array:
        """Who begins: every thread, or every wave with all its lanes."""
        groups, waves, width = self.frame.shape
        if not self.launch.chip.pc_per_lane:
            return np.ones((groups, waves, 1), dtype=np.bool_)
        thread = self.frame.wave * width + self.frame.lane
        return np.broadcast_to(thread < self.launch.threads, self.frame.shape).copy()

    def _fill_registers(self) -> None:
        launch, frame, lanes = self.launch, self.frame, self.launch.lanes
        frame.registers += launch.first_values
        frame.poison += launch.first_poison
        frame.select_waves(None, None, frame.shape[0] * frame.shape[1])
        lanes.batch, lanes.mask, lanes.quiet = self, None, True  # no instruction runs that a check could speak of
        for register, value in launch.prepared.initial:
            if isinstance(value, Special):
                lanes.frame = frame.view if register in launch.prepared.program.wave_registers else frame
                value = value.meaning(lanes)
            frame.registers[register], frame.poison[register] = value, None
        lanes.quiet = False

    def close(self) -> None:
        """Let go of everything large at once: the parts of a batch know one another, and would wait for the collector."""
        self._regions.clear()
        self.frame.registers.clear()
        self.frame.poison.clear()
        del self.copies, self.waiting, self.unread, self.events, self.histories

    def region(self, space: str) -> Region:
        region = self._regions.get(space)
        if region is None:
            groups, waves, lanes = self.frame.shape
            region = Region(0, self.launch.local_bytes, copies=groups * waves * lanes, label="local memory")
            self._regions[space] = region
        return region

    def workgroup(self, slot: int) -> tuple[int, int, int]:
        x, y, z = self.coordinates
        return int(x[slot]), int(y[slot]), int(z[slot])

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

    def mask_of(self, strand: Strand) -> Array:
        return np.ones(self.alive.shape, dtype=np.bool_) if strand.mask is None else strand.mask

    # --- running -------------------------------------------------------------------------------------------------------

    def run(self, quantum: int) -> bool:
        """Go on for about `quantum` blocks; true when every thread has ended. Raises Fault."""
        stop = self.blocks_run + quantum
        while self.blocks_run < stop:
            if not self.strands:
                if self.waiting.empty:
                    self.copies.finish(self.launch.lanes)
                    if self.unread is not None:
                        self.unread.finish(self.launch.lanes)
                    return True
                self.waiting.report_deadlock()
                raise Fault
            strand, limit, turn = self._choose()
            self._execute(strand, limit, min(turn, stop - self.blocks_run))
        return False

    def _choose(self) -> tuple[Strand, int, int]:
        """The strand to run next, the number in block order at which it must stop to meet another, and its turn in blocks."""
        if self._second_part is not None:
            self._sort_parts(self._second_part)
        if len(self.strands) == 1:
            return self.strands.pop(), 1 << 60, 1 << 60
        self.join()
        order = self.launch.prepared.order
        polls = self.launch.lanes.polls
        for strand in self.strands:
            if strand.since < 0:
                strand.since, strand.polls = self.blocks_run, polls
        strand = min(self.strands, key=lambda s: s.since)
        wait = SHORT_WAIT if polls - strand.polls >= POLLS else LONG_WAIT
        if self.blocks_run - strand.since < wait:
            if all(s.part != self._turn_of for s in self.strands):
                self._turn_of = self.strands[0].part
            strand = min((s for s in self.strands if s.part == self._turn_of), key=lambda s: (-len(s.stack), order[s.block]))
        self.strands = [s for s in self.strands if s is not strand]
        strand.since = -1
        here = order[strand.block]
        ahead = [order[s.block] for s in self.strands if order[s.block] > here and s.part == strand.part]
        return strand, min(ahead, default=1 << 60), SHORT_WAIT if self.strands else 1 << 60

    def _sort_parts(self, second: Array) -> None:
        """Give every strand its part, cutting those that have waves of both."""
        sorted_strands: list[Strand] = []
        for strand in self.strands:
            if strand.part >= 0:
                sorted_strands.append(strand)
                continue
            mask = self.mask_of(strand)
            for part, chosen in enumerate((mask & ~second, mask & second)):
                if chosen.any():
                    whole = None if chosen.all() else chosen
                    sorted_strands.append(Strand(strand.block, whole, strand.stack, strand.since, strand.polls, part))
        self.strands = sorted_strands

    def join(self) -> None:
        """Strands at one place become one."""
        together: dict[tuple[int, tuple[int, ...], int], Strand] = {}
        for strand in self.strands:
            key = strand.block, strand.stack, strand.part
            other = together.get(key)
            if other is None:
                together[key] = strand
            else:
                mask = self.mask_of(other) | self.mask_of(strand)
                since = -1 if min(other.since, strand.since) < 0 else min(other.since, strand.since)
                whole = None if mask.all() else mask
                polls = min(other.polls, strand.polls)
                together[key] = Strand(strand.block, whole, strand.stack, since, polls, strand.part)
        self.strands = list(together.values())

    def _enter(self, strand: Strand) -> Frame:
        mask = strand.mask
        frame = self.frame
        active = merge = None
        chosen = self.alive.size
        if mask is not None:
            rows = mask.any(axis=2)
            chosen = int(mask.sum())
            everyone = bool((mask == self.alive).all())
            if not everyone and 2 * int(rows.sum()) <= rows.size:
                frame = CompactFrame(frame, rows)
                part = mask[rows][:, None, :]
                active = merge = None if part.all() else part
            else:
                active, merge = mask, None if everyone else mask
        if self.launch.chip.pc_per_lane:
            frame.select(active, merge, chosen)
        else:
            frame.select_waves(active, merge, chosen)
        lanes = self.launch.lanes
        lanes.frame, lanes.batch, lanes.mask = frame, self, frame.active
        return frame

    def _execute(self, strand: Strand, limit: int, turn: int) -> None:
        launch = self.launch
        lanes, blocks, order = launch.lanes, launch.prepared.blocks, launch.prepared.order
        frame = self._enter(strand)
        histories = self.histories
        if histories is not None:
            histories.enter(strand.mask)
        stop = self.blocks_run + turn
        try:
            while True:
                block = blocks[strand.block]
                if histories is not None:
                    histories.through(strand.block)
                frame.prepare(block.touched)
                for step in block.steps:
                    step(lanes, frame)
                self.blocks_run += 1
                launch.count(strand.block, block.size * frame.threads)
                following = strand.block + 1 if block.flow is None else flow.follow(self, strand, frame, block)
                if following is None:
                    return
                if following >= len(blocks):
                    flow.end(self, strand, frame)
                    return
                strand.block = following
                if order[following] >= limit or self.blocks_run >= stop:
                    self.strands.append(strand)
                    return
        finally:
            if histories is not None:
                histories.leave()
            frame.finish()
            self.frame.select(None, None, self.frame.threads)
