"""Who accessed memory that launches at once share: by granule, the last write and the reads since, as numbers of records.

A record is an access of an agent (a wave of one of the launches) in one epoch of it, by one instruction, in one scope. Many places
have the same one, so each is kept once. Reads that no order binds stand beside each other as a set, which is kept once, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.regions import Region, common_alignment

NOBODY = 0  # the number of the record, and of the set, of places that nobody has touched
_FEW_SETS = 1 << 12  # so many are kept before those that no place has any more are looked for
_WIDEST = 16  # bytes of a granule: no lane of a chip accesses more at once


Site = tuple[int, int]
"""The number of the launch's first agent, and the index of the instruction."""


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """`scope`: 0 where the access is weak. `element`: the bytes that an atomic takes as one, 0 of others."""

    agent: int
    epoch: int
    site: Site
    scope: int
    element: int = 0


@dataclass(slots=True)
class _Newest:
    """Of accesses at one site in one scope the newest record of each agent of the launch, and its epoch (0: none)."""

    site: int
    epochs: Array
    numbers: Array

    def grow(self, agents: int) -> None:
        more = max(0, agents - len(self.epochs))
        self.epochs, self.numbers = (np.concatenate([part, np.zeros(more, np.int64)]) for part in (self.epochs, self.numbers))


class AccessRecords:
    """Records and sets of reads by number: the parts of records are arrays by number, a set has its records' numbers, rising."""

    def __init__(self) -> None:
        self.sets: list[Array] = [np.zeros(0, np.int32)]
        self.agent, self.epoch, self.scope, self.element, self._site = (np.zeros(256, dtype=np.int64) for _ in range(5))
        self._count = 1
        self._sites: list[Site] = []
        self._newest: dict[tuple[Site, int, bool], _Newest] = {}
        self._set_numbers: dict[bytes, int] = {b"": NOBODY}
        self._behind: dict[tuple[int, bytes], int] = {}
        self._most_sets = _FEW_SETS

    def sweep(self, places: Sequence[PlaceAccesses]) -> None:
        """Let go of sets of reads that none of these places, which are all, has, once there are twice as many as were left last."""
        if len(self.sets) <= self._most_sets:
            return
        held = np.zeros(len(self.sets), np.bool_)
        held[NOBODY] = True
        for one in places:
            held[one.reads] = True
        numbers = np.cumsum(held, dtype=np.int32) - 1
        self.sets = [self.sets[number] for number in np.flatnonzero(held).tolist()]
        self._set_numbers = {members.tobytes(): number for number, members in enumerate(self.sets)}
        self._behind.clear()
        for one in places:
            one.reads = numbers[one.reads]
        self._most_sets = max(_FEW_SETS, 2 * len(self.sets))

    def record(self, number: int) -> AccessRecord:
        """A record by its number."""
        site = self._sites[self._site[number]]
        return AccessRecord(
            int(self.agent[number]), int(self.epoch[number]), site, int(self.scope[number]), int(self.element[number])
        )

    def numbers(
        self, agents: Array, epochs: Array, site: Site, scope: int, element: int = 0, *, flying: bool = False
    ) -> Array:
        """The numbers of records of agents, each once, that make one access at a site, in epochs that are no earlier than those of
        their accesses before; `flying`: it is not finished, and its epoch one that nobody gets to know."""
        newest = self._newest.get((site, scope, flying))
        if newest is None:
            newest = self._newest[site, scope, flying] = _Newest(len(self._sites), np.zeros(0, np.int64), np.zeros(0, np.int64))
            self._sites.append(site)
        at = agents - site[0]
        most = int(at.max()) + 1
        if most > len(newest.epochs):
            newest.grow(most)
        new = np.flatnonzero(newest.epochs[at] != epochs)
        if len(new):
            numbers = self._more(len(new))
            self.agent[numbers], self.epoch[numbers] = agents[new], epochs[new]
            self.scope[numbers], self.element[numbers], self._site[numbers] = scope, element, newest.site
            newest.epochs[at[new]], newest.numbers[at[new]] = epochs[new], numbers
        return newest.numbers[at]

    def _more(self, count: int) -> Array:
        """So many new numbers."""
        first, self._count = self._count, self._count + count
        while self._count > len(self.agent):
            parts = self.agent, self.epoch, self.scope, self.element, self._site
            self.agent, self.epoch, self.scope, self.element, self._site = (
                np.concatenate([part, np.zeros_like(part)]) for part in parts
            )
        return np.arange(first, self._count)

    def with_reads(self, before: int, numbers: Array, known: Array) -> int:
        """The set `before` with more reads (rising numbers) of different agents, `known[a, b]`: up to which of b's events a knows.
        Reads that are before one of them are left out if whoever may race with them may race with that one, too: who is behind it
        is behind them."""
        key = before, numbers.tobytes()
        found = self._behind.get(key)
        if found is None:
            members = numbers.astype(np.int32)
            if before != NOBODY:
                old = self.sets[before]
                members = np.sort(np.concatenate([old[~self._covered(old, numbers, known)], members]))
            found = self._set_numbers.setdefault(members.tobytes(), len(self.sets))
            if found == len(self.sets):
                self.sets.append(members)
            self._behind[key] = found
        return found

    def _covered(self, members: Array, numbers: Array, known: Array) -> Array:
        """Which members are before one of the records that may race with whoever they may: a weak one, or their own agent's in no
        wider a scope. A strong one of another agent meets other writers than they do, and does not race with those."""
        mine, others = self.agent[numbers][:, None], self.agent[members]
        scope, own = self.scope[numbers][:, None], mine == others
        weak = (scope == 0) & (known[mine, others] >= self.epoch[members])
        return (weak | own & (scope <= self.scope[members])).any(axis=0)

    def unordered(self, reads: int, agent: int, known: Array, scope: int, meets: Array) -> int:
        """Of a set of reads the first that a write of an agent may race with, NOBODY where there is none; `meets`: by agent, the
        least scope that has it and the writer."""
        members = self.sets[reads]
        others = self.agent[members]
        racing = (others != agent) & (known[others] < self.epoch[members])
        racing &= np.minimum(self.scope[members], scope) < meets[others]
        return int(members[np.argmax(racing)]) if racing.any() else NOBODY


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


class ReadGroups:
    """The reads of one access by granule: granules that have the same set of earlier reads, and are read by the same records, are
    one group."""

    def __init__(self, granules: Array, numbers: Array, reads: Array) -> None:
        """`granules` and `numbers` by lane and part, `reads`: of all granules the number of the set."""
        base = int(granules.min())
        keys = np.sort((granules - base << 32 | numbers[:, None]).reshape(-1))
        keys = keys[_starts(keys)]
        places, self._numbers = (keys >> 32) + base, keys & 0xFFFFFFFF
        self._starts = np.flatnonzero(_starts(places))
        self._lengths = np.diff(self._starts, append=len(places))
        self.granules = places[self._starts]
        self._before = reads[self.granules]
        self._first, self._inverse = self._alike()

    def _alike(self) -> tuple[Array, Array]:
        """One granule of each group, and by granule the number of its group. Equal sums of mixed numbers tell a group; that its
        members are equal is looked at, too."""
        mixed = self._numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        sums = np.add.reduceat(mixed * np.uint64(0xBF58476D1CE4E5B9), self._starts)
        sums += self._before.astype(np.uint64) * np.uint64(0x94D049BB133111EB)
        starts = _starts(sums)  # neighbours mostly are of one group
        runs = np.flatnonzero(starts)
        _, one, inverse = np.unique(sums[runs], return_index=True, return_inverse=True)
        one, inverse = runs[one], inverse[np.cumsum(starts) - 1]
        other = one[inverse]
        if np.array_equal(self._lengths[other], self._lengths) and np.array_equal(self._before[other], self._before):
            moved = np.repeat(self._starts[other] - self._starts, self._lengths) + np.arange(len(self._numbers))
            if np.array_equal(self._numbers[moved], self._numbers):
                return one, inverse
        alone = np.arange(len(self._starts))
        return alone, alone

    def behind(self, records: AccessRecords, known: Array) -> Array:
        """By granule, the set of reads that it has now."""
        parts = (part[self._first].tolist() for part in (self._before, self._starts, self._lengths))
        found = [
            records.with_reads(before, self._numbers[start : start + length], known)
            for before, start, length in zip(*parts, strict=True)
        ]
        return np.array(found, np.int32)[self._inverse]


def _starts(values: Array) -> Array:
    """Where a value is another one than that before it."""
    found = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
