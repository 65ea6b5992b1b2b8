"""What begins a value and ends none stands right before what reads it: fewer registers hold values in between.

Selection makes the elements of an index together, where one of them is first asked for, though comparisons much further on read the
others. An instruction moves down within its block if it only computes, its result is a value, and so is what it reads, all of which
is read at its new place or later anyway. It moves to before the first that reads its result. What stands near is left to who orders
the code. (`early_ends` is the reverse.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Block, Function, Reg, Slice
from tilefw.machine.liveness import analyse
from tilefw.machine.table import InstructionTable, only_computes


@dataclass(frozen=True)
class LateBegins(FunctionPass):
    """Moves instructions that begin values and end none down to what reads them."""

    name = "late-begins"
    table: InstructionTable

    def run(self, function: Function) -> None:
        late_begins(function, self.table)


_APART = 16  # instructions; schedulers look so far by themselves
_Place = tuple[int, int, int]  # the instruction it stands at, 0 if before it and 1 for that one, where it stood


def late_begins(function: Function, table: InstructionTable, apart: int = _APART) -> int:
    """Move what can be and stands more than `apart` instructions before what reads it; how many moved."""
    lives = _Lives(function, table)
    return sum(_reorder(block, table, lives, i, apart) for i, block in enumerate(function.blocks))


class _Lives:
    """What is a value, and what lives on behind a block: found out when a first instruction stands so far away."""

    def __init__(self, function: Function, table: InstructionTable) -> None:
        self._function = function
        self._table = table

    @cached_property
    def values(self) -> Set[Reg]:
        """The registers that one instruction alone writes."""
        writes = Counter(piece.reg for inst in self._function.insts() for piece in inst.writes())
        return {reg for reg, count in writes.items() if count == 1 and not reg.physical}

    @cached_property
    def live_out(self) -> list[set[Reg]]:
        return [{reg for reg, _ in live} for live in analyse(self._function, self._table).live_out]


def _reorder(block: Block, table: InstructionTable, lives: _Lives, number: int, apart: int) -> int:
    places: list[_Place] = []  # from the last instruction on
    first: dict[Reg, _Place] = {}  # of those behind the open instruction: the place of the first that reads a register
    last: dict[Reg, int] = {}  # and where the last one stands
    written: set[Reg] = set()  # and what they write
    moved = 0
    for at in range(len(block.insts) - 1, -1, -1):
        inst = block.insts[at]
        place = (at, 1, at)
        reader = first.get(inst.defs[0].reg) if len(inst.defs) == 1 else None
        if reader is not None and reader[0] - at > apart and only_computes(inst, table):
            read = {use.reg for use in inst.uses if isinstance(use, Slice)}
            alive = all(last.get(reg, -1) >= reader[0] or reg in lives.live_out[number] for reg in read)
            if read and alive and read.isdisjoint(written) and {inst.defs[0].reg, *read} <= lives.values:
                place = (reader[0], 0, at)
                moved += 1
        places.append(place)
        for piece in inst.uses if inst.predicate is None and not inst.implicit_uses else inst.reads():
            if isinstance(piece, Slice):
                reg = piece.reg
                first[reg] = min(first.get(reg, place), place)
                last[reg] = max(last.get(reg, -1), place[0])
        written.update(piece.reg for piece in inst.writes())
    if moved:
        places.reverse()
        block.insts = [block.insts[at] for at in sorted(range(len(places)), key=places.__getitem__)]
    return moved
