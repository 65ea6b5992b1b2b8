"""What ends more values than it makes stands right behind what it reads: fewer registers hold values in between.

Selection makes a value where it is first asked for. So the sum of weights that two products come between, each weight long rounded
for them, holds all weights until it is made, where a running sum holds one register. An instruction moves up within its block, if
it has no effects, reads no memory, and the values that it reads for the last time are more than those that it makes. It moves to
behind the last of what it reads, but over no load from global memory: those should be under way before anything waits for one. What
stands near is left to who orders the code.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Block, Function, Inst, Slice
from tilefw.machine.liveness import Unit, analyse, effects, written_once
from tilefw.machine.table import InstructionTable


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
    once = written_once(function)
    lives = analyse(function, table, once)
    return sum(_reorder(block, table, once, lives.live_out[i], apart) for i, block in enumerate(function.blocks))


def _reorder(block: Block, table: InstructionTable, once: Collection[Unit], live_out: Collection[Unit], apart: int) -> int:
    last = _last_reads(block, live_out)
    # Where each instruction stands: behind which one, and as which of those behind it. A unit's place is its writer's.
    order: list[tuple[int, int]] = []
    made: dict[Unit, tuple[int, int]] = {}
    loaded = moved = 0  # `loaded`: behind the last load from global memory
    for at, inst in enumerate(block.insts):
        place = (at, -1)
        if table.traits(inst.opcode).memory == "global":
            loaded = at
        elif _may_move(inst, table, once) and _ends(inst, at, last) > sum(piece.count for piece in inst.defs):
            behind = max([loaded, *(made[unit][0] for unit in _read(inst) if unit in made)])
            if at - behind > apart:
                place = (behind, at)
                moved += 1
        order.append(place)
        made.update((unit, place) for piece in inst.writes() for unit in piece.units)
    if moved:
        block.insts = [block.insts[i] for i in sorted(range(len(order)), key=order.__getitem__)]
    return moved


def _last_reads(block: Block, live_out: Collection[Unit]) -> dict[Unit, int]:
    """The last instruction of a block that reads a unit; none for what is read after it."""
    found: dict[Unit, int] = {}
    for at, inst in enumerate(block.insts):
        found.update(dict.fromkeys((unit for unit in effects(inst, ())[0] if unit not in live_out), at))
    return found


def _ends(inst: Inst, at: int, last: dict[Unit, int]) -> int:
    return sum(last.get(unit) == at for unit in _read(inst))


def _read(inst: Inst) -> set[Unit]:
    return {unit for use in inst.uses if isinstance(use, Slice) for unit in use.units}


def _may_move(inst: Inst, table: InstructionTable, once: Collection[Unit]) -> bool:
    """Whether an instruction only computes, all of it from registers that nothing else writes."""
    if not inst.defs or inst.targets or inst.predicate is not None or inst.tied or inst.implicit_defs or inst.implicit_uses:
        return False
    traits = table.traits(inst.opcode)
    if traits.effects or traits.memory or traits.move or inst.buffer is not None:
        return False
    return all(unit in once for piece in (*inst.defs, *inst.uses) if isinstance(piece, Slice) for unit in piece.units)
