"""A batch of workgroups in flight: its registers and memory, and its strands: threads that stand at one place of the program.

The strand at the lowest place runs until it meets another (they join), splits at a branch, waits or ends. So lanes that leave a
loop early wait for the others behind it, as operations across lanes expect. But a loop may wait for what those lanes
are about to do: a strand that others keep from running gets a turn, soon when they poll memory, in the end in any case.

Under a seed the waves are parted at random, and one part runs until it can go no further, then the other: what holds only
because waves happen to step together shows then. Lanes of a wave are never parted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.sim import flow
from tilefw.sim.checks.unread import Unread
from tilefw.sim.copies import Copies
from tilefw.sim.floats import Array
from tilefw.sim.frame import CompactFrame, Frame, all_ones, zeros
from tilefw.sim.memory import Region
from tilefw.sim.report import Fault
from tilefw.sim.waiting import Waiting

# Blocks after which a strand that others keep from running gets a turn, and how many polls (atomics, strong loads) make it soon.
LONG_WAIT = 16384
SHORT_WAIT = 64
POLLS = 8


@dataclass(slots=True)
class Strand:
    """Threads at block `block`; `mask` is a full [workgroups, waves, lanes] mask, None for every thread of the batch.
    `stack` holds the blocks to return to; `since` and `polls` say when it became ready, in blocks and polls of the batch;
    `part` which part of the waves it belongs to under a seed, -1 for not sorted yet."""

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
        self._fill_registers()
        self.alive = np.broadcast_to(
            (self.frame.wave * launch.chip.wave_size + self.frame.lane) < launch.threads, self.frame.shape
        ).copy()
        whole = bool(self.alive.all())
        # The part is -1 where nothing parts the waves: one part then, with one turn.
        self.strands = [Strand(0, None if whole else self.alive.copy())]
        watch_unread = launch.races is not None and "leftovers" in launch.checks and launch.shared_bytes
        instructions = launch.prepared.program.instructions
        self.unread = Unread(self._regions["shared"], instructions, launch.waves) if watch_unread else None
        self.copies = Copies(self)
        self.waiting = Waiting(self)
        # Sized by the check's encoding of waves: see checks/races.py.
        waves = launch.waves if launch.races is not None else 1
        self.clocks = np.broadcast_to(np.eye(waves, dtype=np.int64), (len(linear), waves, waves)).copy()
        self.blocks_run = 0
        random = launch.random
        self._second_part = None if random is None else random.random((len(linear), launch.waves, 1)) < 0.5
        self._turn_of = -1

    def _fill_registers(self) -> None:
        prepared, frame = self.launch.prepared, self.frame
        declared = len(prepared.program.registers)
        for slot, bits in enumerate(prepared.slot_bits):
            value = prepared.constants.get(slot)
            frame.registers.append(zeros(bits) if value is None else value)
            undefined = self.launch.track_poison and slot < declared
            frame.poison.append(all_ones(frame.registers[-1]) if undefined else None)

    def close(self) -> None:
        """Let go of everything large at once: the parts of a batch know one another, and would wait for the collector."""
        self._regions.clear()
        self.frame.registers.clear()
        self.frame.poison.clear()
        del self.copies, self.waiting, self.unread

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

    def full_mask(self, frame: Frame, mask: Array) -> Array:
        """A mask of a frame as one of the batch."""
        if frame is self.frame:
            return np.broadcast_to(mask, frame.shape).copy()
        full = np.zeros(self.frame.shape, dtype=np.bool_)
        full[frame.group[:, 0, 0], frame.wave[:, 0, 0]] = np.broadcast_to(mask, frame.shape)[:, 0, :]
        return full

    def mask_of(self, strand: Strand) -> Array:
        return np.ones(self.frame.shape, dtype=np.bool_) if strand.mask is None else strand.mask

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
        """The strand to run next, the block at which it must stop to meet another, and its turn in blocks."""
        if self._second_part is not None:
            self._sort_parts(self._second_part)
        if len(self.strands) == 1:
            return self.strands.pop(), 1 << 60, 1 << 60
        self.join()
        polls = self.launch.lanes.polls
        for strand in self.strands:
            if strand.since < 0:
                strand.since, strand.polls = self.blocks_run, polls
        strand = min(self.strands, key=lambda s: s.since)
        wait = SHORT_WAIT if polls - strand.polls >= POLLS else LONG_WAIT
        if self.blocks_run - strand.since < wait:
            if all(s.part != self._turn_of for s in self.strands):
                self._turn_of = self.strands[0].part
            strand = min((s for s in self.strands if s.part == self._turn_of), key=lambda s: (-len(s.stack), s.block))
        self.strands = [s for s in self.strands if s is not strand]
        strand.since = -1
        ahead = [s.block for s in self.strands if s.block > strand.block and s.part == strand.part]
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
        if mask is not None:
            rows = mask.any(axis=2)
            everyone = bool((mask == self.alive).all())
            if not everyone and 2 * int(rows.sum()) <= rows.size:
                frame = CompactFrame(frame, rows)
                chosen = mask[rows][:, None, :]
                frame.active = frame.merge = None if chosen.all() else chosen
            else:
                frame.active, frame.merge = mask, None if everyone else mask
            frame.threads = int(mask.sum())
        else:
            frame.threads = mask_size(frame)
        lanes = self.launch.lanes
        lanes.frame, lanes.batch, lanes.mask = frame, self, frame.active
        return frame

    def _execute(self, strand: Strand, limit: int, turn: int) -> None:
        launch = self.launch
        lanes, blocks = launch.lanes, launch.prepared.blocks
        frame = self._enter(strand)
        stop = self.blocks_run + turn
        try:
            while True:
                block = blocks[strand.block]
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
                if following >= limit or self.blocks_run >= stop:
                    self.strands.append(strand)
                    return
        finally:
            frame.finish()
            self.frame.active = self.frame.merge = None


def mask_size(frame: Frame) -> int:
    groups, waves, lanes = frame.shape
    return groups * waves * lanes
