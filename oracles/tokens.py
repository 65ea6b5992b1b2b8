"""Runs allocated code beside the virtual code it came from, along drawn paths, with a token for each value that is computed.

It is what `tilefw.machine.check_allocation` is judged by where that accepts code that was changed: no states that meet and no sets
of values, but one path at a time on which each location holds one token. Wherever an instruction reads another token than the
virtual code means, the allocation is wrong; where none does on paths that take every way out of every block, it is another right
one.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence

from tilefw.machine.check_allocation import Snapshot
from tilefw.machine.flow import BlockExit, exits, reached
from tilefw.machine.inst import Function, Inst, Slice
from tilefw.machine.spill_model import WHOLE, Location, SpillModel
from tilefw.machine.table import InstructionTable

PATHS = 24  # at least; as many more as it takes to go through every edge
_MOST_PATHS = 400
_LONGEST = 60  # blocks of a path
_END = BlockExit(-1, -1)

Token = Hashable
Unit = tuple[object, int]  # a register, or the name of a physical file, and a number in it
Step = tuple[int, BlockExit]  # a block and the way out of it


def differs(before: Snapshot, after: Function, table: InstructionTable, spills: SpillModel | None = None) -> str:
    """The first read of a wrong value on any of the paths; empty where there is none.

    Raises AssertionError where a way that control may take is on none of the paths.
    """
    ways = exits(after, table)
    missing = {(block, way) for block in reached(ways) for way in ways[block]}
    drawn = random.Random(1)
    for number in range(_MOST_PATHS):
        if number >= PATHS and not missing:
            return ""
        run = _Run(before, after, table, spills)
        for block, way in _path(ways, drawn, number):
            if fault := run.through(block, way.place):
                return fault
            missing.discard((block, way))
    raise AssertionError(f"{after.name}: no path drawn takes {min(missing)}")


def _path(ways: Sequence[Sequence[BlockExit]], drawn: random.Random, number: int) -> Iterator[Step]:
    """Blocks from the entry on. The first two paths take one side at every branch."""
    block = 0
    for _ in range(_LONGEST):
        out = ways[block]
        if not out:
            yield block, _END
            return
        way = out[number % len(out)] if number < 2 else drawn.choice(out)
        yield block, way
        block = way.block


class _Run:
    """One path: the tokens of virtual units and of locations."""

    def __init__(self, before: Snapshot, after: Function, table: InstructionTable, spills: SpillModel | None) -> None:
        self._before, self._after, self._table, self._spills = before, after, table, spills
        self._meant: dict[Unit, Token] = {}
        self._there: dict[tuple[str, int], dict[int, Token]] = {}  # of each register the token of each lane, or of the whole
        self._made = 0

    def through(self, block: int, place: int) -> str:
        """Execute a block on both sides, up to the branch at `place` (-1: all of it); what was read wrongly first."""
        old = self._before.blocks[block][1]
        position = {id(inst): i for i, (inst, _) in enumerate(old)}
        at = 0
        insts = self._after.blocks[block].insts
        for inst in insts if place < 0 else insts[: place + 1]:
            where = position.get(id(inst))
            if where is None:
                self._transfer(inst)
                continue
            for _, gone in old[at:where]:
                self._mean(gone)
            at = where + 1
            if fault := self._both(old[where][1], inst):
                return fault
        for _, gone in old[at:] if place < 0 else ():
            self._mean(gone)
        return ""

    def _both(self, virtual: Inst, physical: Inst) -> str:
        """An instruction of both sides: equal operands, and then equal results."""
        reads = zip(_reads(virtual), _reads(physical), strict=True)
        for a, b in reads:
            for unit, location in zip(_units(a), _locations(b), strict=True):
                if self._written(unit) and self._meant_at(unit) != self._there_at(location):
                    return f"'{physical}' reads {location}, which does not hold {unit}"
        results = list(zip(_units(*virtual.writes()), _locations(*physical.writes()), strict=True))
        if virtual.predicate is not None:
            for unit, location in results:
                if unit not in self._before.once and self._written(unit) and self._meant_at(unit) != self._there_at(location):
                    return f"'{physical}' keeps {location}, which does not hold {unit}"
        tokens = self._results(virtual)
        for (unit, location), token in zip(results, tokens, strict=True):
            self._meant[unit] = token
            self._put(location, token)
        return ""

    def _results(self, virtual: Inst) -> list[Token]:
        """A copy hands its operand's token on, a constant is its own, everything else makes something new."""
        count = sum(piece.count for piece in virtual.writes())
        source = virtual.uses[0] if len(virtual.uses) == 1 else None
        plain = virtual.predicate is None
        if plain and self._table.traits(virtual.opcode).move and isinstance(source, Slice):
            return [self._meant_at(unit) if self._written(unit) else None for unit in _units(source)]
        if plain and self._is_constant(virtual):
            return [_constant(virtual, i) for i in range(count)]
        self._made += 1
        return [(self._made, i) for i in range(count)]

    def _mean(self, gone: Inst) -> None:
        """A copy or a constant that only the virtual code has."""
        units = list(_units(*gone.defs))
        source = gone.uses[0] if len(gone.uses) == 1 else None
        if self._is_constant(gone):
            tokens: list[Token] = [_constant(gone, i) for i in range(len(units))]
        else:
            assert isinstance(source, Slice) and self._table.traits(gone.opcode).move, gone
            tokens = [self._meant_at(unit) if self._written(unit) else None for unit in _units(source)]
        for unit, token in zip(units, tokens, strict=True):
            if gone.predicate is None or unit in self._before.once or not self._written(unit):
                self._meant[unit] = token
            elif self._meant_at(unit) != token:  # of some lanes the one, of others the other
                self._made += 1
                self._meant[unit] = (self._made, 0)

    def _transfer(self, added: Inst) -> None:
        """A copy or a constant that allocation added."""
        if self._is_constant(added):
            for i, location in enumerate(_locations(*added.defs)):
                self._put(location, _constant(added, i))
            return
        if self._table.traits(added.opcode).move:
            (source,) = added.uses
            assert isinstance(source, Slice)
            pairs: Sequence[tuple[Location, Location]] = list(zip(_locations(*added.defs), _locations(source), strict=True))
        else:
            assert self._spills is not None
            pairs = self._spills.copied(added) or ()
        tokens = [self._there_at(source) for _, source in pairs]
        for (to, _), token in zip(pairs, tokens, strict=True):
            self._put(to, token)

    def _put(self, location: Location, token: Token) -> None:
        """What overlaps the location is gone."""
        file, number, lane = location
        held = self._there.setdefault((file, number), {})
        if lane == WHOLE:
            held.clear()
        else:
            held.pop(WHOLE, None)
        held[lane] = token

    def _is_constant(self, inst: Inst) -> bool:
        return self._table.traits(inst.opcode).cheap and not any(isinstance(use, Slice) for use in inst.uses)

    def _written(self, unit: Unit) -> bool:
        return isinstance(unit[0], str) or self._meant.get(unit) is not None

    def _meant_at(self, unit: Unit) -> Token:
        return self._meant.get(unit, ("at first", unit))

    def _there_at(self, location: Location) -> Token:
        file, number, lane = location
        held = self._there.get((file, number))
        if held is None:
            return "at first", (file, number)
        return held.get(lane, ("part of", file, number, lane))


def _constant(inst: Inst, index: int) -> Token:
    return inst.opcode, repr(inst.uses), index


def _reads(inst: Inst) -> list[Slice]:
    guard = [inst.predicate] if inst.predicate is not None else []
    return [*(use for use in inst.uses if isinstance(use, Slice)), *inst.implicit_uses, *guard]


def _units(*pieces: Slice) -> Iterator[Unit]:
    for piece in pieces:
        for i in range(piece.first, piece.first + piece.count):
            yield piece.reg.cls if piece.reg.physical else piece.reg, i


def _locations(*pieces: Slice) -> Iterator[Location]:
    for piece in pieces:
        for i in range(piece.first, piece.first + piece.count):
            yield piece.reg.cls, i, WHOLE
