"""Replays an allocation and trusts nothing of it: every read must find the value that the virtual code meant.

A state says of each location (a physical register, a lane of one, a word of scratch memory) which virtual units' current values it
surely holds. Values that nobody has written yet are anything, and so held everywhere. The transfer of an instruction:

    read  v at p     v must be in state[p], or not written yet
    write v at p     v leaves every other location; state[p] = {v}
    write under a predicate     as a write, and v's old value must have been at p, if v has one (see `subregisters`)

    a copy v = w of the virtual code     v leaves every location that does not hold w, and comes to each that does
    a copy under a predicate             v leaves every location that does not hold both
    a constant v = c of the virtual code     the same, with a location for each constant
    a copy p = q that allocation added, or a constant     state[p] = state[q]

The first group are instructions that stand in the physical code as they stood in the virtual one, in the same order. Copies and
constants of the virtual code may be missing, others may be added, no other instruction may. States meet by intersection; the
greatest fixed point over the blocks is found by iteration from "anything". (The scheme is regalloc2's, whose checker symbolically
executes the allocated code in the same way; `src/checker.rs` there.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from math import gcd
from typing import NamedTuple

from tilefw.api.errors import InternalError
from tilefw.machine.flow import successors
from tilefw.machine.inst import Function, Inst, Reg, Slice
from tilefw.machine.liveness import Unit, written_once
from tilefw.machine.spill_model import MEMORY, WHOLE, Location, SpillModel
from tilefw.machine.table import InstructionTable


class Snapshot(NamedTuple):
    """The virtual code as it stood before allocation: of each block its label, and its instructions with copies of them."""

    blocks: list[tuple[str, list[tuple[Inst, Inst]]]]
    once: frozenset[Unit]


def snapshot(function: Function) -> Snapshot:
    """A copy of the code before allocation, for `check_allocation`. Take it first: allocation changes instructions in place."""
    blocks = [(block.label, [(inst, _clone(inst)) for inst in block.insts]) for block in function.blocks]
    return Snapshot(blocks, written_once(function))


def _clone(inst: Inst) -> Inst:
    return Inst(
        inst.opcode, inst.defs, inst.uses, predicate=inst.predicate, predicate_not=inst.predicate_not, tied=inst.tied,
        implicit_defs=inst.implicit_defs, implicit_uses=inst.implicit_uses, targets=inst.targets, buffer=inst.buffer,
        volatile=inst.volatile, place=inst.place,
    )


def check_allocation(before: Snapshot, after: Function, table: InstructionTable, spills: SpillModel | None = None) -> None:
    """Check that every operand of `after` finds the value that it has in `before`, the `snapshot` from before allocation.

    `spills` is the model that allocation used, None where it spilled nothing. Raises InternalError with the instruction at fault.
    """
    blocks = _paired(before, after)
    for pairs in blocks:
        for virtual, physical in pairs:
            if virtual is not None and physical is not None:
                _check_instruction(virtual, physical, table, spills)
    _AllocationReplay(before, blocks, table, spills).run(after, successors(after, table))


# -- which instruction became which

Pair = tuple[Inst | None, Inst | None]  # (virtual, physical): one of them None for what went away, or came


def _paired(before: Snapshot, after: Function) -> list[list[Pair]]:
    if [label for label, _ in before.blocks] != [block.label for block in after.blocks]:
        raise InternalError("allocation changed the blocks, not only their registers")
    return [list(_pairs(old, block.insts)) for (_, old), block in zip(before.blocks, after.blocks, strict=True)]


def _pairs(old: list[tuple[Inst, Inst]], new: list[Inst]) -> Iterator[Pair]:
    position = {id(inst): i for i, (inst, _) in enumerate(old)}
    at = 0
    for inst in new:
        where = position.get(id(inst))
        if where is None:
            yield None, inst
            continue
        if where < at:
            raise InternalError(f"allocation moved or doubled '{inst}'")
        yield from ((virtual, None) for _, virtual in old[at:where])
        yield old[where][1], inst
        at = where + 1
    yield from ((virtual, None) for _, virtual in old[at:])


def _check_instruction(virtual: Inst, physical: Inst, table: InstructionTable, spills: SpillModel | None) -> None:
    """The same instruction; class, size, alignment, reserved registers, ties, and results that share no register with another
    or, where they come early, with an operand."""
    if _form(virtual) != _form(physical):
        raise InternalError(f"allocation changed '{virtual}' into '{physical}', not only its registers")
    for a, b in zip(_register_operands(virtual), _register_operands(physical), strict=True):
        if not _fits(a, b, table) and not (spills is not None and _accepted(virtual, a, b, table, spills)):
            raise InternalError(f"allocation puts {a} at {b} in '{physical}'")
    written = [unit for piece in physical.writes() for unit in piece.units]
    if len(written) != len(set(written)):
        raise InternalError(f"allocation gives two results of '{physical}' one register")
    for d, u in physical.tied:
        if physical.defs[d] != physical.uses[u]:
            raise InternalError(f"allocation parts the tied operands of '{physical}'")
    if table.traits(virtual.opcode).early:
        _check_early(virtual, physical)


def _form(inst: Inst) -> tuple[object, ...]:
    """All of an instruction but its registers."""
    literals = [u for u in inst.uses if not isinstance(u, Slice)]
    return inst.opcode, inst.predicate is None, inst.predicate_not, inst.tied, inst.targets, inst.buffer, inst.volatile, literals


def _register_operands(inst: Inst) -> list[Slice]:
    explicit = (*inst.defs, *(u for u in inst.uses if isinstance(u, Slice)), *inst.implicit_defs, *inst.implicit_uses)
    return [*explicit, *([inst.predicate] if inst.predicate is not None else [])]


def _fits(a: Slice, b: Slice, table: InstructionTable) -> bool:
    if a.reg.physical or not b.reg.physical:
        return (a.reg.cls, a.first, a.count) == (b.reg.cls, b.first, b.count) and a.reg.physical == b.reg.physical
    return table.file(a.reg.cls) == b.reg.cls and _is_valid_slice(a, b, table)


def _is_valid_slice(a: Slice, b: Slice, table: InstructionTable) -> bool:
    """As many registers, rightly aligned, that are there for values."""
    registers = range(b.first, b.first + b.count)
    reserved = table.reserved.get(b.reg.cls, frozenset())
    there = registers.stop <= (table.classes[b.reg.cls].count or 0) and reserved.isdisjoint(registers)
    # An operand needs no more alignment than the virtual code gave it, and a part of a register none beyond its own size.
    align = gcd(a.first, a.reg.align)
    while a.count < a.reg.width and align >= 2 * a.count:
        align //= 2
    return there and a.count == b.count and b.first % align == 0


def _accepted(inst: Inst, a: Slice, b: Slice, table: InstructionTable, spills: SpillModel) -> bool:
    """Whether the instruction may have this operand in a file that is not its class's own."""
    return not a.reg.physical and b.reg.physical and _is_valid_slice(a, b, table) and spills.accepts(inst, a.reg, b.reg.cls)


def _check_early(virtual: Inst, physical: Inst) -> None:
    same = [{unit for piece in inst.writes() for unit in piece.units} for inst in (virtual, physical)]
    reads = [[u for u in (*inst.uses, *inst.implicit_uses) if isinstance(u, Slice)] for inst in (virtual, physical)]
    for a, b in zip(*reads, strict=True):
        for v, p in zip(a.units, b.units, strict=True):
            if p in same[1] and v not in same[0]:
                raise InternalError(f"allocation gives a result of '{physical}', which comes early, the register of an operand")


# -- which value is where


Held = Mapping[Location, AbstractSet[int]]


class _LocationContents:
    """Which virtual units each location holds, by their numbers; which nobody has written; and where each stands."""

    __slots__ = ("held", "lanes", "unwritten", "where")

    def __init__(self, held: Held, unwritten: AbstractSet[int]) -> None:
        self.held = {location: set(values) for location, values in held.items()}
        self.unwritten = set(unwritten)
        self.where: dict[int, set[Location]] = {}
        self.lanes: dict[tuple[str, int], set[Location]] = {}
        for location, values in held.items():
            self._note(location, values)

    def holds(self, location: Location, value: int) -> bool:
        return value in self.unwritten or value in self.held.get(location, ())

    def both(self, a: int, b: int) -> set[Location]:
        """The locations that hold either value."""
        return {at for at in self.where.get(a, set()) | self.where.get(b, set()) if self.holds(at, a) and self.holds(at, b)}

    def at(self, location: Location) -> frozenset[int]:
        return frozenset(self.held.get(location, ()))

    def write(self, value: int, location: Location, beside: AbstractSet[int]) -> None:
        """`value` is new, and stands at `location` alone, with what is `beside` it."""
        self.forget(value)
        self.put(location, {value, *beside})

    def add(self, value: int, location: Location) -> None:
        """`value` stands at `location` as well."""
        self.held.setdefault(location, set()).add(value)
        self._note(location, (value,))

    def put(self, location: Location, values: AbstractSet[int]) -> None:
        """What stood at `location`, or at lanes of it, is overwritten."""
        file, number, lane = location
        over = self.lanes.get((file, number), set()) if lane == WHOLE else {(file, number, WHOLE)}
        for gone in (location, *over):
            for value in self.held.pop(gone, ()):
                self.where[value].discard(gone)
        self.held[location] = set(values)
        self._note(location, values)

    def forget(self, value: int) -> None:
        """What the unit held is gone."""
        self.unwritten.discard(value)
        for place in self.where.pop(value, ()):
            self.held[place].discard(value)

    def _note(self, location: Location, values: Iterable[int]) -> None:
        for value in values:
            self.where.setdefault(value, set()).add(location)
        if isinstance(location[1], int) and location[2] != WHOLE:
            self.lanes.setdefault((location[0], location[1]), set()).add(location)


class _AllocationReplay:
    """The states of all blocks, to a fixed point, and then what each instruction reads."""

    def __init__(self, before: Snapshot, blocks: list[list[Pair]], table: InstructionTable, spills: SpillModel | None) -> None:
        self.blocks = blocks
        self.table = table
        self.spills = spills
        self.numbers: dict[tuple[object, int], int] = {}
        self.literals: dict[int, int] = {}  # of the numbers of constants, the integer
        self.once = {self.number(unit) for unit in before.once}

    def number(self, unit: Unit) -> int:
        """The number of a virtual unit. Files are named, not objects: a physical register is a value of its own."""
        reg, index = unit
        return self.numbers.setdefault((reg.cls if reg.physical else reg, index), len(self.numbers))

    def run(self, after: Function, following: list[list[int]]) -> None:
        entry: list[tuple[Held, AbstractSet[int]] | None] = [None] * len(self.blocks)
        entry[0] = self._beginning()
        work = [0]
        while work:
            i = work.pop()
            start = entry[i]
            assert start is not None
            state = _LocationContents(*start)
            for pair in self.blocks[i]:
                self._step(state, pair, None)
            for j in following[i]:
                known = entry[j]
                met = _saved(state) if known is None else _meet(*known, state.held, state.unwritten)
                if met != known:
                    entry[j] = met
                    work.append(j)
        for block, pairs, start in zip(after.blocks, self.blocks, entry, strict=True):
            if start is not None:  # else it is never reached
                state = _LocationContents(*start)
                for pair in pairs:
                    self._step(state, pair, block.label)

    def _beginning(self) -> tuple[Held, AbstractSet[int]]:
        """Physical registers hold themselves; nobody has written any other value."""
        for pairs in self.blocks:
            for virtual, _ in pairs:
                for piece in _register_operands(virtual) if virtual is not None else ():
                    for unit in piece.units:
                        self.number(unit)
        held = {(name, i, WHOLE): {number} for (name, i), number in self.numbers.items() if isinstance(name, str)}
        unwritten = {number for (name, _), number in self.numbers.items() if isinstance(name, Reg)}
        return held, unwritten

    def _step(self, state: _LocationContents, pair: Pair, block: str | None) -> None:
        """Apply one instruction; with a `block`, report what it reads wrongly."""
        virtual, physical = pair
        if virtual is None:
            assert physical is not None
            self._added(state, physical)
        elif physical is None:
            self._gone(state, virtual)
        else:
            if block is not None:
                self._check_reads(state, virtual, physical, block)
            self._kept(state, virtual, physical)

    def _added(self, state: _LocationContents, inst: Inst) -> None:
        constant = self._constant(inst)
        if constant is not None:
            for to, (place, itself) in zip(_locations(inst.defs), constant, strict=True):
                state.put(to, state.at(place) | {itself})
            return
        found = self._copied(state, inst)
        if found is None or inst.predicate is not None:
            raise InternalError(f"allocation added '{inst}', which is not a copy")
        values = [state.at(source) for _, source in found]
        for (to, _), value in zip(found, values, strict=True):
            state.put(to, value)

    def _copied(self, state: _LocationContents, inst: Inst) -> list[tuple[Location, Location]] | None:
        """The locations that an instruction copies, if that is all that it does."""
        if self.table.traits(inst.opcode).move:
            (to,), (source,) = inst.defs, inst.uses
            if not isinstance(source, Slice):
                return None
            return list(zip(_locations([to]), _locations([source]), strict=True))
        found = self.spills.copied(inst) if self.spills is not None else None
        if found is None or self.spills is None:
            return None
        pointer = self.spills.pointer(inst) if self.spills.pointer is not None else None
        base = 0 if pointer is None else self._literal(state, inst, pointer)
        return [(_moved(to, base), _moved(source, base)) for to, source in found]

    def _literal(self, state: _LocationContents, inst: Inst, pointer: Slice) -> int:
        """The constant that a register surely holds."""
        (place,) = _locations([pointer])
        known = {self.literals[number] for number in state.at(place) if number in self.literals}
        if len(known) != 1:
            raise InternalError(f"allocation added '{inst}' at an address of {place[0]}[{place[1]}], which holds no constant")
        return known.pop()

    def _constant(self, inst: Inst) -> list[tuple[Location, int]] | None:
        """Of each result of an instruction that makes constants: a location that stays as it is, and the constant as a value."""
        if not self.table.traits(inst.opcode).cheap or inst.predicate is not None or any(isinstance(u, Slice) for u in inst.uses):
            return None
        name = f"={inst.opcode} {inst.uses!r}"
        results = range(sum(piece.count for piece in inst.defs))
        found = [((name, i, WHOLE), self.numbers.setdefault((name, i), len(self.numbers))) for i in results]
        if len(found) == 1 and len(inst.uses) == 1 and isinstance(inst.uses[0], int):
            self.literals[found[0][1]] = inst.uses[0]
        return found

    def _gone(self, state: _LocationContents, inst: Inst) -> None:
        """A copy or a constant of the virtual code that stands nowhere any more."""
        results = [self.number(unit) for piece in inst.defs for unit in piece.units]
        constant = self._constant(inst)
        source = inst.uses[0] if len(inst.uses) == 1 else None
        if constant is not None:
            places = [{place, *state.where.get(itself, ())} for place, itself in constant]
            unwritten = [False] * len(results)
        elif self.table.traits(inst.opcode).move and isinstance(source, Slice):
            olds = [self.number(unit) for unit in source.units]
            places = [set(state.where.get(old, ())) for old in olds]
            unwritten = [old in state.unwritten for old in olds]
            for i, (old, value) in enumerate(zip(olds, results, strict=True)):
                if inst.predicate is not None and value not in self.once:  # the one value or the other: what holds both
                    places[i] = state.both(old, value)
                    unwritten[i] &= value in state.unwritten
        else:
            raise InternalError(f"allocation lost '{inst}'")
        for value, where, unknown in zip(results, places, unwritten, strict=True):
            state.forget(value)
            if unknown:
                state.unwritten.add(value)
            for place in where:
                state.add(value, place)

    def _kept(self, state: _LocationContents, virtual: Inst, physical: Inst) -> None:
        results = [self.number(unit) for piece in virtual.writes() for unit in piece.units]
        changed = set(results)
        source = physical.uses[0] if len(physical.uses) == 1 else None
        constant = self._constant(virtual)
        beside: list[AbstractSet[int]] = [frozenset()] * len(results)
        if constant is not None:
            beside = [state.at(place) | {itself} for place, itself in constant]
        elif self.table.traits(virtual.opcode).move and virtual.predicate is None and isinstance(source, Slice):
            beside = [state.at(place) for place in _locations([source])]
        for value, place, others in zip(results, _locations(physical.writes()), beside, strict=True):
            state.write(value, place, others - changed)
        for value, (place, itself) in zip(results, constant or (), strict=constant is not None):
            for at in {place, *state.where.get(itself, ())}:
                state.add(value, at)

    def _check_reads(self, state: _LocationContents, virtual: Inst, physical: Inst, block: str) -> None:
        for a, b, kept in _read_operands(virtual, physical):
            for v, place in zip(a.units, _locations([b]), strict=True):
                value = self.number(v)
                if not state.holds(place, value) and not (kept and value in self.once):
                    where = f"{place[0]}[{place[1]}]"
                    raise InternalError(f"allocation of {block}: '{physical}' reads {where}, which does not hold {v[0]}[{v[1]}]")


def _moved(location: Location, base: int) -> Location:
    """A location of memory from `base` on; any other stays."""
    place, number, lane = location
    return (place, number + base, lane) if place == MEMORY else location


def _locations(pieces: Iterable[Slice]) -> list[Location]:
    return [(reg.cls if reg.physical else f"%{reg.id}", i, WHOLE) for piece in pieces for reg, i in piece.units]


def _read_operands(virtual: Inst, physical: Inst) -> Iterator[tuple[Slice, Slice, bool]]:
    """Operands that are read, as (virtual, physical, whether only a false predicate keeps them)."""
    for a, b in zip((*virtual.uses, *virtual.implicit_uses), (*physical.uses, *physical.implicit_uses), strict=True):
        if isinstance(a, Slice) and isinstance(b, Slice):
            yield a, b, False
    if virtual.predicate is not None and physical.predicate is not None:
        yield virtual.predicate, physical.predicate, False
        for a, b in zip(virtual.writes(), physical.writes(), strict=True):
            yield a, b, True


def _saved(state: _LocationContents) -> tuple[Held, AbstractSet[int]]:
    """What a state says, by itself."""
    return {location: frozenset(values) for location, values in state.held.items() if values}, frozenset(state.unwritten)


def _meet(a: Held, free_a: AbstractSet[int], b: Held, free_b: AbstractSet[int]) -> tuple[Held, AbstractSet[int]]:
    """What holds in both: a value that one side has not written stands where the other has it."""
    both = free_a & free_b
    met: dict[Location, AbstractSet[int]] = {}
    for location in a.keys() | b.keys():
        of_a, of_b = a.get(location, frozenset()), b.get(location, frozenset())
        if values := (of_a & of_b | of_a & free_b | of_b & free_a) - both:
            met[location] = values
    return met, both
