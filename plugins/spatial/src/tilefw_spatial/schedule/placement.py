"""Where arrays lie: hemispheres, slices and rows, before anything has a time.

Arrays that one sweep touches stand in different slices, as a slice does one thing a cycle. Among the slices that are left an array
takes those that are least busy and nearest to the unit that uses it. All places of an array are in one hemisphere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilefw.api import CapacityError
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import SIDES, Machine
from tilefw_spatial.program import Home, Rows
from tilefw_spatial.schedule.copies import copy_numbers
from tilefw_spatial.sweep import Array, LaneSweep, MatrixSweep, Sweep, VectorSweep, Work

NEAR = 2
"""What a position farther away costs, a cycle on the way in and one on the way out, where a busy slice costs a cycle a row."""

_LEAST_SEGMENT = 64
"""Rows of the shortest segment that an array is cut into when banks are nearly full."""


Copy = tuple[int, int]
"""An array's identity and the number of one of its copies."""


@dataclass(slots=True)
class _Needs:
    """What all sweeps together ask of one array."""

    array: Array
    copies: int = 1
    unit: str = "VXM"
    sides: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Placement:
    """Homes of arrays, by identity: one for each copy."""

    homes: dict[int, tuple[Home, ...]] = field(default_factory=dict)
    used: int = 0

    def of(self, array: Array) -> tuple[Home, ...]:
        """The copies of an array."""
        return self.homes[id(array)]


def place(work: Work, machine: Machine, near: int = NEAR) -> Placement:
    """Homes for all arrays of the work; the greater `near`, the more distance counts against busy slices. Raises CapacityError."""
    needs = _needs(work)
    rows = sum(_rows(need.array) * need.copies for need in needs.values())
    _check_capacity(rows, machine)
    together = _together(work, needs)
    sides = _sides(work, needs)
    used = rows * machine.lanes
    try:
        return Placement(_homes(list(needs), needs, together, sides, _Floor(machine, near)), used)
    except CapacityError:  # those that meet the most others first: they have the fewest slices to choose from
        hardest = sorted(needs, key=lambda key: -len(together[key, 0]))
        return Placement(_homes(hardest, needs, together, sides, _Floor(machine, near)), used)


def _homes(
    order: Sequence[int], needs: dict[int, _Needs], together: dict[Copy, set[Copy]], sides: dict[int, str], floor: _Floor
) -> dict[int, tuple[Home, ...]]:
    """A home for each copy, in slices that no copy has that is used with it. Raises CapacityError."""
    homes: dict[int, tuple[Home, ...]] = {}
    taken: dict[Copy, set[str]] = {}
    for key in order:
        need = needs[key]
        own: set[str] = set()
        copies: list[Home] = []
        for number, side in enumerate(_copy_sides(need, sides[key])):
            others = (taken[copy] for copy in together[key, number] if copy in taken)
            copies.append(floor.settle(need.array, side, need.unit, own.union(*others)))
            taken[key, number] = _slices(copies[-1])
            own |= taken[key, number]
        homes[key] = tuple(copies)
    return homes


def _check_capacity(rows: int, machine: Machine) -> None:
    needed = rows * machine.lanes
    if needed > machine.capacity:
        raise CapacityError(
            f"the arrays of this launch take {needed} bytes of memory, of which {machine.name} has {machine.capacity}",
            code="TFW0690", note="every array of a launch, inputs and results too, is on the chip from the first cycle to the last",
            help="launch on smaller arrays, or on parts of them", resource="memory", needed=needed,
            available=machine.capacity, unit="bytes",
        )


def _rows(array: Array) -> int:
    return -(-array.vectors // array.groups) * array.groups * TYPES[array.dtype].nbytes


def _slices(home: Home) -> set[str]:
    return {rows.slice for places in home.planes for rows in places}


def arrays_of(sweep: Sweep) -> list[Array]:
    """The arrays that a sweep touches, one entry a read or write."""
    match sweep:
        case VectorSweep():
            reads = [read.walk.array for read in sweep.reads[len(sweep.drains) :]]
            return reads + [write.walk.array for write in sweep.writes]
        case MatrixSweep():
            return [array for product in sweep.products for array in (product.activations.array, product.weights)]
        case LaneSweep():
            return [sweep.read.array, sweep.write.array]


def _needs(work: Work) -> dict[int, _Needs]:
    needs = {id(array): _Needs(array) for array in work.arrays}
    for sweep in work.sweeps:
        for array in arrays_of(sweep):
            need = needs.setdefault(id(array), _Needs(array))
            if isinstance(sweep, MatrixSweep):
                need.unit = f"MXM.{sweep.side or 'W'}"
                need.sides.add(sweep.side or "W")
        if isinstance(sweep, VectorSweep):
            for key, copy in _reads(sweep):
                needs[key].copies = max(needs[key].copies, copy + 1)
    for need in needs.values():
        need.copies = max(need.copies, len(need.sides))
    return {key: need for key, need in needs.items() if need.array.vectors}


def _reads(sweep: VectorSweep) -> set[Copy]:
    """The copies that a sweep reads."""
    numbered = list(zip(sweep.reads, copy_numbers(sweep), strict=True))
    return {(id(read.walk.array), copy) for read, copy in numbered[len(sweep.drains) :]}


def _together(work: Work, needs: dict[int, _Needs]) -> dict[Copy, set[Copy]]:
    """For each copy those that some sweep touches at the same time."""
    found: dict[Copy, set[Copy]] = defaultdict(set)
    for sweep in work.sweeps:
        touched = _copies(sweep, needs)
        for copy in touched:
            found[copy] |= touched
    return found


def _copies(sweep: Sweep, needs: dict[int, _Needs]) -> set[Copy]:
    """The copies that a sweep reads or writes: each read of one array its own, results all of them."""
    match sweep:
        case VectorSweep():
            return _reads(sweep) | {copy for write in sweep.writes for copy in _all(write.walk.array, needs)}
        case MatrixSweep():
            return {(id(a), needs[id(a)].copies - 1 if sweep.side == "E" else 0) for a in arrays_of(sweep)}
        case LaneSweep():
            return {(id(sweep.read.array), 0), *_all(sweep.write.array, needs)}


def _all(array: Array, needs: dict[int, _Needs]) -> set[Copy]:
    return {(id(array), number) for number in range(needs[id(array)].copies)}


def _copy_sides(need: _Needs, side: str) -> Iterator[str]:
    """The side of each copy. What both matrix units read and the host fills has a copy with each."""
    spread = len(need.sides) == len(SIDES) and need.array.role in ("in", "const", "link")
    for copy in range(need.copies):
        yield ("E" if copy == need.copies - 1 else "W") if spread else side


def _sides(work: Work, needs: dict[int, _Needs]) -> dict[int, str]:
    """A hemisphere for each array: what is asked for, else that which keeps both directions' streams evenly used."""
    sides: dict[int, str] = {}
    for sweep in work.sweeps:
        if isinstance(sweep, VectorSweep):
            _settle_sides(sweep, needs, sides)
    for key, need in needs.items():
        sides.setdefault(key, _asked(need) or "W")
    return sides


def _settle_sides(sweep: VectorSweep, needs: dict[int, _Needs], sides: dict[int, str]) -> None:
    """Sides for the arrays of a sweep that have none yet. What comes from the west takes eastward streams, as do results that go
    east; results of one step go one way."""
    load = [sum(4 for drained in sweep.drains if drained.side == side) for side in SIDES]  # bytes eastward, westward
    for group, leaves in _groups(sweep):
        asked = (side for array in group if (side := sides.get(id(array)) or _asked(needs[id(array)])))
        side = next(asked, "W" if load[leaves] <= load[not leaves] else "E")
        load[(side == "E") != leaves] += TYPES[group[0].dtype].nbytes
        for array in group:
            sides.setdefault(id(array), side)


def _groups(sweep: VectorSweep) -> Iterator[tuple[Sequence[Array], bool]]:
    """Arrays that must share a side, with whether they take results."""
    for read in sweep.reads[len(sweep.drains) :]:
        yield [read.walk.array], False
    for step in sorted({write.step for write in sweep.writes}):
        yield [write.walk.array for write in sweep.writes if write.step == step], True


def _asked(need: _Needs) -> str:
    """The side that the array itself or its only matrix unit asks for, or nothing."""
    return need.array.side or (next(iter(need.sides)) if len(need.sides) == 1 else "")


class _Floor:
    """Rows that are free, bank by bank, and how busy slices are."""

    def __init__(self, machine: Machine, near: int) -> None:
        self.machine, self.near = machine, near
        names = {side: [f"MEM.{side}{i}" for i in range(machine.slices)] for side in SIDES}
        self.slices = {side: [(name, machine.position(name)) for name in found] for side, found in names.items()}
        self.free = {name: [0] * machine.banks for found in names.values() for name in found}
        self.busy: dict[str, int] = defaultdict(int)

    def settle(self, array: Array, side: str, unit: str, avoid: set[str]) -> Home:
        """A home for one copy of an array, in that hemisphere where there is room, else in the other one."""
        for apart in dict.fromkeys((array.segment, 0)):
            rows = self._longest(-(-(apart or array.vectors) // array.groups))
            while rows:
                for where in (side, *(other for other in SIDES if other != side)):
                    home = self._try(array, rows, apart, where, unit, avoid)
                    if home is not None:
                        return home
                rows = rows // 2 if rows > _LEAST_SEGMENT else 0
        raise CapacityError(
            f"no slices of {self.machine.name} are left for '{array.name}', which needs {_rows(array)} rows apart from those of "
            "the arrays that it is used with", code="TFW0690", resource="memory", needed=_rows(array) * self.machine.lanes,
            available=self.left(), unit="bytes",
        )

    def left(self) -> int:
        """Bytes that no array has."""
        banks = (bank for slice_banks in self.free.values() for bank in slice_banks)
        return sum(self.machine.rows - bank for bank in banks) * self.machine.lanes

    def _longest(self, deep: int) -> int:
        """Rows of a segment, so that as few as can be, all of one length, make `deep` rows."""
        return -(-deep // max(1, -(-deep // self.machine.rows)))

    def _try(self, array: Array, rows: int, apart: int, side: str, unit: str, avoid: set[str]) -> Home | None:
        """Places in one hemisphere with segments of `rows` rows; each `apart` vectors in slices of their own. Nothing is taken
        where they do not all fit."""
        width, groups = TYPES[array.dtype].nbytes, array.groups
        segments = -(-array.vectors // (rows * groups))
        before = {name: list(banks) for name, banks in self.free.items()}
        planes: list[list[Rows]] = [[] for _ in range(width)]
        own: dict[str, tuple[int, ...]] = {}
        for segment in range(segments):
            deep = min(rows, -(-(array.vectors - segment * rows * groups) // groups))
            part = segment * rows * groups // apart if apart else 0
            for group in range(groups):
                for byte in range(width):
                    taken = self._take(deep, side, unit, avoid, own, (part, group, byte))
                    if taken is None:
                        self.free = before
                        return None
                    planes[byte].append(taken)
        for places in planes:
            for place in places:
                self.busy[place.slice] += rows
        return Home(array.dtype, array.vectors, tuple(map(tuple, planes)), groups, rows * groups)

    def _take(
        self, rows: int, side: str, unit: str, avoid: set[str], own: dict[str, tuple[int, ...]], part: tuple[int, ...]
    ) -> Rows | None:
        """The best slice with room. Slices of other groups and byte planes of the array itself are used at the same time: `own`."""
        best: tuple[int, str, int] | None = None
        at = self.machine.position(unit)
        for name, position in self.slices[side]:
            cost = self.busy[name] + self.near * abs(position - at)
            if (best is not None and cost >= best[0]) or name in avoid or own.get(name, part) != part:
                continue
            bank = self._room(name, rows)
            if bank is not None:
                best = (cost, name, bank)
        if best is None:
            return None
        _, name, bank = best
        own[name] = part
        row = self.free[name][bank]
        self.free[name][bank] += rows
        return Rows(name, bank, row)

    def _room(self, name: str, rows: int) -> int | None:
        """The fullest bank of a slice that has room."""
        fits = [(used, bank) for bank, used in enumerate(self.free[name]) if used + rows <= self.machine.rows]
        return max(fits)[1] if fits else None
