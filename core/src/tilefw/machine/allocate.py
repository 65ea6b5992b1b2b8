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

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from tilefw.api.errors import CapacityError, InternalError
from tilefw.machine.inst import Function, Reg, Slice
from tilefw.machine.live_ranges import LivePart, LiveRanges
from tilefw.machine.movable_file import MovableFile
from tilefw.machine.register_file import RegisterFile
from tilefw.machine.table import InstructionTable

_File = TypeVar("_File", bound=RegisterFile)
_ATTEMPTS = 12  # of placing tuples that found no room before all others


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
    function: Function, ranges: LiveRanges, table: InstructionTable, limits: Mapping[str, int], moving: bool = True
) -> dict[Reg, int] | Failure:
    """The first physical register of each virtual one, or one that found none; `moving`: not even by others that move for it."""
    in_order, hints = _in_order(ranges), _hints(function, table)
    urgent: dict[Reg, None] = {}
    found = _assign_all(in_order, ranges, hints, table, limits)
    for _ in range(_ATTEMPTS):
        if not isinstance(found, Failure) or found.reg in urgent or found.reg.width == 1:
            break
        if not urgent and _too_many(found, ranges, table, limits):
            break
        urgent[found.reg] = None
        first_of_all = [(reg, None) for reg in sorted(urgent, key=lambda reg: -reg.width)]
        found = _assign_all([*first_of_all, *in_order], ranges, hints, table, limits)
    if not isinstance(found, Failure) or not moving or _too_many(found, ranges, table, limits):
        return found
    return _assign_moving(in_order, ranges, hints, table, limits)


def placed_beside_spills(
    function: Function, ranges: LiveRanges, table: InstructionTable, limits: Mapping[str, int]
) -> dict[Reg, int] | Failure:
    """The same of a function that spills: where one finds no room the others move at once, as more will find none."""
    return _assign_moving(_in_order(ranges), ranges, _hints(function, table), table, limits)


def _in_order(ranges: LiveRanges) -> list[tuple[Reg, int]]:
    """The registers with the points at which they begin, ascending."""
    firsts = {
        reg: parts[0].segments[0][0] if len(parts) == 1 else min(part.segments[0][0] for part in parts)
        for reg, parts in ranges.parts.items()
    }
    return [(reg, firsts[reg]) for reg in sorted(firsts, key=lambda reg: (firsts[reg], reg.id))]


def _too_many(failure: Failure, ranges: LiveRanges, table: InstructionTable, limits: Mapping[str, int]) -> bool:
    """Whether more registers of the file live at once than there are, so that no order of placing them helps."""
    count = table.classes[failure.reg.cls].count or 0
    available = count - len(unusable(table, limits, failure.file, count))
    return most_at_once(ranges.parts, lambda reg: table.file(reg.cls) == failure.file)[0] > available


def _assign_all(
    order: Iterable[tuple[Reg, int | None]], ranges: LiveRanges, hints: dict[Reg, list[tuple[Reg, int]]],
    table: InstructionTable, limits: Mapping[str, int],
) -> dict[Reg, int] | Failure:
    """Place registers in the given order; those with a point begin there, and come in the order of these points."""
    files = _files(table, limits, RegisterFile)
    for reg, parts in ranges.fixed.items():
        if reg.cls in files:
            files[reg.cls].take(0, parts)
    of_class = {cls: files.get(table.file(cls)) for cls in table.classes}
    chosen: dict[Reg, int] = {}
    for reg, position in order:
        file = of_class[reg.cls]
        if file is None or reg in chosen:
            continue
        hinted = hints.get(reg)
        preferred = [at for h, away in hinted if (at := _hinted(h, away, chosen)) is not None] if hinted else ()
        parts = ranges.parts[reg]
        first = file.find_free(reg.width, reg.align, parts, preferred, position)
        if first is None:
            return Failure(reg, table.file(reg.cls))
        chosen[reg] = first
        file.take(first, parts, position)
    return chosen


def _assign_moving(
    order: Iterable[tuple[Reg, int]], ranges: LiveRanges, hints: dict[Reg, list[tuple[Reg, int]]],
    table: InstructionTable, limits: Mapping[str, int],
) -> dict[Reg, int] | Failure:
    """Place registers in the order of the points where they begin; where one finds no room, others move."""
    files = _files(table, limits, MovableFile)
    for reg, parts in ranges.fixed.items():
        if reg.cls in files:
            files[reg.cls].fix(parts)
    chosen: dict[Reg, int] = {}
    for reg, position in order:
        file = files.get(table.file(reg.cls))
        if file is None:
            continue
        parts = ranges.parts[reg]
        preferred = [at for hint, away in hints.get(reg, ()) if (at := _hinted(hint, away, chosen)) is not None]
        first = file.find_free(reg.width, reg.align, parts, preferred, position)
        if first is not None:
            file.take(first, parts, position)
            file.stand(reg, first, parts)
            chosen[reg] = first
            continue
        placed = file.make_room(reg, parts, position)
        if placed is None:
            return Failure(reg, table.file(reg.cls))
        chosen |= placed
    return chosen


def _files(table: InstructionTable, limits: Mapping[str, int], kind: type[_File]) -> dict[str, _File]:
    """The register files of the chip, empty; what is beyond a limit is for nobody."""
    files: dict[str, _File] = {}
    for name, cls in table.classes.items():
        if cls.count is not None:
            file = table.file(name)
            files[file] = kind(cls.count, unusable(table, limits, file, cls.count))
    return files


def unusable(table: InstructionTable, limits: Mapping[str, int], file: str, count: int) -> frozenset[int]:
    """The registers of a file of `count` that are for nobody: reserved ones, and those beyond the limit."""
    return table.reserved.get(file, frozenset()).union(range(min(limits.get(file, count), count), count))


def _hinted(reg: Reg, away: int, chosen: dict[Reg, int]) -> int | None:
    """Where a register would stand so that a copy becomes idle: `away` from where `reg` does."""
    if reg.physical:
        return away
    first = chosen.get(reg)
    return None if first is None else first + away


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
    # Segments as changes of how many are alive, sorted: at one point those that end go before those that begin.
    changes = sorted(
        change
        for reg, its in parts.items() if counts(reg)
        for part in its for a, b in part.segments for change in ((a, part.width), (b, -part.width))
    )
    alive, pressure, where = 0, 0, 0
    for point, change in changes:
        alive += change
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
