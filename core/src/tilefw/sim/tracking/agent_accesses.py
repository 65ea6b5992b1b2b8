"""Who accessed memory that launches at once share: by granule, the last write and the reads since, as numbers of records.

A record is an access of an agent (a wave of one of the launches) in one epoch of it, by one instruction, in one scope. Many places
have the same one, so each is kept once. Reads that no order binds stand beside each other as a set, which is kept once, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.regions import Region, common_alignment

NOBODY = 0  # the number of the record, and of the set, of places that nobody has touched
_WIDEST = 16  # bytes of a granule: no lane of a chip accesses more at once


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """`site`: (number of the launch, index of the instruction). `scope`: 0 where the access is weak."""

    agent: int
    epoch: int
    site: tuple[int, int]
    scope: int


class AccessRecords:
    """Records and sets of reads by number, with the records' parts as arrays by number."""

    def __init__(self) -> None:
        self.records = [AccessRecord(0, 0, (0, 0), 0)]
        self.sets: list[tuple[int, ...]] = [()]
        self._numbers: dict[AccessRecord, int] = {}
        self._set_numbers: dict[tuple[int, ...], int] = {(): NOBODY}
        self._behind: dict[tuple[int, int], int] = {}
        self.agent, self.epoch, self.scope = (np.zeros(256, dtype=np.int64) for _ in range(3))

    def number(self, record: AccessRecord) -> int:
        """The number of a record."""
        found = self._numbers.get(record)
        if found is not None:
            return found
        number = self._numbers[record] = len(self.records)
        self.records.append(record)
        if number == len(self.agent):
            self.agent, self.epoch, self.scope = (np.concatenate([a, a]) for a in (self.agent, self.epoch, self.scope))
        self.agent[number], self.epoch[number], self.scope[number] = record.agent, record.epoch, record.scope
        return number

    def with_read(self, before: int, number: int, known: Array) -> int:
        """The set `before` with one more read, whose agent knows the others' events up to `known`. Reads that are before it are
        left out if whoever may race with them may race with it, too: who is behind it is behind them."""
        found = self._behind.get((before, number))
        if found is None:
            mine = self.records[number]
            kept = {n for n in self.sets[before] if not self._covers(mine, self.records[n], known)}
            members = tuple(sorted({*kept, number}))
            found = self._set_numbers.setdefault(members, len(self.sets))
            if found == len(self.sets):
                self.sets.append(members)
            self._behind[before, number] = found
        return found

    def _covers(self, mine: AccessRecord, other: AccessRecord, known: Array) -> bool:
        ordered = other.agent == mine.agent or known[other.agent] >= other.epoch
        return bool(ordered) and mine.scope <= other.scope

    def unordered(self, reads: int, agent: int, known: Array, scope: int, meets: Array) -> int:
        """Of a set of reads the first that a write of an agent may race with, NOBODY where there is none; `meets`: by agent, the
        least scope that has it and the writer."""
        for number in self.sets[reads]:
            one = self.records[number]
            if one.agent != agent and known[one.agent] < one.epoch and min(one.scope, scope) < meets[one.agent]:
                return number
        return NOBODY


class PlaceAccesses:
    """Of each granule of a region the number of its last write, and of the set of reads since."""

    def __init__(self, region: Region) -> None:
        self.granule = _WIDEST
        count = -(-len(region.data) // _WIDEST)
        self.writes, self.reads = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.int32)

    def granules(self, index: Array, size: int) -> Array:
        """The numbers of the granules of elements of `size` bytes at flat offsets, a row each; granules are cut where they must."""
        part = common_alignment(index, min(size & -size, self.granule))
        if part < self.granule:
            factor = self.granule // part
            self.writes, self.reads, self.granule = np.repeat(self.writes, factor), np.repeat(self.reads, factor), part
        return (index // self.granule)[:, None] + np.arange(max(1, size // self.granule))
