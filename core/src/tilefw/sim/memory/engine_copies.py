"""Copies that an engine makes by itself: blocks of memory on their way, what they read and write, and what they tell when done.

A copy reads its source and writes its destination at moments that nobody knows before a wait covers them: the source is read as
late as that allows, so that whoever overwrites it too early spoils the copy. It completes on a barrier that counts bytes, or with a
group of the thread that started it. """

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.atomics import perform
from tilefw.sim.memory.landing_order import Random, landed
from tilefw.sim.memory.reductions import Reduction
from tilefw.sim.memory.regions import ELEMENTS, Region, gather, gather_poison, scatter
from tilefw.sim.program import Instruction

GRANULE = 16  # bytes: engines move shared memory in such pieces


@dataclass(slots=True)
class EngineCopy:
    """One instruction's copies, a row for each thread that started one.

    Rows have the number of their thread in the batch and of the thread's group, `clock` of its wave as it started, and elements of
    `size` bytes: byte offsets in `source` and `destination`; `inside` marks those that there are (None: all), and the others are
    `fill` where the copy is `filling`, else nothing. `barrier` is the byte offset of the barrier in `barriers` to which a row
    delivers so many `bytes`; without barriers it completes with its group. `data` and `poison` are what was read, once it was.
    `known`: of each row what its wave knew of other agents at the start, where a check keeps that (sim/memory/views).
    """

    instruction: Instruction
    thread: Array
    group: Array
    clock: Array
    size: int
    source: Region
    source_index: Array
    destination: Region
    destination_index: Array
    bytes: Array
    inside: Array | None = None
    filling: bool = False
    fill: int = 0
    barriers: Region | None = None
    barrier: Array | None = None
    reduction: Reduction | None = None
    data: Array | None = None
    poison: Array | None = None
    known: Array | None = None

    def part(self, chosen: Array) -> EngineCopy:
        """Only the chosen rows."""
        def of(rows: Array | None) -> Array | None:
            return None if rows is None else rows[chosen]

        return replace(
            self, thread=self.thread[chosen], group=self.group[chosen], clock=self.clock[chosen],
            source_index=self.source_index[chosen], destination_index=self.destination_index[chosen], bytes=self.bytes[chosen],
            inside=of(self.inside), barrier=of(self.barrier), data=of(self.data), poison=of(self.poison), known=of(self.known),
        )

    def elements(self, writes: bool) -> tuple[Array, Array]:
        """Of all elements that it reads, or where it `writes` of those that it writes, the rows and the byte offsets."""
        index = self.destination_index if writes else self.source_index
        rows = np.broadcast_to(np.arange(len(index))[:, None], index.shape)
        if self.inside is None or (writes and self.filling):
            return rows.reshape(-1), index.reshape(-1)
        return rows[self.inside], index[self.inside]

    @property
    def written(self) -> Array:
        """Byte offsets of all elements that it writes."""
        return self.destination_index.reshape(-1) if self.inside is None or self.filling else self.destination_index[self.inside]

    @property
    def read_from(self) -> Array:
        """Byte offsets of all elements that it reads."""
        return self.source_index.reshape(-1) if self.inside is None else self.source_index[self.inside]

    def read(self) -> None:
        """Read the source, once."""
        if self.data is not None:
            return
        shape, inside = self.source_index.shape, self.inside
        data = np.full(shape, np.frombuffer(self.fill.to_bytes(16, "little")[: self.size], dtype=ELEMENTS[self.size])[0])
        taken = gather(self.source, self.read_from, self.size) if self.source_index.size else data.reshape(-1)
        poison = None
        if self.source.poison is not None and self.source_index.size:
            marks = gather_poison(self.source, self.read_from, self.size)
            if marks.view(np.uint8).any():
                poison = np.zeros(shape, dtype=ELEMENTS[self.size])
                poison[... if inside is None else inside] = marks.reshape(shape) if inside is None else marks
        data[... if inside is None else inside] = taken.reshape(shape) if inside is None else taken
        self.data, self.poison = data, poison

    def write(self) -> None:
        """Write the destination, or do to it what the reduction says."""
        self.read()
        assert self.data is not None
        index, some = self.written, self.inside is not None and not self.filling
        if not len(index):
            return
        values = self.data[self.inside] if some else self.data.reshape(-1)
        poison = None if self.poison is None else self.poison[self.inside] if some else self.poison.reshape(-1)
        region, size = self.destination, self.size
        if self.reduction is not None:
            perform(region, index, size, self.reduction.op, [values], self.reduction.fmt, None)
            return
        scatter(region.data, region.view(size), index, values, size)
        if region.poison is None and poison is not None and poison.view(np.uint8).any():
            region.poison = np.zeros(len(region.data), dtype=np.uint8)
        if region.poison is not None:
            marks = np.zeros(len(index), dtype=ELEMENTS[size]) if poison is None else poison
            scatter(region.poison, region.poison_view(size), index, marks, size)


class EngineCopies:
    """The copies of one batch that are on their way, in the order of their starts.

    Of shared memory it counts, by pieces of GRANULE bytes, how many elements engines are still to read and to write there.
    """

    def __init__(self, threads: int) -> None:
        self._flying: list[EngineCopy] = []
        self._commits = np.zeros(threads, dtype=np.int64)
        self._reading: dict[int, Array] = {}
        self._writing: dict[int, Array] = {}

    @property
    def outstanding(self) -> bool:
        return bool(self._flying)

    @property
    def flying(self) -> Sequence[EngineCopy]:
        return self._flying

    def group(self, threads: Array) -> Array:
        """The number of the group that each thread fills now."""
        return self._commits[threads]

    def commit(self, threads: Array) -> None:
        self._commits[threads] += 1

    def committed(self, copy: EngineCopy) -> Array:
        """Which rows belong to a group that could have been waited for."""
        return copy.group < self._commits[copy.thread]

    def start(self, copy: EngineCopy) -> None:
        """A copy may read and write from now on."""
        _mark(self._reading, copy.source, copy.read_from, 1)
        _mark(self._writing, copy.destination, copy.written, 1)
        self._flying.append(copy)

    def being_read(self, region: Region) -> Array | None:
        """How many elements of each piece of a region engines are still to read; None: none."""
        return self._reading.get(id(region))

    def being_written(self, region: Region) -> Array | None:
        """How many elements of each piece of a region engines are still to write; None: none."""
        return self._writing.get(id(region))

    def origin(self, region: Region, offset: int, reading: bool) -> Instruction | None:
        """The instruction whose copy on its way reads or writes a byte."""
        for copy in self._flying:
            if reading and copy.data is not None:
                continue
            index = copy.read_from if reading else copy.written
            if (copy.source if reading else copy.destination) is region and ((offset - index) // copy.size == 0).any():
                return copy.instruction
        return None

    def read_up_to(self, threads: Array, pending: int) -> None:
        """All but the `pending` newest groups of these threads have read their sources."""
        limit = self._limit(threads, pending)
        rest: list[EngineCopy] = []
        for copy in self._flying:
            done = self._of_groups(copy, limit)
            if copy.data is not None or not done.any():
                rest.append(copy)
                continue
            parts = [copy] if done.all() else [copy.part(done), copy.part(~done)]
            _mark(self._reading, copy.source, parts[0].read_from, -1)
            parts[0].read()
            rest += parts
        self._flying = rest

    def finish_up_to(self, threads: Array, pending: int, random: Random) -> list[EngineCopy]:
        """All but the `pending` newest groups of these threads are done; gives their copies in the order of their ends."""
        limit = self._limit(threads, pending)
        return self.finish(lambda copy: self._of_groups(copy, limit), random)

    def _limit(self, threads: Array, pending: int) -> Array:
        limit = np.full(len(self._commits), -1, dtype=np.int64)
        limit[threads] = self._commits[threads] - pending
        return limit

    @staticmethod
    def _of_groups(copy: EngineCopy, limit: Array) -> Array:
        if copy.barriers is not None:
            return np.zeros(len(copy.thread), dtype=np.bool_)
        return copy.group < limit[copy.thread]

    def finish(self, finished: Callable[[EngineCopy], Array], random: Random) -> list[EngineCopy]:
        """Those rows are done: in the order of their starts, or in one that the seed permutes."""
        landing, self._flying = landed(self._flying, finished, random)
        for copy in landing:
            if copy.data is None:
                _mark(self._reading, copy.source, copy.read_from, -1)
            copy.write()
            _mark(self._writing, copy.destination, copy.written, -1)
        return landing

    def close(self) -> None:
        self._flying = []
        self._reading.clear()
        self._writing.clear()


def _mark(marks: dict[int, Array], region: Region, index: Array, amount: int) -> None:
    if region.base or not len(index):
        return
    counts = marks.get(id(region))
    if counts is None:
        counts = marks[id(region)] = np.zeros(len(region.data) // GRANULE + 1, dtype=np.int32)
    np.add.at(counts, index // GRANULE, amount)  # rows of several threads may have one place
