"""Where an allocation can be broken on purpose, by what is done to the code:

    read, written    another register for one operand, as well aligned, that the function uses too
    shifted          a tuple one register (or one alignment) further
    exchanged        two operands of an instruction in each other's registers
    swapped          two registers in each other's place for some instructions
    lost, early      a copy, a constant or a spill left out, or before an instruction that it has to do with
    slot             a spill in another one's place

Allocated code is the virtual code but for its registers, for what allocation itself added (copies, constants, spills), and for
copies and constants that it may take away, so that these are all that an allocator can get wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import gcd

from oracles.site import Site
from tilefw.machine.inst import Block, Function, Inst, Operand, Slice
from tilefw.machine.spill_model import SpillModel
from tilefw.machine.table import InstructionTable

PER_KIND = 25  # of a function: drawn from all that there are
_SPAN = 12  # instructions over which two registers change places
_LARGEST_ALIGNMENT = 4

Pieces = tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class Operands:
    """All that an allocator decides of an instruction, and the immediates of what it adds."""

    defs: Pieces
    uses: tuple[Operand, ...]
    predicate: Slice | None
    implicit_defs: Pieces
    implicit_uses: Pieces

    @staticmethod
    def of(inst: Inst) -> Operands:
        return Operands(inst.defs, inst.uses, inst.predicate, inst.implicit_defs, inst.implicit_uses)

    def put(self, inst: Inst) -> None:
        inst.defs, inst.uses, inst.predicate = self.defs, self.uses, self.predicate
        inst.implicit_defs, inst.implicit_uses = self.implicit_defs, self.implicit_uses

    def mapped(self, become: Callable[[Slice], Slice]) -> Operands:
        """With every register through `become`."""

        def each(pieces: Pieces) -> Pieces:
            return tuple(map(become, pieces))

        uses = tuple(become(u) if isinstance(u, Slice) else u for u in self.uses)
        guard = None if self.predicate is None else become(self.predicate)
        return Operands(each(self.defs), uses, guard, each(self.implicit_defs), each(self.implicit_uses))


@dataclass(frozen=True)
class RegisterSite(Site):
    """New operands of instructions, or other instructions of a block."""

    changes: Mapping[Inst, Operands] = field(default_factory=dict, compare=False)
    block: Block | None = field(default=None, compare=False)
    insts: Sequence[Inst] = field(default=(), compare=False)

    def on(self, judge: Callable[[], tuple[str, str]]) -> tuple[str, str]:
        """What `judge` says while the change stands."""
        kept = {inst: Operands.of(inst) for inst in self.changes}
        whole = self.block.insts if self.block is not None else []
        try:
            for inst, operands in self.changes.items():
                operands.put(inst)
            if self.block is not None:
                self.block.insts = list(self.insts)
            return judge()
        finally:
            for inst, operands in kept.items():
                operands.put(inst)
            if self.block is not None:
                self.block.insts = whole


def sites(function: Function, table: InstructionTable, spills: SpillModel | None = None) -> list[RegisterSite]:
    """At most PER_KIND sites of each kind, in order of instructions; the same for the same function."""
    drawn = random.Random(1)
    found: dict[str, list[RegisterSite]] = {}
    for site in _Finder(function, table, spills, drawn).all():
        found.setdefault(site.kind, []).append(site)
    chosen = [s for those in found.values() for s in (those if len(those) <= PER_KIND else drawn.sample(those, PER_KIND))]
    return sorted(chosen, key=lambda site: site.line)


class _Finder:
    def __init__(self, function: Function, table: InstructionTable, spills: SpillModel | None, drawn: random.Random) -> None:
        self._function, self._table, self._spills, self._drawn = function, table, spills, drawn
        self._used: dict[str, set[int]] = {}
        for inst in function.insts():
            for piece in _pieces(inst):
                self._used.setdefault(piece.reg.cls, set()).update(range(piece.first, piece.first + piece.count))
        self._slots: dict[str, list[tuple[Operand, ...]]] = {}
        for inst in filter(self._is_spill, function.insts()):
            self._slots.setdefault(inst.opcode, []).append(_immediates(inst))

    def all(self) -> Iterator[RegisterSite]:
        line = 0
        for block in self._function.blocks:
            for place, inst in enumerate(block.insts):
                line += 1
                yield from self._operands(inst, line)
                yield from self._exchanged(inst, line)
                yield from self._swapped(block, place, line)
                yield from self._order(block, place, line)
                yield from self._slot(inst, line)

    def _operands(self, inst: Inst, line: int) -> Iterator[RegisterSite]:
        """One operand elsewhere, and what is tied to it."""
        read = [use for use in (*inst.uses, *inst.implicit_uses, inst.predicate) if isinstance(use, Slice)]
        for kind, pieces in (("read", read), ("written", list(inst.writes()))):
            for at, old in enumerate(pieces):
                for named, new in ((kind, self._elsewhere(old)), ("shifted", self._beside(old))):
                    if new is not None:
                        yield self._site(named, line, inst, {inst: _one(inst, kind, at, new)})

    def _elsewhere(self, old: Slice) -> Slice | None:
        """As wide a place that is as well aligned, among registers that the function uses."""
        used = self._used[old.reg.cls]
        step = gcd(old.first, _LARGEST_ALIGNMENT)
        firsts = [n for n in sorted(used) if n % step == 0 and n != old.first and n + old.count - 1 in used]
        return old.reg.slice(self._drawn.choice(firsts), old.count) if firsts else None

    def _beside(self, old: Slice) -> Slice | None:
        if old.count == 1:
            return None
        step = gcd(old.first, _LARGEST_ALIGNMENT)
        first = old.first + self._drawn.choice((step, -step))
        return old.reg.slice(first, old.count) if 0 <= first <= old.reg.width - old.count else None

    def _exchanged(self, inst: Inst, line: int) -> Iterator[RegisterSite]:
        """Two operands of an instruction in each other's registers."""
        for (i, a), (j, b) in combinations([(i, u) for i, u in enumerate(inst.uses) if isinstance(u, Slice)], 2):
            if a is not b and (a.reg, a.count) == (b.reg, b.count) and not {u for _, u in inst.tied} & {i, j}:
                uses = list(inst.uses)
                uses[i], uses[j] = b, a
                now = Operands.of(inst)
                changed = Operands(now.defs, tuple(uses), now.predicate, now.implicit_defs, now.implicit_uses)
                yield self._site("exchanged", line, inst, {inst: changed})

    def _swapped(self, block: Block, place: int, line: int) -> Iterator[RegisterSite]:
        """Two registers in each other's place from here on, for some instructions."""
        span = block.insts[place : place + _SPAN]
        if len(span) < _SPAN or not span[0].defs or span[0].defs[0].count != 1:
            return
        touched = {piece for inst in span for piece in _pieces(inst)}
        a = span[0].defs[0]
        single = [p for p in touched if p.reg is a.reg and p.count == 1 and p is not a]
        wide = {n for p in touched if p.reg is a.reg and p.count > 1 for n in range(p.first, p.first + p.count)}
        others = sorted(p.first for p in single if p.first not in wide)
        if not others or a.first in wide:
            return
        b = a.reg.slice(self._drawn.choice(others), 1)
        become = {a: b, b: a}
        changes = {inst: Operands.of(inst).mapped(lambda piece: become.get(piece, piece)) for inst in span}
        yield RegisterSite("swapped", line, f"{a} {b}", f"{b} {a} for {_SPAN} instructions", "", changes)

    def _order(self, block: Block, place: int, line: int) -> Iterator[RegisterSite]:
        """A copy, a constant or a spill lost, or before an instruction that it has to do with."""
        inst = block.insts[place]
        if not self._is_movable(inst):
            return
        rest = [*block.insts[:place], *block.insts[place + 1 :]]
        yield RegisterSite("lost", line, _shown(inst), "", "", {}, block, rest)
        if place and _depend(block.insts[place - 1], inst):
            before = [*rest[: place - 1], inst, *rest[place - 1 :]]
            yield RegisterSite("early", line, _shown(inst), f"before {_shown(block.insts[place - 1])}", "", {}, block, before)

    def _slot(self, inst: Inst, line: int) -> Iterator[RegisterSite]:
        """A spill in another one's place in memory, or in its lane."""
        if not self._is_spill(inst):
            return
        own = _immediates(inst)
        others = {slot for slot in self._slots[inst.opcode] if len(slot) == len(own) and slot != own}
        if others:
            given = iter(self._drawn.choice(sorted(others, key=repr)))
            now = Operands.of(inst)
            uses = tuple(use if isinstance(use, Slice) else next(given) for use in inst.uses)
            changed = Operands(now.defs, uses, now.predicate, now.implicit_defs, now.implicit_uses)
            yield self._site("slot", line, inst, {inst: changed})

    def _is_spill(self, inst: Inst) -> bool:
        return self._spills is not None and self._spills.copied(inst) is not None

    def _is_movable(self, inst: Inst) -> bool:
        traits = self._table.traits(inst.opcode)
        return traits.move or self._is_spill(inst) or (traits.cheap and not any(isinstance(use, Slice) for use in inst.uses))

    def _site(self, kind: str, line: int, inst: Inst, changes: Mapping[Inst, Operands]) -> RegisterSite:
        """With the instruction as it is and as it becomes."""
        site = RegisterSite(kind, line, _shown(inst), "", "", changes)
        after, _ = site.on(lambda: (_shown(inst), ""))
        return RegisterSite(kind, line, site.before, after, "", changes)


def _one(inst: Inst, kind: str, at: int, new: Slice) -> Operands:
    """One of the operands that are read (or written) another, and its tied partner with it."""
    now = Operands.of(inst)
    defs, uses, guard = list(now.defs), list(now.uses), now.predicate
    implicit_defs, implicit_uses = list(now.implicit_defs), list(now.implicit_uses)
    if kind == "written":
        if at < len(defs):
            defs[at] = new
            for d, u in inst.tied:
                uses[u] = new if d == at else uses[u]
        else:
            implicit_defs[at - len(defs)] = new
        return Operands(tuple(defs), tuple(uses), guard, tuple(implicit_defs), tuple(implicit_uses))
    registers = [i for i, use in enumerate(uses) if isinstance(use, Slice)]
    if at < len(registers):
        uses[registers[at]] = new
        for d, u in inst.tied:
            defs[d] = new if u == registers[at] else defs[d]
    elif at - len(registers) < len(implicit_uses):
        implicit_uses[at - len(registers)] = new
    else:
        guard = new
    return Operands(tuple(defs), tuple(uses), guard, tuple(implicit_defs), tuple(implicit_uses))


def _shown(inst: Inst) -> str:
    return str(inst).strip()


def _pieces(inst: Inst) -> Iterator[Slice]:
    yield from inst.reads()
    yield from inst.writes()


def _immediates(inst: Inst) -> tuple[Operand, ...]:
    return tuple(use for use in inst.uses if not isinstance(use, Slice))


def _depend(first: Inst, second: Inst) -> bool:
    """Whether one writes what the other touches."""

    def numbers(pieces: Iterator[Slice]) -> set[tuple[str, int]]:
        return {(p.reg.cls, n) for p in pieces for n in range(p.first, p.first + p.count)}

    written = numbers(first.writes()), numbers(second.writes())
    return bool(written[0] & numbers(_pieces(second)) or written[1] & numbers(_pieces(first)))
