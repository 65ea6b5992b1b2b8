"""What begins a value and ends none stands right before what reads it: fewer registers hold values in between.

Selection makes the elements of an index together, where one of them is first asked for, though comparisons much further on read the
others. An instruction moves down within its block if it only computes, its result is a value, and so is what it reads, all of which
is read at its new place or later anyway. It moves to before the first that reads its result. What stands near is left to who orders
the code. (`early_ends` is the reverse.)
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Block, Function, Inst, Reg, Slice
from tilefw.machine.table import InstructionTable, only_computes


@dataclass(frozen=True)
class LateBegins(FunctionPass):
    """Moves instructions that begin values and end none down to what reads them."""

    name = "late-begins"
    table: InstructionTable

    def run(self, function: Function) -> None:
        late_begins(function, self.table)


_APART = 16  # instructions; schedulers look so far by themselves


def late_begins(function: Function, table: InstructionTable, apart: int = _APART) -> int:
    """Move what can be and stands more than `apart` instructions before what reads it; how many moved."""
    named = _NamedRegisters(function)
    return sum(_reorder(block, table, named, apart) for block in function.blocks if len(block.insts) > apart)


class _NamedRegisters:
    """Which registers are values, and which are named in several blocks: found out when a first instruction stands so far away."""

    def __init__(self, function: Function) -> None:
        self._function = function

    @cached_property
    def values(self) -> set[Reg]:
        """The registers that one instruction alone writes."""
        written: set[Reg] = set()
        again: set[Reg] = set()
        for inst in self._function.insts():
            for piece in inst.writes() if inst.implicit_defs else inst.defs:
                (again if piece.reg in written or piece.reg.physical else written).add(piece.reg)
        return written - again

    @cached_property
    def shared(self) -> set[Reg]:
        """Those of several blocks, which count as read behind each of them."""
        found: set[Reg] = set()
        seen: set[Reg] = set()
        for block in self._function.blocks:
            named = {use.reg for inst in block.insts for use in inst.uses if isinstance(use, Slice)}
            named.update(piece.reg for inst in block.insts for piece in inst.defs)
            found |= named & seen
            seen |= named
        return found


def _reorder(block: Block, table: InstructionTable, named: _NamedRegisters, apart: int) -> int:
    first: dict[Reg, int] = {}  # of those behind the open instruction: where the first stands that reads a register
    last: dict[Reg, int] = {}  # and the last one
    written: set[Reg] = set()  # and what they write
    before: dict[int, int] = {}  # for those that move, before which they do
    for at in range(len(block.insts) - 1, -1, -1):
        inst = block.insts[at]
        defs, place = inst.defs, at
        reader = first.get(defs[0].reg, at) if len(defs) == 1 else at
        if reader - at > apart and _moves(inst, table, named, last, written, reader):
            place = before[at] = reader
        for piece in inst.uses if inst.predicate is None and not inst.implicit_uses else inst.reads():
            if piece.__class__ is Slice:
                reg = piece.reg  # type: ignore[union-attr]
                if place == at:  # which stands before all that was seen
                    first[reg] = at
                    if reg not in last:
                        last[reg] = at
                else:
                    first[reg] = min(first.get(reg, place), place)
                    last[reg] = max(last.get(reg, place), place)
        for piece in inst.writes() if inst.implicit_defs else defs:
            written.add(piece.reg)
    if before:
        order = sorted(range(len(block.insts)), key=lambda at: (before[at], 0, at) if at in before else (at, 1, at))
        block.insts = [block.insts[at] for at in order]
    return len(before)


def _moves(
    inst: Inst, table: InstructionTable, named: _NamedRegisters, last: Mapping[Reg, int], written: Set[Reg], place: int
) -> bool:
    """Whether an instruction may stand before `place`, and ends no value there."""
    read = [use.reg for use in inst.uses if isinstance(use, Slice)]
    if not read or not all(last.get(reg, -1) >= place or reg in named.shared for reg in read):
        return False
    return only_computes(inst, table) and written.isdisjoint(read) and named.values.issuperset([inst.defs[0].reg, *read])
