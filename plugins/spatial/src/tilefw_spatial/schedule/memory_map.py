"""Rows of slices, bank by bank: which are free, whose they were before, and how busy slices are.

Rows that nobody has had yet are taken as long as there are any that fit. Only then are the rows of all arrays that are no longer
needed free again; who gets them must wait until they have been read for the last time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilefw.api import CapacityError
from tilefw.api.integers import ceil_div, round_up
from tilefw_spatial.isa import TYPES
from tilefw_spatial.limits import SMALLER
from tilefw_spatial.machine import SIDES, Machine
from tilefw_spatial.program import RowAllocation, SliceRows
from tilefw_spatial.schedule.intervals import Span, merged
from tilefw_spatial.stream_program import Array

_LEAST_SEGMENT = 64
"""Rows of the shortest segment of an array when banks are nearly full."""

_NOBODY = -1

_Cost = Callable[[str, int], tuple[int, int]]
"""Of a slice, by its name and position: the least is best."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """`count` rows from those on."""

    rows: SliceRows
    count: int


@dataclass(frozen=True, slots=True)
class PlacedCopy:
    """A copy's allocation, the rows that it takes, and the arrays that had some of these before."""

    allocation: RowAllocation
    blocks: tuple[RowBlock, ...]
    before: frozenset[int]


def rows_of(array: Array) -> int:
    """Rows that one copy of an array takes."""
    return round_up(array.vectors, array.groups) * TYPES[array.dtype].nbytes


class MemoryMap:
    """The rows of one chip. The greater `near`, the more distance from the unit that uses an array counts against busy slices.

    Arrays of `linked`, by identity, are operands of products that go over links, which keep a slice for many cycles a row: they
    take slices cyclically, so that what has just arrived can be multiplied while the next arrives. With `times`, the cycles from
    the first to the last access of each array as an earlier schedule has them, a slice counts as busy with arrays of the same time
    alone."""

    def __init__(
        self, machine: Machine, near: int, linked: Collection[int] = (), times: Mapping[int, Span] | None = None
    ) -> None:
        self.machine, self.near, self._linked, self._times = machine, near, linked, times
        self._used_at: dict[str, list[tuple[Span, int]]] = defaultdict(list)  # by slice the times of its arrays, with their rows
        names = {side: [f"MEM.{side}{i}" for i in range(machine.slices)] for side in SIDES}
        self.slices = {side: [(name, machine.position(name)) for name in found] for side, found in names.items()}
        every = [name for found in names.values() for name in found]
        self._free: dict[str, tuple[tuple[Span, ...], ...]] = {name: (((0, machine.rows),),) * machine.banks for name in every}
        self._owners = {name: np.full((machine.banks, machine.rows), _NOBODY, np.int64) for name in every}
        self._numbers: list[int] = []  # array of an owner's number
        self._retired: list[RowBlock] = []
        self.busy: dict[str, int] = defaultdict(int)
        self._last_linked: dict[str, int] = defaultdict(int)  # the number of the last array of `linked` that a slice has

    @property
    def used(self) -> int:
        """Rows that some array has or had."""
        return sum(int(np.count_nonzero(owners != _NOBODY)) for owners in self._owners.values())

    def allocate(self, array: Array, sides: Sequence[str], unit: str, avoid: set[str]) -> PlacedCopy:
        """An allocation for one copy of an array, in the first of those hemispheres with enough free rows. Raises CapacityError."""
        for apart in dict.fromkeys((array.segment, 0)):
            rows = self._longest(ceil_div(apart or array.vectors, array.groups))
            while rows:
                found = self._first(array, rows, apart, sides, unit, avoid)
                if found is None and self._reclaim():
                    found = self._first(array, rows, apart, sides, unit, avoid)
                if found is not None:
                    return self._taken(array, *found)
                rows = rows // 2 if rows > _LEAST_SEGMENT else 0
        raise CapacityError(
            f"no slices of {self.machine.name} are left for '{array.name}', which needs {rows_of(array)} rows apart from those of "
            "the arrays that it is used with", code="TFW0690", resource="memory", needed=rows_of(array) * self.machine.lanes,
            available=self.left(), unit="bytes", help=SMALLER,
            note="a slice does one thing a cycle, and all slices of an array are on one side of the chip",
        )

    def retire(self, placed_copy: PlacedCopy) -> None:
        """What a copy has is not needed by what is placed from now on."""
        self._retired += placed_copy.blocks

    def left(self) -> int:
        """Bytes that no array has."""
        rows = sum(end - begin for banks in self._free.values() for bank in banks for begin, end in bank)
        return rows * self.machine.lanes

    def _reclaim(self) -> bool:
        """Rows of arrays that are no longer needed are free; False if there are none."""
        freed: dict[tuple[str, int], list[Span]] = defaultdict(list)
        for block in self._retired:
            freed[block.rows.slice, block.rows.bank].append((block.rows.row, block.rows.row + block.count))
        for (name, bank), spans in freed.items():
            self._set_free(name, bank, tuple(merged([*self._free[name][bank], *spans])))
        self._retired = []
        return bool(freed)

    def _set_free(self, name: str, bank: int, spans: tuple[Span, ...]) -> None:
        banks = self._free[name]
        self._free[name] = (*banks[:bank], spans, *banks[bank + 1 :])

    def _taken(self, array: Array, allocation: RowAllocation, blocks: tuple[RowBlock, ...]) -> PlacedCopy:
        """Note whose the rows are now, and whose they were."""
        before: set[int] = set()
        number = len(self._numbers)
        self._numbers.append(id(array))
        for block in blocks:
            owners = self._owned(block)
            if owners.max() != _NOBODY:
                before.update(self._numbers[owner] for owner in np.unique(owners).tolist() if owner != _NOBODY)
            owners[:] = number
        return PlacedCopy(allocation, blocks, frozenset(before))

    def _owned(self, block: RowBlock) -> NDArray[np.int64]:
        return self._owners[block.rows.slice][block.rows.bank, block.rows.row : block.rows.row + block.count]

    def _longest(self, deep: int) -> int:
        """Rows of a segment, so that as few as can be, all of one length, make `deep` rows."""
        return ceil_div(deep, max(1, ceil_div(deep, self.machine.rows)))

    def _first(
        self, array: Array, rows: int, apart: int, sides: Sequence[str], unit: str, avoid: set[str]
    ) -> tuple[RowAllocation, tuple[RowBlock, ...]] | None:
        """An allocation on the first side with enough free rows."""
        for side in sides:
            found = self._try(array, rows, apart, side, unit, avoid)
            if found is not None:
                return found
        return None

    def _try(
        self, array: Array, rows: int, apart: int, side: str, unit: str, avoid: set[str]
    ) -> tuple[RowAllocation, tuple[RowBlock, ...]] | None:
        """An allocation in one hemisphere with segments of `rows` rows; each `apart` vectors in slices of their own. Nothing is
        taken where they do not all fit."""
        width, groups = TYPES[array.dtype].nbytes, array.groups
        before, cost = dict(self._free), self._cost(array, unit)
        planes: list[list[SliceRows]] = [[] for _ in range(width)]
        blocks: list[RowBlock] = []
        own: dict[str, tuple[int, ...]] = {}
        for segment in range(ceil_div(array.vectors, rows * groups)):
            deep = min(rows, ceil_div(array.vectors - segment * rows * groups, groups))
            part = segment * rows * groups // apart if apart else 0
            for group in range(groups):
                for byte in range(width):
                    taken = self._take(deep, side, cost, avoid, own, (part, group, byte))
                    if taken is None:
                        self._free = before
                        return None
                    planes[byte].append(taken)
                    blocks.append(RowBlock(taken, deep))
        linked = id(array) in self._linked
        for block in blocks:
            self.busy[block.rows.slice] += rows * (self.machine.link_interval if linked else 1)
            if self._times is not None and id(array) in self._times:
                self._used_at[block.rows.slice].append((self._times[id(array)], rows))
            if linked:
                self._last_linked[block.rows.slice] = len(self._numbers) + 1
        return RowAllocation(array.dtype, array.vectors, tuple(map(tuple, planes)), groups, rows * groups), tuple(blocks)

    def _cost(self, array: Array, unit: str) -> _Cost:
        """How little a slice suits an array that a unit uses."""
        at, linked = self.machine.position(unit), id(array) in self._linked
        span = None if self._times is None else self._times.get(id(array))

        def cost(name: str, position: int) -> tuple[int, int]:
            busy = self.busy[name] if span is None else self._busy_at(name, span)
            return self._last_linked[name] if linked else 0, busy + self.near * abs(position - at)

        return cost

    def _busy_at(self, name: str, span: Span) -> int:
        """Rows of a slice's arrays that are accessed within a time."""
        return sum(rows for (begin, end), rows in self._used_at[name] if begin < span[1] and span[0] < end)

    def _take(
        self, rows: int, side: str, cost: _Cost, avoid: set[str], own: dict[str, tuple[int, ...]], part: tuple[int, ...]
    ) -> SliceRows | None:
        """The best slice with enough free rows. Slices of other groups and byte planes of the array itself are used at the same
        time: `own`."""
        best: tuple[tuple[int, int], str, int] | None = None
        for name, position in self.slices[side]:
            costs = cost(name, position)
            if (best is not None and costs >= best[0]) or name in avoid or own.get(name, part) != part:
                continue
            bank = self._fullest_bank(name, rows)
            if bank is not None:
                best = (costs, name, bank)
        if best is None:
            return None
        _, name, bank = best
        own[name] = part
        return SliceRows(name, bank, self._take_rows(name, bank, rows))

    def _fullest_bank(self, name: str, rows: int) -> int | None:
        """The fullest bank of a slice that has so many rows in a row."""
        best: tuple[int, int] | None = None
        for bank, spans in enumerate(self._free[name]):
            if any(end - begin >= rows for begin, end in spans):
                rows_left = sum(end - begin for begin, end in spans)
                best = min(best or (rows_left, -bank), (rows_left, -bank))
        return None if best is None else -best[1]

    def _take_rows(self, name: str, bank: int, rows: int) -> int:
        """Take so many rows of a bank; the first of them."""
        spans = self._free[name][bank]
        number = next(n for n, (begin, end) in enumerate(spans) if end - begin >= rows)
        begin, end = spans[number]
        rest = ((begin + rows, end),) if begin + rows < end else ()
        self._set_free(name, bank, (*spans[:number], *rest, *spans[number + 1 :]))
        return begin
