"""Executes a batch: chooses the divergent path to run, runs its blocks, and follows it where they lead.

The path that is first in block order (steps/block_order.py) runs until it meets another (they reconverge), splits at a branch,
waits or ends. So threads that leave a loop early wait for the others behind it, as operations across lanes expect. But a loop may
wait for what those threads are about to do: a path that others keep from running gets a time slice, at once when their atomics
change nothing, soon when they poll memory, in the end in any case.

Under a seed the waves are parted at random, and one part runs until it can go no further, then the other: what holds only
because waves happen to step together shows then. Lanes of a wave are never parted.
"""

from __future__ import annotations

import hashlib
import sys

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks import barriers
from tilefw.sim.engine import engines
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.divergence import DivergentPath
from tilefw.sim.engine.flow import Flow
from tilefw.sim.engine.frame import CompactFrame, Frame
from tilefw.sim.engine.launch import RunningLaunch
from tilefw.sim.engine.waiting import Waiting
from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction, Special
from tilefw.sim.report import LaunchStopped
from tilefw.sim.tracking.history import WaveHistories
from tilefw.sim.tracking.polls import Poll

# Blocks after which a path that others keep from running gets a time slice, and how many polls (atomics, strong loads) make it
# soon.
LONG_WAIT = 16384
SHORT_WAIT = 64
POLLS = 8
# Atomics in a row that change nothing, after which a batch lets another one in: few, as who waits for other workgroups or devices
# finds nothing new until they have had their turns.
IDLE_POLLS = 4


class Execution:
    """One batch of a launch: workgroups `workgroups` (numbers in the grid)."""

    def __init__(self, launch: RunningLaunch, workgroups: Array) -> None:
        state, prepared = launch.state, launch.prepared
        self.batch = batch = Batch(state, workgroups, prepared.settling)
        self._launch = launch
        self._lanes: NumpyLanes = launch.lanes
        self._waiting = Waiting(batch)
        self._flow = Flow(batch, prepared, launch.lanes, self._waiting)
        self._histories = None if launch.history is None else WaveHistories(batch, launch.history)
        self._blocks_run = 0
        self._last_block = state.options.beginning or sys.maxsize
        self._idle = False  # the path that ran last waits for another
        self._polls_before = self._stores_before = 0
        self._computed = False  # in this turn a path has used its time slice for something else than polls
        self.vain_polls: dict[tuple[int, bytes], Poll] = {}  # of its last turns, since it did something else
        together = max((block.gathered for block in prepared.blocks), default=0)
        # Groups of waves are neighbouring rows of a frame: where a workgroup has waves besides, only in a frame without these.
        self._waves_besides = bool(together) and state.geometry.waves % together != 0
        self._second_part: Array | None = None
        if state.schedule.random is not None:
            self._second_part = state.schedule.random.random((len(workgroups), state.geometry.waves, 1)) < 0.5
        self._scheduled_part = -1
        self._fill_registers()
        for observe in state.diagnostics.observers.begin:
            observe(batch)

    def _fill_registers(self) -> None:
        launch, frame, lanes = self._launch, self.batch.frame, self._lanes
        frame.registers += launch.first_values
        frame.poison += launch.first_poison
        frame.select_waves(None, None, frame.shape[0] * frame.shape[1])
        lanes.batch, lanes.mask, lanes.quiet = self.batch, None, True  # no instruction runs that a check could name
        for register, value in launch.prepared.initial:
            if isinstance(value, Special):
                lanes.frame = frame.view if register in launch.prepared.program.wave_registers else frame
                value = value.meaning(lanes)
            frame.registers[register], frame.poison[register] = value, None
        lanes.quiet = False

    def run(self, quantum: int) -> bool:
        """Go on for about `quantum` blocks, or until all that it does is wait; true when every thread has ended, or enough of a
        beginning has been seen. Raises Fault."""
        stop = min(self._blocks_run + quantum, self._last_block)
        lanes = self._lanes
        if not self.polled_in_vain:
            lanes.vain_polls = {}
        lanes.idle_polls, self._computed = 0, False
        self._polls_before, self._stores_before = lanes.polls, lanes.stores
        while self._blocks_run < stop and lanes.idle_polls < IDLE_POLLS:
            if self.batch.barriers_changed:
                self._waiting.holding.resume()
            if not self.batch.paths:
                if self._waiting.empty:
                    self._end()
                    return True
                if self._waiting.holding.nobody_else_goes_on():
                    continue
                barriers.report_deadlock(self.batch, self._waiting.waiting(), self._waiting.holding.waiting())
                raise LaunchStopped
            path, limit, time_slice = self._choose()
            self._execute(path, limit, min(time_slice, stop - self._blocks_run))
        engines.advance(self.batch)  # somebody may poll for what an engine writes
        self.vain_polls = lanes.vain_polls
        return self._blocks_run >= self._last_block

    @property
    def polled_in_vain(self) -> bool:
        """Whether all atomics and strong loads of its last turn were polls of memory that nobody changed, it did nothing else that
        others could see, and it ended for that."""
        lanes = self._lanes
        polls, stores = lanes.polls - self._polls_before, lanes.stores - self._stores_before
        in_vain = lanes.idle_polls >= IDLE_POLLS and polls == lanes.idle_polls
        return in_vain and bool(self.batch.paths) and not stores and not self._computed

    def state(self) -> bytes:
        """A digest of its registers and places: a batch that polls in vain and has the same one again goes round in a circle."""
        found = hashlib.blake2b(digest_size=16)
        for path in self.batch.paths:
            found.update(path.block.to_bytes(8, "little"))
        for value in self.batch.frame.registers:
            found.update(value.tobytes())
        return found.digest()

    @property
    def polls(self) -> Instruction:
        """An instruction of the block where it goes on."""
        return self._launch.prepared.blocks[self.batch.paths[0].block].instructions[-1]

    def _end(self) -> None:
        self._lanes.batch = self.batch
        self._lanes.leave_copies()
        engines.leave(self.batch)
        for observe in self._launch.state.diagnostics.observers.end:
            observe(self.batch)

    def _choose(self) -> tuple[DivergentPath, int, int]:
        """The path to run next, the number in block order at which it must stop to reconverge, and its time slice in blocks."""
        batch = self.batch
        if self._second_part is not None:
            batch.sort_parts(self._second_part)
        if len(batch.paths) == 1:
            return batch.paths.pop(), 1 << 60, 1 << 60
        batch.reconverge()
        order = self._launch.prepared.order
        polls = self._lanes.polls
        for path in batch.paths:
            if path.ready < 0:
                path.ready, path.polls = self._blocks_run, polls
        path = min(batch.paths, key=lambda p: p.ready)
        wait = SHORT_WAIT if polls - path.polls >= POLLS else LONG_WAIT
        if not self._idle and self._blocks_run - path.ready < wait:
            if all(p.part != self._scheduled_part for p in batch.paths):
                self._scheduled_part = batch.paths[0].part
            path = min((p for p in batch.paths if p.part == self._scheduled_part), key=lambda p: (-len(p.stack), order[p.block]))
        batch.paths = [p for p in batch.paths if p is not path]
        path.ready, self._idle = -1, False
        here = order[path.block]
        ahead = [order[p.block] for p in batch.paths if order[p.block] > here and p.part == path.part]
        return path, min(ahead, default=1 << 60), SHORT_WAIT if batch.paths else 1 << 60

    def _enter(self, path: DivergentPath) -> Frame:
        """The frame in which a path runs, selected."""
        batch, mask = self.batch, path.mask
        frame = batch.frame
        active = merge = None
        chosen = batch.alive.size
        if mask is not None:
            rows = np.asarray(mask.any(axis=2))
            chosen = int(mask.sum())
            everyone = bool((mask == batch.alive).all())
            if not everyone and (self._waves_besides or 2 * int(rows.sum()) <= rows.size):
                frame = CompactFrame(frame, rows)
                part = mask[rows][:, None, :]
                active = merge = None if part.all() else part
            else:
                active, merge = mask, None if everyone else mask
        if self._launch.chip.pc_per_lane:
            frame.select(active, merge, chosen)
        else:
            frame.select_waves(active, merge, chosen)
            if batch.masks is not None:
                batch.masks.select(frame)
        lanes = self._lanes
        lanes.frame, lanes.batch, lanes.mask = frame, batch, frame.active
        return frame

    def _execute(self, path: DivergentPath, limit: int, time_slice: int) -> None:
        lanes, prepared = self._lanes, self._launch.prepared
        blocks, order = prepared.blocks, prepared.order
        count, follow = self._launch.state.schedule.count, self._flow.follow
        observers = self._launch.state.diagnostics.observers.block
        if path.block >= len(blocks):  # it was let go from the last instruction
            self._flow.end(path)
            return
        frame = self._enter(path)
        histories = self._histories
        if histories is not None:
            histories.enter(path.mask)
        began, stop = self._blocks_run, self._blocks_run + time_slice
        polls = lanes.polls
        idle = max(lanes.idle_polls + 1, POLLS if self.batch.paths else IDLE_POLLS)
        try:
            while True:
                block = blocks[path.block]
                if histories is not None:
                    histories.through(path.block)
                for observe in observers:
                    observe(self.batch, block, path.mask)
                frame.prepare(block.touched)
                for step in block.steps:
                    step(lanes, frame)
                self._blocks_run += 1
                count(path.block, block.size * frame.threads)
                following = path.block + 1 if block.flow is None else follow(path, frame, block)
                if following is None:
                    return
                if following >= len(blocks):
                    self._flow.end(path)
                    return
                path.block = following
                self._idle = lanes.idle_polls >= idle
                if order[following] >= limit or self._blocks_run >= stop or self._idle:
                    self.batch.paths.append(path)
                    return
        finally:
            self._computed |= lanes.polls == polls and self._blocks_run - began >= SHORT_WAIT
            if histories is not None:
                histories.leave()
            frame.finish()
            self.batch.frame.select(None, None, self.batch.frame.threads)
