"""Removes copies: the two sides of a move become one place where their values never need to differ, parts of tuples included.

Loop arguments and the results of branches are registers that several blocks write (there are no phis), and the operand of a wide
access or a matrix instruction is a tuple that copies fill; those moves mostly vanish here, and what stays is a real copy.

Registers that merged are a group: a row of units, each of which is one smallest register wide and has the parts of the members
that stand there. Two groups merge when one lies inside the other and no two units that meet interfere. Interference is
Chaitin's: a definition interferes with all that is live after it, but for what the move that makes it copies (G. Chaitin,
"Register Allocation & Spilling via Graph Coloring", 1982). All that is live in one unit has one value, so a copy of any of it
interferes with none of it.

No graph is built: it would have n² edges for the n accumulators of a loop. A unit has its definitions and, in order, the spans in
which it is live; two of them are asked about when a move wants to merge them. Copies of inner loops go first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tilefw.machine.flow import depths, predecessors, successors
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Block, Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable


@dataclass(frozen=True)
class Coalesce(FunctionPass):
    """Removes copies. A function of one block is left as it is, but with `straight_line`: it copies into tuples alone."""

    name = "coalesce"
    table: InstructionTable
    straight_line: bool = True

    def run(self, function: Function) -> None:
        if self.straight_line or len(function.blocks) > 1:
            coalesce(function, self.table)


def coalesce(function: Function, table: InstructionTable) -> int:
    """Merge the two sides of moves that do not interfere, and drop the moves; how many were dropped."""
    moves = {opcode for opcode in {inst.opcode for block in function.blocks for inst in block.insts} if table.traits(opcode).move}
    found = [
        (block, inst, copy)
        for block in function.blocks for inst in block.insts if inst.opcode in moves and (copy := _copy_of(inst, table))
    ]
    if not found:
        return 0
    following = successors(function, table)
    lives = _UnitLiveness(function, table, {id(inst): copy for _, inst, copy in found}, following)
    depth = dict(zip(function.blocks, depths(following), strict=True))
    for _, _, copy in sorted(found, key=lambda each: -depth[each[0]]):
        lives.merge(copy)
    dropped = {id(inst) for _, inst, copy in found if lives.are_one(copy)}
    if dropped:
        _rename(function, lives)
        for block in function.blocks:
            block.insts = [inst for inst in block.insts if id(inst) not in dropped]
    lives.release()
    return len(dropped)


class _RegisterMove(NamedTuple):
    """A move of registers to as many others of their file."""

    dest: Slice
    source: Slice


def _copy_of(inst: Inst, table: InstructionTable) -> _RegisterMove | None:
    """What a move copies, if it may go away."""
    if len(inst.uses) != 1 or len(inst.defs) != 1 or inst.predicate is not None:
        return None
    source, dest = inst.uses[0], inst.defs[0]
    if not isinstance(source, Slice) or source.count != dest.count or source.reg.physical or dest.reg.physical:
        return None
    return _RegisterMove(dest, source) if table.file(source.reg.cls) == table.file(dest.reg.cls) else None


class _RegisterUnit:
    """What stands in one smallest register of a group: where it is written, with the unit that is copied where a move writes it,
    and where it is live, from `starts[i]` to before `ends[i]`. `group` is the group's number: they hold each other in no cycle."""

    __slots__ = ("at", "definitions", "ends", "group", "into", "starts")

    def __init__(self, group: int, at: int) -> None:
        self.group = group
        self.at = at
        self.definitions: list[tuple[int, _RegisterUnit | None]] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.into: _RegisterUnit | None = None  # the unit that this one merged into

    def root(self) -> _RegisterUnit:
        found = self
        while found.into is not None:
            found = found.into
        return found

    def live_at(self, position: int) -> bool:
        i = bisect_right(self.starts, position) - 1
        return i >= 0 and position < self.ends[i]

    def clashes(self, other: _RegisterUnit) -> bool:
        """Whether `other` is live after a definition here that copies neither of the two."""
        for position, source in self.definitions:
            if other.live_at(position) and (source is None or source.root() not in (self, other)):
                return True
        return False

    def absorb(self, other: _RegisterUnit) -> None:
        other.into = self
        self.definitions += other.definitions
        spans = [*zip(self.starts, self.ends, strict=True), *zip(other.starts, other.ends, strict=True)]
        self.starts, self.ends = _merged_spans(spans)


class _Group:
    """Registers that merged, each with its offset from the group's first unit."""

    __slots__ = ("align", "members", "units")

    def __init__(self, number: int, reg: Reg) -> None:
        self.align = reg.align
        self.units = [_RegisterUnit(number, i) for i in range(reg.width)]
        self.members = [(reg, 0)]

    def takes(self, other: _Group, offset: int) -> bool:
        """Whether `other`, its first unit at `offset`, fits in: inside, rightly aligned, and without interference."""
        if offset < 0 or offset + len(other.units) > len(self.units) or offset % other.align:
            return False
        pairs = zip(self.units[offset:], other.units, strict=False)
        return not any(mine.clashes(its) or its.clashes(mine) for mine, its in pairs)

    def absorb(self, other: _Group, offset: int) -> None:
        self.align = max(self.align, other.align)
        self.members += [(reg, offset + at) for reg, at in other.members]
        for mine, its in zip(self.units[offset:], other.units, strict=False):
            mine.absorb(its)


class _Access(NamedTuple):
    """What one instruction does to registers of moves: the units that it reads, those that it writes, and, unit by unit, what it
    copies to these if it is a copy; whether what they held is gone after it, and whether it writes before it has read."""

    position: int
    read: list[_RegisterUnit]
    written: list[_RegisterUnit]
    copied: list[_RegisterUnit] | None
    kills: bool
    early: bool


class _UnitLiveness:
    """The groups of the registers that moves name, with where their units are written and live.

    A block's entry has a number, as each instruction has; what stands at n reads at position 2n and writes at 2n + 1.
    """

    def __init__(
        self, function: Function, table: InstructionTable, copies: dict[int, _RegisterMove], following: list[list[int]]
    ) -> None:
        named = dict.fromkeys(side.reg for copy in copies.values() for side in copy)
        self._groups = [_Group(number, reg) for number, reg in enumerate(named)]
        self.units = {reg: group.units for reg, group in zip(named, self._groups, strict=True)}
        self._known = {
            piece: units[piece.first : piece.first + piece.count] for reg, units in self.units.items() for piece in reg.slices()
        }
        self._copies = copies
        self._early = {opcode for opcode in {inst.opcode for inst in function.insts()} if table.traits(opcode).early}
        self.accesses: list[list[_Access]] = []  # by block
        entries: list[int] = []
        number = 0
        for block in function.blocks:
            entries.append(2 * number)
            self.accesses.append(self._accesses(block, number + 1))
            number += len(block.insts) + 1
        live_out = self._live_out(following)
        spans: dict[_RegisterUnit, list[tuple[int, int]]] = {unit: [] for units in self.units.values() for unit in units}
        for accesses, live, entry, end in zip(self.accesses, live_out, entries, [*entries[1:], 2 * number], strict=True):
            _find_spans(accesses, live, entry, end, spans)
        for unit, found in spans.items():
            unit.starts, unit.ends = _merged_spans(found)

    def merge(self, copy: _RegisterMove) -> None:
        """Make the two sides of a copy one, if they may be."""
        to, source = self._unit(copy.dest), self._unit(copy.source)
        offset = to.at - source.at
        if to.group == source.group:
            return
        large, small = self._groups[to.group], self._groups[source.group]
        if len(large.units) < len(small.units):
            large, small, offset = small, large, -offset
        if large.takes(small, offset):
            large.absorb(small, offset)

    def merged(self) -> list[_Group]:
        """The groups of more than one register, as merging left them."""
        roots = dict.fromkeys(units[0].root().group for units in self.units.values())
        return [group for number in roots if len((group := self._groups[number]).members) > 1]

    def are_one(self, copy: _RegisterMove) -> bool:
        """Whether the two sides of a copy are one by now."""
        return self._unit(copy.dest) is self._unit(copy.source)

    def release(self) -> None:
        """Part the units: those that copies made one name each other, and only the cyclic collector would free them."""
        for units in self.units.values():
            for unit in units:
                unit.definitions.clear()
                unit.into = None

    def _unit(self, side: Slice) -> _RegisterUnit:
        return self.units[side.reg][side.first].root()

    def _accesses(self, block: Block, number: int) -> list[_Access]:
        accesses: list[_Access] = []
        names_none = self._known.keys().isdisjoint
        for at, inst in enumerate(block.insts, number):
            plain = inst.predicate is None and not inst.implicit_uses
            if plain and names_none(inst.uses) and names_none(inst.defs) and not inst.implicit_defs:
                continue  # most instructions have nothing to do with moves
            read = self._named(inst.uses if plain else inst.reads())
            written = self._named((*inst.defs, *inst.implicit_defs) if inst.implicit_defs else inst.defs)
            if read or written:
                copied = read if id(inst) in self._copies else None
                accesses.append(_Access(2 * at, read, written, copied, inst.predicate is None, inst.opcode in self._early))
        return accesses

    def _named(self, operands: Iterable[object]) -> list[_RegisterUnit]:
        known = self._known
        found: list[_RegisterUnit] = []
        for operand in operands:
            if operand.__class__ is Slice:
                found += known.get(operand, ())  # type: ignore[call-overload]
        return found

    def _live_out(self, following: list[list[int]]) -> list[set[_RegisterUnit]]:
        """The units live at each block's end: the textbook analysis of `liveness`, on these alone."""
        uses: list[set[_RegisterUnit]] = []
        kills: list[set[_RegisterUnit]] = []
        for accesses in self.accesses:
            used: set[_RegisterUnit] = set()
            killed: set[_RegisterUnit] = set()
            for access in accesses:
                used.update(unit for unit in access.read if unit not in killed)
                if access.kills:
                    killed.update(access.written)
            uses.append(used)
            kills.append(killed)
        before = predecessors(following)
        live_in = [set(used) for used in uses]
        live_out: list[set[_RegisterUnit]] = [set() for _ in uses]
        work = list(range(len(uses)))
        while work:
            i = work.pop()
            out = live_out[i] = set().union(*(live_in[j] for j in following[i]))
            into = uses[i] | (out - kills[i])
            if len(into) != len(live_in[i]):
                live_in[i] = into
                work.extend(before[i])
        return live_out


def _find_spans(
    accesses: list[_Access], live: set[_RegisterUnit], entry: int, end: int, spans: dict[_RegisterUnit, list[tuple[int, int]]]
) -> None:
    """Add one block's definitions and spans, found from its end backward."""
    open_until = dict.fromkeys(live, end)
    for position, read, written, copied, kills, early in reversed(accesses):
        at = position if early else position + 1
        for i, unit in enumerate(written):
            unit.definitions.append((at, None if copied is None else copied[i]))
            if kills:
                # A result that nobody reads still overwrites what stood there.
                spans[unit].append((at, open_until.pop(unit, position + 2)))
            else:
                open_until.setdefault(unit, position + 2)
        for unit in read:
            open_until.setdefault(unit, position + 1)
    for unit, until in open_until.items():
        spans[unit].append((entry, until))


def _merged_spans(spans: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Spans in order as their starts and ends, adjacent ones merged."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted(spans):
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def _rename(function: Function, lives: _UnitLiveness) -> None:
    """Write each member of a group as its part of one register."""
    places: dict[Reg, tuple[Reg, int]] = {}
    for group in lives.merged():
        places.update(_positions(function, group))
    pieces = {
        piece: to.slice(piece.first + offset, piece.count) for reg, (to, offset) in places.items() for piece in reg.slices()
    }
    of, names_none = pieces.get, pieces.keys().isdisjoint
    for inst in function.insts():
        if not names_none(inst.defs):
            inst.defs = tuple([of(piece, piece) for piece in inst.defs])
        if not names_none(inst.uses):
            inst.uses = tuple([of(use, use) for use in inst.uses])  # type: ignore[call-overload]
        if inst.implicit_defs or inst.implicit_uses:
            inst.implicit_defs = tuple([of(piece, piece) for piece in inst.implicit_defs])
            inst.implicit_uses = tuple([of(piece, piece) for piece in inst.implicit_uses])
        if inst.predicate is not None:
            inst.predicate = of(inst.predicate, inst.predicate)


def _positions(function: Function, group: _Group) -> Iterator[tuple[Reg, tuple[Reg, int]]]:
    """Each member with the group's register and its offset there."""
    width = len(group.units)
    fits = next((reg for reg, at in group.members if (reg.width, reg.align, at) == (width, group.align, 0)), None)
    together = fits or function.register(group.members[0][0].cls, width, group.align)
    return ((reg, (together, at)) for reg, at in group.members if reg is not together)
