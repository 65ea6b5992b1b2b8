"""What ends more values than it makes stands right behind what it reads: fewer registers hold values in between.

Selection makes a value where it is first asked for. So the sum of weights that two products come between, each weight long rounded
for them, holds all weights until it is made, where a running sum holds one register. An instruction moves up within its block, if
it has no effects, reads no memory, and the values that it reads for the last time are more than those that it makes. It moves to
behind the last of what it reads, but over no load from global memory: those should be under way before anything waits for one. What
stands near is left to who orders the code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Block, Function, Inst, Slice
from tilefw.machine.liveness import Unit, analyse, written_once
from tilefw.machine.table import InstructionTable, only_computes


@dataclass(frozen=True)
class EarlyEnds(FunctionPass):
    """Moves instructions that end more values than they make up to what they read."""

    name = "early-ends"
    table: InstructionTable

    def run(self, function: Function) -> None:
        early_ends(function, self.table)


_APART = 32  # instructions; schedulers look so far by themselves


def early_ends(function: Function, table: InstructionTable, apart: int = _APART) -> int:
    """Move what can be and stands more than `apart` instructions behind where it could; how many moved."""
    lives = _Lives(function, table)
    return sum(
        _reorder(block, table, partial(_may_move, table, lives, i), apart)
        for i, block in enumerate(function.blocks) if len(block.insts) > apart
    )


class _Lives:
    """What ends where: found out when a first instruction has so far to go, which in most kernels none has."""

    def __init__(self, function: Function, table: InstructionTable) -> None:
        self._function = function
        self._table = table
        self._last: dict[int, dict[Unit, int]] = {}

    @cached_property
    def once(self) -> Collection[Unit]:
        return written_once(self._function)

    @cached_property
    def _live_out(self) -> list[set[Unit]]:
        return analyse(self._function, self._table, self.once).live_out

    def last_reads(self, block: int) -> dict[Unit, int]:
        """The last instruction of a block that reads a unit; none for what is read after it."""
        if block not in self._last:
            self._last[block] = _last_reads(self._function.blocks[block], self._live_out[block])
        return self._last[block]


def _reorder(block: Block, table: InstructionTable, may_move: Callable[[Inst, int], bool], apart: int) -> int:
    # Where each instruction stands: behind which one, and as which of those behind it. A unit's place is its writer's.
    order: list[tuple[int, int]] = []
    made: dict[Unit, tuple[int, int]] = {}
    global_memory = {opcode for opcode in {inst.opcode for inst in block.insts} if table.traits(opcode).memory == "global"}
    loaded = moved = 0  # `loaded`: behind the last load from global memory
    for at, inst in enumerate(block.insts):
        place = (at, -1)
        if inst.opcode in global_memory:
            loaded = at
        elif at - loaded > apart:
            behind = _behind(inst, loaded, made)
            if at - behind > apart and may_move(inst, at):
                place = (behind, at)
                moved += 1
        order.append(place)
        for piece in inst.writes() if inst.implicit_defs else inst.defs:
            if piece.count == 1:
                made[piece.units[0]] = place
            else:
                made.update(dict.fromkeys(piece.units, place))
    if moved:
        block.insts = [block.insts[i] for i in sorted(range(len(order)), key=order.__getitem__)]
    return moved


def _behind(inst: Inst, loaded: int, made: Mapping[Unit, tuple[int, int]]) -> int:
    """Behind which one an instruction could stand: the last of what it reads, and of `loaded`."""
    behind = loaded
    for use in inst.uses:
        if use.__class__ is Slice:
            for unit in use.units:  # type: ignore[union-attr]
                place = made.get(unit)
                if place is not None and place[0] > behind:
                    behind = place[0]
    return behind


def _last_reads(block: Block, live_out: Collection[Unit]) -> dict[Unit, int]:
    found: dict[Unit, int] = {}
    for at, inst in enumerate(block.insts):
        for piece in inst.uses if inst.predicate is None and not inst.implicit_uses else inst.reads():
            if piece.__class__ is Slice:
                for unit in piece.units:  # type: ignore[union-attr]
                    if unit not in live_out:
                        found[unit] = at
    return found


def _read(inst: Inst) -> set[Unit]:
    return {unit for use in inst.uses if use.__class__ is Slice for unit in use.units}  # type: ignore[union-attr]


def _may_move(table: InstructionTable, lives: _Lives, block: int, inst: Inst, at: int) -> bool:
    """Whether an instruction only computes, all of it from registers that nothing else writes, and ends more than it makes."""
    if not only_computes(inst, table) or table.traits(inst.opcode).move:
        return False
    made, read = sum(piece.count for piece in inst.defs), _read(inst)
    if made >= len(read):
        return False
    last = lives.last_reads(block)
    return sum(last.get(unit) == at for unit in read) > made and all(
        unit in lives.once for piece in (*inst.defs, *inst.uses) if isinstance(piece, Slice) for unit in piece.units
    )
