"""Threads that wait at barriers, who releases them, and the report when nobody can.

The common case, every living thread of the batch at one barrier, needs none of this state: it passes at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.divergence import DivergentPath
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.gathering import Gathering
from tilefw.sim.engine.holding import Holding
from tilefw.sim.floats import Array
from tilefw.sim.program import Barrier, Instruction
from tilefw.sim.steps.careful import write_register
from tilefw.sim.steps.prepare import PreparedBlock


@dataclass(slots=True)
class _Arrival:
    """Threads `mask` that have arrived with `instruction`; those that `waits` go on at block `following`."""

    number: int
    mask: Array
    instruction: Instruction
    following: int
    stack: tuple[int, ...]
    expected: int | None
    members: Array | None
    waits: bool
    predicate: Array | None
    destination: int | None


class Waiting:
    """Arrivals of one batch that are not released yet."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._observers, self._counters = batch.launch.diagnostics.observers, batch.launch.diagnostics.counters
        self._arrivals: list[_Arrival] = []
        self.gathering = Gathering(batch)
        self.holding = Holding(batch)
        self._settle_in = 1
        self._settle_step = 1

    @property
    def empty(self) -> bool:
        return self.gathering.empty and self.holding.empty and not any(a.waits for a in self._arrivals)

    def waiting(self) -> list[tuple[Instruction, int, Array]]:
        """Who waits: at which instruction, on which barrier (-1: on lanes of the wave, -2: on waves of the group), and the
        threads."""
        meetings = [(instruction, -2, mask) for instruction, mask in self.gathering.waiting()]
        return [(a.instruction, a.number, a.mask) for a in self._arrivals if a.waits] + meetings

    def arrive(self, path: DivergentPath, frame: Frame, block: PreparedBlock, flow: Barrier) -> int | None:
        """A path comes to a barrier; the next block when it passes at once."""
        batch = self._batch
        mask = batch.mask_of(path)
        if flow.scope == "workgroup" and not self._arrivals and not flow.counted and flow.reduce is None and flow.action == "sync":
            number = frame.registers[block.flow_sources[0]]
            if number.size == 1 and (path.mask is None or (mask == batch.alive).all()):
                self._passed_by_all()
                return path.block + 1
        for observe in self._observers.arrived if flow.aligned else ():
            observe(batch, mask, block.flow)
        values = [batch.spread(frame, frame.registers[s]) for s in block.flow_sources]
        if flow.scope == "wave":
            self._arrive_wave(path, block, mask, values[0])
        else:
            self._arrive_workgroup(path, block, mask, values, flow)
        if flow.action == "arrive":
            self.recheck()
            return path.block + 1
        frame.finish()
        self.recheck()
        return None

    def _arrive_wave(self, path: DivergentPath, block: PreparedBlock, mask: Array, members: Array) -> None:
        assert block.flow is not None
        self._arrivals.append(
            _Arrival(-1, mask, block.flow, path.block + 1, path.stack, None, members.copy(), True, None, None)
        )

    def _arrive_workgroup(self, path: DivergentPath, block: PreparedBlock, mask: Array, values: list[Array], flow: Barrier) -> None:
        assert block.flow is not None
        counts = values[1] if flow.counted else None
        if counts is not None and flow.counts == "waves":
            counts = counts * self._batch.frame.shape[2]
        predicate = values[-1].copy() if flow.reduce is not None else None
        destination = block.flow_destinations[0] if flow.reduce is not None else None
        for number in np.unique(values[0][mask]).tolist():
            part = mask & (values[0] == number)
            sizes = [None] if counts is None else np.unique(counts[part]).tolist()
            for size in sizes:
                chosen = part if size is None else part & (counts == size)
                self._arrivals.append(_Arrival(
                    int(number), chosen, block.flow, path.block + 1, path.stack, size, None, flow.action == "sync", predicate,
                    destination,
                ))

    def _passed_by_all(self) -> None:
        batch = self._batch
        self._counters.add("barriers", int(batch.alive.any(axis=(1, 2)).sum()))
        for observe in self._observers.barrier_all:
            observe(batch)
        self._settle_in -= 1
        if not self._settle_in:
            # Looking whether all of shared memory is written costs a pass over it: ever more rarely.
            batch.memory.region("shared").settle()
            self._settle_step *= 2
            self._settle_in = self._settle_step

    def recheck(self) -> None:
        """Release every barrier that is complete."""
        if not self._arrivals:
            return
        for number in sorted({a.number for a in self._arrivals}):
            if number < 0:
                self._release_waves()
            else:
                self._release_workgroups(number)
        self._arrivals = [a for a in self._arrivals if a.mask.any()]

    def _release_workgroups(self, number: int) -> None:
        batch = self._batch
        arrivals = [a for a in self._arrivals if a.number == number]
        present = np.zeros(batch.alive.shape, dtype=np.bool_)
        expected = np.zeros(len(present), dtype=np.int64)
        for arrival in arrivals:
            present |= arrival.mask
            if arrival.expected is not None:
                expected = np.maximum(expected, np.where(arrival.mask.any(axis=(1, 2)), arrival.expected, 0))
        # Counts are in whole waves: a wave that has arrived in part counts whole.
        counted = present.any(axis=2).sum(axis=1) * batch.frame.shape[2] >= expected
        complete = np.where(expected > 0, counted, (present == batch.alive).all(axis=(1, 2))) & present.any(axis=(1, 2))
        if complete.any():
            self._release(arrivals, present & complete[:, None, None], np.nonzero(complete)[0])

    def _release(self, arrivals: list[_Arrival], only: Array, slots: Array) -> None:
        batch = self._batch
        self._counters.add("barriers", len(slots))
        for observe in self._observers.barrier:
            for slot in slots.tolist():
                observe(batch, slot, np.nonzero(only[slot].any(axis=1))[0])
        ones, count = _reduced(arrivals, only)
        for arrival in arrivals:
            freed = arrival.mask & only
            if not freed.any():
                continue
            arrival.mask = arrival.mask & ~only
            if arrival.destination is not None:
                self._give(arrival, freed, ones, count)
            if arrival.waits:
                self._free(arrival, freed)
        batch.reconverge()

    def _give(self, arrival: _Arrival, freed: Array, ones: Array, count: Array) -> None:
        flow = arrival.instruction.flow
        assert isinstance(flow, Barrier) and flow.reduce is not None
        value = {"popc": ones.astype(np.uint32), "and": ones == count, "or": ones > 0}[flow.reduce]
        frame = self._batch.frame
        assert arrival.destination is not None
        write_register(frame, arrival.destination, value, None, freed)

    def _free(self, arrival: _Arrival, freed: Array) -> None:
        self._batch.paths.append(DivergentPath(arrival.following, None if freed.all() else freed, arrival.stack))

    def _release_waves(self) -> None:
        batch = self._batch
        arrivals = [a for a in self._arrivals if a.number < 0]
        present = np.zeros(batch.alive.shape, dtype=np.bool_)
        for arrival in arrivals:
            present |= arrival.mask
        bit = np.uint32(1) << (batch.frame.lane.astype(np.uint32) & np.uint32(31))
        words = (present * bit).sum(axis=2, dtype=np.uint32)[:, :, None]
        alive = (batch.alive * bit).sum(axis=2, dtype=np.uint32)[:, :, None]
        for arrival in arrivals:
            assert arrival.members is not None
            needed = arrival.members & alive
            freed = arrival.mask & ((needed & words) == needed)
            if freed.any():
                arrival.mask = arrival.mask & ~freed
                self._free(arrival, freed)


def _reduced(arrivals: list[_Arrival], only: Array) -> tuple[Array, Array]:
    """By workgroup: how many predicates hold, of how many, among the participants of a reducing barrier."""
    ones = count = np.zeros((len(only), 1, 1), dtype=np.int64)
    for arrival in arrivals:
        if arrival.predicate is not None:
            taking_part = arrival.mask & only
            ones = ones + (arrival.predicate & taking_part).sum(axis=(1, 2), keepdims=True)
            count = count + taking_part.sum(axis=(1, 2), keepdims=True)
    return ones, count
