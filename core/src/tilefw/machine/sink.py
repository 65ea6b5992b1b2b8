"""Sinking into loops' preheaders: what only a loop needs is computed only where the loop is entered.

Selection guards a loop by a branch around it, and makes before the branch what the loop begins with: descriptors, addresses,
bounds. Where the loop has no iteration these are computed for nothing. An instruction moves behind the guard, into a block between
it and the loop, if it has no effects and reads no memory, nothing that stays between it and the guard reads or writes its results
or writes what it reads, and its results are not live where the guard goes around the loop. What moves keeps its order. (The reverse
of loop-invariant code motion, `hoist`; "Engineering a Compiler", §10.3.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilefw.machine.flow import loops, predecessors, successors
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Block, Function, Inst, Slice
from tilefw.machine.liveness import Unit, analyse
from tilefw.machine.table import InstructionTable, only_computes


@dataclass(frozen=True)
class SinkIntoLoops(FunctionPass):
    """Moves instructions whose results a loop alone reads from before the loop's guard to behind it."""

    name = "sink"
    table: InstructionTable

    def run(self, function: Function) -> None:
        sink(function, self.table)


def sink(function: Function, table: InstructionTable) -> int:
    """Move what can be, for each loop by itself; how many instructions moved."""
    following = successors(function, table)
    starts = {start for start, _ in loops(following)}
    before = predecessors(following)
    # From the end on, so that the numbers of blocks before a new one stay.
    guarded = [start for start in sorted(starts, reverse=True) if _is_guarded(before[start], following, start)]
    if not guarded:
        return 0
    if not any(_parted(function.blocks[start - 1].insts, table, set())[1] for start in guarded):
        return 0  # whatever is live around the guards
    # Sinking leaves these sets as they are: its results are not live around the guard, and what it reads stays live before it.
    around = {block.label: live for block, live in zip(function.blocks, analyse(function, table).live_in, strict=True)}
    return sum(_into(function, table, start, around) for start in guarded)


def _is_guarded(entries: list[int], following: list[list[int]], start: int) -> bool:
    """Whether a loop is entered by falling into it alone, from a block that may go elsewhere."""
    outside = [block for block in entries if block < start]
    return outside == [start - 1] and len(following[start - 1]) == 2 and max(following[start - 1]) > start


def _into(function: Function, table: InstructionTable, start: int, around: Mapping[str, set[Unit]]) -> int:
    guard = function.blocks[start - 1]
    if not guard.insts or len(guard.insts[-1].targets) != 1 or guard.insts[-1].predicate is not None:
        return 0
    kept, sunk = _parted(guard.insts, table, around[guard.insts[-1].targets[0]])
    if sunk:
        guard.insts = kept
        function.blocks.insert(start, Block(_label(function, function.blocks[start].label), sunk))
    return len(sunk)


def _parted(insts: list[Inst], table: InstructionTable, around: set[Unit]) -> tuple[list[Inst], list[Inst]]:
    """The instructions before a guard that stay, and those that sink, both in order; `around` is live where the guard goes."""
    read, written = set(around), set[Unit]()  # by what stays
    kept: list[Inst] = []
    sunk: list[Inst] = []
    for place in range(len(insts) - 1, -1, -1):
        inst = insts[place]
        if inst.targets and inst is not insts[-1]:  # behind another branch nothing moves
            return insts[: place + 1] + kept[::-1], sunk[::-1]
        if _is_movable(inst, table) and _is_free(inst, read, written):
            sunk.append(inst)
            continue
        read.update(*[piece.units for piece in inst.reads()])
        written.update(*[piece.units for piece in inst.writes()])
        kept.append(inst)
    return kept[::-1], sunk[::-1]


def _is_free(inst: Inst, read: set[Unit], written: set[Unit]) -> bool:
    """Whether an instruction that only computes may stand behind others that read and write these units."""
    for piece in inst.defs:
        if not (read.isdisjoint(piece.units) and written.isdisjoint(piece.units)):
            return False
    return all([written.isdisjoint(use.units) for use in inst.uses if isinstance(use, Slice)])


def _is_movable(inst: Inst, table: InstructionTable) -> bool:
    return only_computes(inst, table) and not table.traits(inst.opcode).convergent and not any(
        [piece.reg.physical for piece in (*inst.defs, *inst.uses) if isinstance(piece, Slice)]
    )


def _label(function: Function, loop: str) -> str:
    """A label that no block has."""
    labels = {block.label for block in function.blocks}
    found = f"{loop}_entry"
    while found in labels:
        found += "_"
    return found
