"""Replays an allocation and trusts nothing of it: every read must find the value that the virtual code meant.

A state says for each physical unit which virtual units' current values it surely holds. The transfer of an instruction:

    read  v at p     v must be in state[p]
    write v at p     v leaves every other unit; state[p] = {v}
    copy  v at p from w at q    state[p] = state[q] with v; v leaves every unit that does not hold w
    write under a predicate     as a write, and v's old value must have been at p, or nowhere at all

States meet by intersection; the greatest fixed point over the blocks is found by iteration from "anything". (The scheme is
regalloc2's, whose checker symbolically executes the allocated code in the same way; `src/checker.rs` there.)
"""

from __future__ import annotations

from collections.abc import Iterator

from tilefw.api.errors import InternalError
from tilefw.machine.flow import successors
from tilefw.machine.inst import Function, Inst, Slice
from tilefw.machine.liveness import Unit, units
from tilefw.machine.table import InstructionTable

State = dict[Unit, frozenset[Unit]]
_NOTHING: frozenset[Unit] = frozenset()


class _Held:
    """A state as instructions change it: what each physical unit holds, and where each virtual unit stands."""

    __slots__ = ("state", "where")

    def __init__(self, state: State) -> None:
        self.state = dict(state)
        self.where: dict[Unit, set[Unit]] = {}
        for unit, values in state.items():
            for value in values:
                self.where.setdefault(value, set()).add(unit)

    def put(self, value: Unit, unit: Unit, beside: frozenset[Unit] = _NOTHING) -> None:
        """`value` is new, and stands in `unit` alone, with what is `beside` it."""
        for old in self.where.pop(value, ()):
            self.state[old] -= {value}
        for gone in self.state.get(unit, _NOTHING):
            self.where[gone].discard(unit)
        self.state[unit] = held = beside | {value}
        for now in held:
            self.where.setdefault(now, set()).add(unit)


def check_allocation(before: Function, after: Function, table: InstructionTable) -> None:
    """Raises InternalError with the instruction at fault. `before` is the virtual code, of the same instructions as `after`."""
    _same_shape(before, after)
    _well_placed(before, after, table)
    following = successors(after, table)
    entry: list[State | None] = [None] * len(after.blocks)
    entry[0] = {}
    work = [0]
    while work:
        i = work.pop()
        held = _Held(entry[i] or {})
        for virtual, physical in zip(before.blocks[i].insts, after.blocks[i].insts, strict=True):
            _transfer(held, virtual, physical, table, None)
        state = held.state
        for j in following[i]:
            met = state if entry[j] is None else _meet(entry[j] or {}, state)
            if entry[j] is None or met != entry[j]:
                entry[j] = dict(met)
                work.append(j)
    for i, start in enumerate(entry):
        if start is None:
            continue  # never reached
        held = _Held(start)
        for virtual, physical in zip(before.blocks[i].insts, after.blocks[i].insts, strict=True):
            _transfer(held, virtual, physical, table, after.blocks[i].label)


def _meet(a: State, b: State) -> State:
    met = {unit: a[unit] & b[unit] for unit in a.keys() & b.keys()}
    return {unit: held for unit, held in met.items() if held}


def _transfer(held: _Held, virtual: Inst, physical: Inst, table: InstructionTable, block: str | None) -> None:
    """Apply one instruction; with a `block`, report what it reads wrongly."""
    if block is not None:
        _check_reads(held, virtual, physical, block)
    copies = table.traits(virtual.opcode).move and virtual.predicate is None and len(virtual.uses) == 1
    if copies and isinstance(source := physical.uses[0], Slice):
        _copy(held, virtual, physical, source)
        return
    for v, p in _written(virtual, physical):
        held.put(v, p)


def _copy(held: _Held, virtual: Inst, physical: Inst, source: Slice) -> None:
    copied = [held.state.get(unit, _NOTHING) for unit in units(source)]
    for (v, p), values in zip(_written(virtual, physical), copied, strict=True):
        held.put(v, p, values - {v})


def _written(virtual: Inst, physical: Inst) -> Iterator[tuple[Unit, Unit]]:
    for a, b in zip(virtual.writes(), physical.writes(), strict=True):
        yield from zip(units(a), units(b), strict=True)


def _check_reads(held: _Held, virtual: Inst, physical: Inst, block: str) -> None:
    kept = set(map(id, virtual.defs)) if virtual.predicate is not None else set()
    for a, b in zip(virtual.reads(), physical.reads(), strict=True):
        for v, p in zip(units(a), units(b), strict=True):
            if v[0].physical or v in held.state.get(p, _NOTHING):
                continue
            if id(a) in kept and not held.where.get(v):
                continue  # a first, conditional definition has no old value to keep
            raise InternalError(f"allocation of {block}: '{physical}' reads {p[0]}[{p[1]}], which does not hold {v[0]}[{v[1]}]")


def _same_shape(before: Function, after: Function) -> None:
    shapes = [[(b.label, [i.opcode for i in b.insts]) for b in f.blocks] for f in (before, after)]
    if shapes[0] != shapes[1]:
        raise InternalError("allocation changed the instructions, not only their registers")


def _well_placed(before: Function, after: Function, table: InstructionTable) -> None:
    """Class, size, alignment, reserved registers, ties, and results that do not overlap."""
    for virtual, physical in zip(before.insts(), after.insts(), strict=True):
        for a, b in zip((*virtual.writes(), *virtual.reads()), (*physical.writes(), *physical.reads()), strict=True):
            file = table.file(a.reg.cls) if b.reg.physical else a.reg.cls
            fits = b.reg.cls == file and a.count == b.count and b.first + b.count <= b.reg.width
            if b.reg.physical and not a.reg.physical:
                reserved = table.reserved.get(b.reg.cls, frozenset())
                aligned = (b.first - a.first) % a.reg.align == 0
                fits = fits and aligned and reserved.isdisjoint(range(b.first, b.first + b.count))
            if not fits:
                raise InternalError(f"allocation puts {a} at {b} in '{physical}'")
        written = [unit for piece in physical.writes() for unit in units(piece)]
        if len(written) != len(set(written)):
            raise InternalError(f"allocation gives two results of '{physical}' one register")
        for d, u in physical.tied:
            if physical.defs[d] != physical.uses[u]:
                raise InternalError(f"allocation parts the tied operands of '{physical}'")
