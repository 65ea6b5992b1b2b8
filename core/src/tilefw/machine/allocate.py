"""Gives every virtual register a physical one: linear scan over live ranges with holes, tuples and alignment.

Registers are taken in order of their first definition; each gets the lowest place in its class's file where none of its
parts meets a live range that stands there already. Ranges are exact segments, so that two values may share a register
whose lives interleave (the "lifetime holes" of Traub, Holloway and Smith, "Quality and Speed in Linear-scan Register
Allocation", 1998). A tuple that finds no room for all its parts among narrower values is what this order is bad at: it is placed
before all others then, and these once more in their order.

Of lives without holes, placed in this order and one register wide, as many find room as live at once at most: what is free where a
life begins stays free, as all that is placed begins earlier. With holes it does not: a register that is free there may be taken
again by the next segment of an older life before the new one ends. So none may be free for the whole of a life though enough are at
each point, as at 248 live of 256. To colour such lives with as few is the general problem, of graphs that are not those of
intervals (NP-complete: Garey and Johnson, "Computers and Intractability", GT4). A few that stand already move then
(`movable_file`), and what finds no room still is spilled (`spill`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from tilefw.api.errors import CapacityError, InternalError
from tilefw.machine.inst import Function, Reg, Slice
from tilefw.machine.live_ranges import LivePart, LiveRanges
from tilefw.machine.movable_file import MovableFile
from tilefw.machine.register_file import RegisterFile
from tilefw.machine.table import InstructionTable

_ATTEMPTS = 12  # of placing tuples that found no room before all others
_LEFT_OUT = 16  # registers, behind which nobody moves for one more


class Failure(NamedTuple):
    """A register that found no place."""

    reg: Reg
    file: str


def allocate(function: Function, table: InstructionTable, limits: Mapping[str, int] | None = None) -> dict[str, int]:
    """Rewrite `function` onto physical registers, of each file at most `limits`; how many of each it uses (the highest index + 1).

    Copies whose two sides met in one register stay as identities (see `drop_identities`). Classes without a `count` stay
    virtual. Nothing is spilled: raises CapacityError (TFW0650) when a file has too few registers.
    """
    ranges = LiveRanges(function, table)
    found = first_registers(function, ranges, table, limits or {})
    if isinstance(found, Failure):
        raise too_few(function, found, ranges, table, limits or {})
    return rewrite(function, table, found)


def first_registers(
    function: Function, ranges: LiveRanges, table: InstructionTable, limits: Mapping[str, int],
    steps: Mapping[str, Sequence[int]] | None = None,
) -> dict[Reg, int] | Failure:
    """The first physical register of each virtual one, or one that found none. `steps`: by file, ascending, the numbers of
    registers that are worth staying within."""
    hints = _hints(function, table)
    chosen: dict[Reg, int] = {}
    failure, behind = None, (sys.maxsize, 0)
    for file, order in _orders(ranges, table).items():
        # Once one found no place, only those that begin before it matter.
        order = order if failure is None else [(reg, at) for reg, at in order if (at, reg.id) < behind]
        if not order:
            continue
        found = _Filling(file, order, ranges, hints, table, limits).within((steps or {}).get(file, ()))
        if isinstance(found, Failure):
            failure, behind = found, (dict(order)[found.reg], found.reg.id)
        else:
            chosen |= found
    return failure or chosen


def placed_beside_spills(
    function: Function, ranges: LiveRanges, table: InstructionTable, limits: Mapping[str, int]
) -> dict[Reg, int] | list[Failure]:
    """The same of a function that spills, or all that find no room: where one finds none the others move at once, as more will."""
    hints = _hints(function, table)
    chosen: dict[Reg, int] = {}
    failures: list[Failure] = []
    for file, order in _orders(ranges, table).items():
        placed, left = _Filling(file, order, ranges, hints, table, limits).moving() if order else ({}, [])
        chosen |= placed
        failures += [Failure(reg, file) for reg in left]
    return failures or chosen


def _orders(ranges: LiveRanges, table: InstructionTable) -> dict[str, list[tuple[Reg, int]]]:
    """The registers of each file with the points at which they begin, ascending: what stands in one hinders nobody in another."""
    orders: dict[str, list[tuple[Reg, int]]] = {table.file(name): [] for name, c in table.classes.items() if c.count is not None}
    of_class = {name: orders.get(table.file(name)) for name in table.classes}
    for each in _in_order(ranges):
        order = of_class[each[0].cls]
        if order is not None:
            order.append(each)
    return orders


class _Filling:
    """A file, and the registers that are placed in it, with the points at which they begin, ascending."""

    def __init__(
        self, file: str, order: Sequence[tuple[Reg, int]], ranges: LiveRanges, hints: Mapping[Reg, Sequence[tuple[Reg, int]]],
        table: InstructionTable, limits: Mapping[str, int],
    ) -> None:
        self.file, self.order, self.ranges, self.hints = file, order, ranges, hints
        self._table = table
        self._count = table.classes[order[0][0].cls].count or 0
        self._limit = min(limits.get(file, self._count), self._count)

    def within(self, steps: Sequence[int]) -> dict[Reg, int] | Failure:
        """A place for each: within the first step that is not below what lives at once, or else wherever there is one."""
        step = next((step for step in steps if step >= self._pressure), self._limit)
        found = self._standing(min(step, self._limit))
        if isinstance(found, Failure) and step < self._limit:
            found = self._standing(self._limit)
        if not isinstance(found, Failure) or self._too_many(self._limit):
            return found
        placed, left = self.moving()
        return Failure(left[0], self.file) if left else placed

    def moving(self) -> tuple[dict[Reg, int], list[Reg]]:
        """Place registers in their order; where one finds no room, others move. Those that find none all the same are left out."""
        file = MovableFile(self._count, self._unusable(self._limit))
        for reg, parts in self.ranges.fixed.items():
            if reg.cls == self.file:
                file.fix(parts)
        chosen: dict[Reg, int] = {}
        left: list[Reg] = []
        for reg, position in self.order:
            parts = self.ranges.parts[reg]
            first = file.find_free(reg.width, reg.align, parts, self._preferred(reg, chosen), position)
            if first is not None:
                file.take(first, parts, position)
                file.stand(reg, first, parts)
                chosen[reg] = first
                continue
            placed = file.make_room(reg, parts, position) if len(left) < _LEFT_OUT else None
            if placed is None:
                left.append(reg)
            else:
                chosen |= placed
        return chosen, left

    def _standing(self, limit: int) -> dict[Reg, int] | Failure:
        """Place registers where they stay; a tuple that finds no room comes before all others in the next attempt."""
        found = self._attempt(self.order, limit)
        urgent: dict[Reg, None] = {}
        for _ in range(_ATTEMPTS):
            if not isinstance(found, Failure) or found.reg in urgent or found.reg.width == 1:
                break
            if not urgent and self._too_many(limit):
                break
            urgent[found.reg] = None
            first_of_all = [(reg, None) for reg in sorted(urgent, key=lambda reg: -reg.width)]
            found = self._attempt([*first_of_all, *self.order], limit)
        return found

    def _attempt(self, order: Iterable[tuple[Reg, int | None]], limit: int) -> dict[Reg, int] | Failure:
        """Place registers in the given order; those with a point begin there, and come in the order of these points."""
        file, hints, ranges = RegisterFile(self._count, self._unusable(limit)), self.hints, self.ranges.parts
        for reg, parts in self.ranges.fixed.items():
            if reg.cls == self.file:
                file.take(0, parts)
        chosen: dict[Reg, int] = {}
        for reg, position in order:
            if reg in chosen:
                continue
            parts = ranges[reg]
            first = file.find_free(reg.width, reg.align, parts, self._preferred(reg, chosen) if reg in hints else (), position)
            if first is None:
                return Failure(reg, self.file)
            chosen[reg] = first
            file.take(first, parts, position)
        return chosen

    def _preferred(self, reg: Reg, chosen: Mapping[Reg, int]) -> list[int]:
        """Where a register would stand so that a copy becomes idle."""
        found: list[int] = []
        for other, away in self.hints.get(reg, ()):
            if other.physical:
                found.append(away)
            elif other in chosen:
                found.append(chosen[other] + away)
        return found

    def _too_many(self, limit: int) -> bool:
        """Whether more registers live at once than there are, so that no order of placing them helps."""
        return self._pressure > self._count - len(self._unusable(limit))

    @cached_property
    def _pressure(self) -> int:
        return most_at_once({reg: self.ranges.parts[reg] for reg, _ in self.order}, lambda _: True)[0]

    def _unusable(self, limit: int) -> frozenset[int]:
        return unusable(self._table, {self.file: limit}, self.file, self._count)


def _in_order(ranges: LiveRanges) -> list[tuple[Reg, int]]:
    """The registers with the points at which they begin, ascending."""
    firsts = {
        reg: parts[0].segments[0][0] if len(parts) == 1 else min(part.segments[0][0] for part in parts)
        for reg, parts in ranges.parts.items()
    }
    return [(reg, firsts[reg]) for reg in sorted(firsts, key=lambda reg: (firsts[reg], reg.id))]


def unusable(table: InstructionTable, limits: Mapping[str, int], file: str, count: int) -> frozenset[int]:
    """The registers of a file of `count` that are for nobody: reserved ones, and those beyond the limit."""
    return table.reserved.get(file, frozenset()).union(range(min(limits.get(file, count), count), count))


def _hints(function: Function, table: InstructionTable) -> dict[Reg, list[tuple[Reg, int]]]:
    """For each register those that a copy ties it to, and how far from them it would stand for the copy to go away."""
    moves = {opcode for opcode in {inst.opcode for inst in function.insts()} if table.traits(opcode).move}
    hints: dict[Reg, list[tuple[Reg, int]]] = {}
    for inst in function.insts() if moves else ():
        if inst.opcode not in moves or len(inst.defs) != 1 or len(inst.uses) != 1:
            continue
        source, to = inst.uses[0], inst.defs[0]
        if isinstance(source, Slice) and table.file(source.reg.cls) == table.file(to.reg.cls):
            away = source.first - to.first
            hints.setdefault(to.reg, []).append((source.reg, away))
            hints.setdefault(source.reg, []).append((to.reg, -away))
    return hints


def too_few(
    function: Function, failure: Failure, ranges: LiveRanges, table: InstructionTable, limits: Mapping[str, int],
    limited_by: str = "", note: str = "values of this class are not spilled",
) -> CapacityError:
    """The refusal of a function that does not fit: how many registers it needs at once, and where; `limited_by` says why it may
    use fewer than the chip has."""
    reg, file = failure
    pressure, where = most_at_once(ranges.parts, lambda r: table.file(r.cls) == file)
    count = table.classes[reg.cls].count or 0
    chip = count - len(table.reserved.get(file, frozenset()))
    available = count - len(unusable(table, limits, file, count))
    shape = "" if reg.width == 1 else f", and {reg.width} in a row at a multiple of {reg.align}"
    fewer = available < chip
    has = f"the chip has {chip}" + (f", of which it may use {available}{limited_by and f' ({limited_by})'}" if fewer else "")
    places = [inst.place for inst in function.insts()]
    return CapacityError(
        f"the kernel needs {pressure} registers of class '{file}' at once{shape}; {has}",
        code="TFW0650",
        place=next((p for p in places[min(where // 2, len(places) - 1) :] if p is not None), None),
        note=note,
        help="make the tile of a program smaller, or spread it over more waves (num_warps)"
        + (", or let it use more registers" if fewer else ""),
        resource=f"registers of class '{file}'", needed=pressure, available=available, unit="registers",
    )


def most_at_once(parts: Mapping[Reg, list[LivePart]], counts: Callable[[Reg], bool]) -> tuple[int, int]:
    """The most registers that live at one point, of those that count, and the first such point."""
    changes: dict[int, int] = {}  # of how many are alive, by the point
    before = changes.get
    for reg, its in parts.items():
        if counts(reg):
            for part in its:
                for start, end in part.segments:
                    changes[start] = before(start, 0) + part.width
                    changes[end] = before(end, 0) - part.width
    alive, pressure, where = 0, 0, 0
    for point in sorted(changes):
        alive += changes[point]
        if alive > pressure:
            pressure, where = alive, point
    return pressure, where


def rewrite(function: Function, table: InstructionTable, chosen: Mapping[Reg, int]) -> dict[str, int]:
    """Put registers where they were placed; how many of each file are used (the highest index + 1)."""
    sizes = {table.file(name): c.count for name, c in table.classes.items() if c.count is not None}
    used: dict[str, int] = {}
    places: dict[Reg, tuple[Reg, int]] = {}
    for reg, first in chosen.items():
        file = table.file(reg.cls)
        places[reg] = function.file(file, sizes[file]), first
        used[file] = max(used.get(file, 0), first + reg.width)
    pieces = _PlacedSlices(places)
    for inst in function.insts():
        for d, u in inst.tied:
            if inst.defs[d] != inst.uses[u]:
                raise InternalError(f"{inst.opcode}: tied operands {inst.defs[d]} and {inst.uses[u]} are two registers")
        inst.defs = tuple([pieces[d] for d in inst.defs])
        inst.uses = tuple([pieces[u] if u.__class__ is Slice else u for u in inst.uses])  # type: ignore[index]
        if inst.implicit_defs or inst.implicit_uses:
            inst.implicit_defs = tuple([pieces[d] for d in inst.implicit_defs])
            inst.implicit_uses = tuple([pieces[u] for u in inst.implicit_uses])
        if inst.predicate is not None:
            inst.predicate = pieces[inst.predicate]
    function.registers = [reg for reg in function.registers if reg not in chosen]
    return used


class _PlacedSlices(dict[Slice, Slice]):
    """Slices of virtual registers to slices of the files that these were placed in, each made when first asked for."""

    def __init__(self, places: Mapping[Reg, tuple[Reg, int]]) -> None:
        super().__init__()
        self._places = places

    def __missing__(self, piece: Slice) -> Slice:
        file, first = self._places.get(piece.reg, (piece.reg, 0))
        found = self[piece] = file.slice(first + piece.first, piece.count)
        return found


def drop_identities(function: Function, table: InstructionTable) -> int:
    """Remove copies of a physical register to itself, which `allocate` leaves. Returns the number of copies removed."""
    dropped = 0
    for block in function.blocks:
        kept = [i for i in block.insts if not (table.traits(i.opcode).move and i.uses and i.defs == i.uses[:1])]
        dropped += len(block.insts) - len(kept)
        block.insts = kept
    return dropped
