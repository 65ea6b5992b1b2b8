"""Gives every virtual register a physical one: linear scan over live ranges with holes, tuples and alignment.

Registers are taken in order of their first definition; each gets the lowest place in its class's file where none of its
units meets a live range that stands there already. Ranges are exact segments, so that two values may share a register
whose lives interleave (the "lifetime holes" of Traub, Holloway and Smith, "Quality and Speed in Linear-scan Register
Allocation", 1998). There is no spilling: a function that does not fit is refused with what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilefw.api.errors import InternalError, Place, UnsupportedError
from tilefw.machine.inst import Function, Inst, Operand, Reg, Slice
from tilefw.machine.liveness import Unit, analyse, kills, units
from tilefw.machine.register_file import RegisterFile, Segment
from tilefw.machine.table import InstructionTable


def allocate(function: Function, table: InstructionTable, limits: Mapping[str, int] | None = None) -> dict[str, int]:
    """Rewrite `function` onto physical registers, of each file at most `limits`; how many of each it uses (the highest index + 1).

    Copies whose two sides met in one register stay as identities (see `drop_identities`), so that a checker can follow
    instruction by instruction. Classes without a `count` stay virtual. Raises UnsupportedError (TFW0650) when a class
    has too few registers.
    """
    ranges, places = _live_ranges(function, table)
    files = _files(table, limits or {})
    for (reg, index), segments in ranges.items():
        if reg.physical:
            files[table.file(reg.cls)].take(index, segments)
    chosen: dict[Reg, int] = {}
    hints = _hints(function, table)
    for reg in _in_order(function, ranges):
        file = files.get(table.file(reg.cls))
        if file is None:
            continue
        parts = [ranges.get((reg, i), []) for i in range(reg.width)]
        preferred = [chosen[h] for h in hints.get(reg, ()) if h in chosen]
        first = file.place(reg.width, reg.align, parts, preferred)
        if first is None:
            raise _too_few(reg, ranges, table, limits or {}, places)
        chosen[reg] = first
        for i, segments in enumerate(parts):
            file.take(first + i, segments)
    sizes = {table.file(name): c.count for name, c in table.classes.items() if c.count is not None}
    names = {reg: table.file(reg.cls) for reg in chosen}
    _rewrite(function, {reg: (function.file(names[reg], sizes[names[reg]]), first) for reg, first in chosen.items()})
    used: dict[str, int] = {}
    for reg, first in chosen.items():
        used[names[reg]] = max(used.get(names[reg], 0), first + reg.width)
    return used


def _files(table: InstructionTable, limits: Mapping[str, int]) -> dict[str, RegisterFile]:
    """The register files of the chip, empty; what is beyond a limit is for nobody."""
    files: dict[str, RegisterFile] = {}
    for name, cls in table.classes.items():
        if cls.count is not None:
            file = table.file(name)
            beyond = range(min(limits.get(file, cls.count), cls.count), cls.count)
            files[file] = RegisterFile(cls.count, table.reserved.get(file, frozenset()).union(beyond))
    return files


def drop_identities(function: Function, table: InstructionTable) -> int:
    """Remove copies of a register to itself; how many."""
    dropped = 0
    for block in function.blocks:
        kept = [i for i in block.insts if not (table.traits(i.opcode).move and i.uses and i.defs == i.uses[:1])]
        dropped += len(block.insts) - len(kept)
        block.insts = kept
    return dropped


def _live_ranges(function: Function, table: InstructionTable) -> tuple[dict[Unit, list[Segment]], list[Place | None]]:
    """Per unit its segments, in order and merged; and the source place of each instruction."""
    live = analyse(function, table)
    ranges: dict[Unit, list[Segment]] = {}
    places: list[Place | None] = []
    position = 0
    for block, alive in zip(function.blocks, live.live_out, strict=True):
        begin, end = 2 * position, 2 * (position + len(block.insts))
        open_ends = dict.fromkeys(alive, end)
        for i in range(len(block.insts) - 1, -1, -1):
            _step(block.insts[i], 2 * (position + i), open_ends, ranges)
        for unit, until in open_ends.items():
            ranges.setdefault(unit, []).append((begin, until))
        places += [inst.place for inst in block.insts]
        position += len(block.insts)
    return {unit: _merged(segments) for unit, segments in ranges.items()}, places


def _step(inst: Inst, at: int, open_ends: dict[Unit, int], ranges: dict[Unit, list[Segment]]) -> None:
    for piece in kills(inst):
        for unit in units(piece):
            # A result that nobody reads still overwrites what stood there.
            ranges.setdefault(unit, []).append((at + 1, open_ends.pop(unit, at + 2)))
    for piece in inst.reads():
        for unit in units(piece):
            open_ends.setdefault(unit, at + 1)
    if inst.predicate is not None:
        for piece in inst.writes():
            for unit in units(piece):
                open_ends[unit] = max(open_ends.get(unit, 0), at + 2)


def _merged(segments: list[Segment]) -> list[Segment]:
    merged: list[Segment] = []
    for start, end in sorted(segments):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _in_order(function: Function, ranges: dict[Unit, list[Segment]]) -> Iterator[Reg]:
    """The registers that live at all, by their first position."""
    first: dict[Reg, int] = {}
    for (reg, _), segments in ranges.items():
        if not reg.physical:
            first[reg] = min(first.get(reg, segments[0][0]), segments[0][0])
    return iter(sorted(first, key=lambda reg: (first[reg], reg.id)))


def _hints(function: Function, table: InstructionTable) -> dict[Reg, list[Reg]]:
    """For each register those that a copy ties it to: sharing one makes the copy go away."""
    hints: dict[Reg, list[Reg]] = {}
    for inst in function.insts():
        if not table.traits(inst.opcode).move or len(inst.defs) != 1 or len(inst.uses) != 1:
            continue
        source, to = inst.uses[0], inst.defs[0]
        if isinstance(source, Slice) and source == source.reg.whole and to == to.reg.whole and source.reg.cls == to.reg.cls:
            hints.setdefault(to.reg, []).append(source.reg)
            hints.setdefault(source.reg, []).append(to.reg)
    return hints


def _too_few(
    reg: Reg, ranges: dict[Unit, list[Segment]], table: InstructionTable, limits: Mapping[str, int], places: list[Place | None]
) -> UnsupportedError:
    # Segments as changes of how many units are alive, sorted: at one point those that end go before those that begin.
    file = table.file(reg.cls)
    mine = [segments for (r, _), segments in ranges.items() if table.file(r.cls) == file]
    changes = sorted(change for segments in mine for a, b in segments for change in ((a, 1), (b, -1)))
    alive, pressure, where = 0, 0, 0
    for point, change in changes:
        alive += change
        if alive > pressure:
            pressure, where = alive, point
    count = table.classes[reg.cls].count or 0
    beyond = range(min(limits.get(file, count), count), count)
    available = count - len(table.reserved.get(file, frozenset()).union(beyond))
    shape = "" if reg.width == 1 else f", and {reg.width} in a row at a multiple of {reg.align}"
    return UnsupportedError(
        f"the kernel needs {pressure} registers of class '{file}' at once{shape}; the chip has {available}",
        code="TFW0650",
        place=next((p for p in places[min(where // 2, len(places) - 1) :] if p is not None), None),
        note="registers are not spilled to memory yet",
        help="make the tile of a program smaller, or spread it over more warps (num_warps)",
    )


def _rewrite(function: Function, chosen: dict[Reg, tuple[Reg, int]]) -> None:
    def piece(s: Slice) -> Slice:
        if s.reg not in chosen:
            return s
        file, first = chosen[s.reg]
        return file.slice(first + s.first, s.count)

    def operand(o: Operand) -> Operand:
        return piece(o) if isinstance(o, Slice) else o

    for inst in function.insts():
        for d, u in inst.tied:
            if inst.defs[d] != inst.uses[u]:
                raise InternalError(f"{inst.opcode}: tied operands {inst.defs[d]} and {inst.uses[u]} are two registers")
        inst.defs = tuple(map(piece, inst.defs))
        inst.uses = tuple(map(operand, inst.uses))
        inst.implicit_defs = tuple(map(piece, inst.implicit_defs))
        inst.implicit_uses = tuple(map(piece, inst.implicit_uses))
        inst.predicate = None if inst.predicate is None else piece(inst.predicate)
    function.registers = [reg for reg in function.registers if reg not in chosen]
