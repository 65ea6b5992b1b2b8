"""The control flow graph of a function: exits, successors, predecessors, reachable blocks, loops and their depths.

A conditional branch is a jump under a predicate, or an instruction that may fall through (`table.BRANCH`) and reads its condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tilefw.api.errors import InternalError, PluginError
from tilefw.machine.inst import Function, Inst
from tilefw.machine.table import InstructionTable


class BlockExit(NamedTuple):
    """An edge out of a block: the index of the instruction after which control leaves (-1: at the end), and the block it goes
    to."""

    place: int
    block: int


def exits(function: Function, table: InstructionTable) -> list[list[BlockExit]]:
    """The edges out of each block, in order. Raises InternalError for a label that is not there, PluginError (TFW0513) for a jump
    to one target that reads a register: it would never fall through, whatever the register holds."""
    index = {block.label: number for number, block in enumerate(function.blocks)}
    opcodes = {inst.opcode for block in function.blocks for inst in block.insts}
    terminators = {opcode for opcode in opcodes if table.traits(opcode).terminator}
    found: list[list[BlockExit]] = []
    for number, block in enumerate(function.blocks):
        edges: list[BlockExit] = []
        falls = True
        for place, inst in enumerate(block.insts):
            if not inst.targets and inst.opcode not in terminators:
                continue
            for target in inst.targets:
                if target not in index:
                    raise InternalError(f"{function.name}: branch to unknown label {target}")
                edges.append(BlockExit(place, index[target]))
            if inst.predicate is None and inst.opcode in terminators:
                falls = False
                if len(inst.targets) == 1 and any(True for _ in inst.reads()):
                    raise _conditional_jump(inst, function, table)
        if falls and number + 1 < len(function.blocks):
            edges.append(BlockExit(-1, number + 1))
        found.append(edges)
    return found


def _conditional_jump(inst: Inst, function: Function, table: InstructionTable) -> PluginError:
    return PluginError(
        f"{table.name} says that {inst.opcode} never falls through, and it has a condition", code="TFW0513", place=inst.place,
        note=f"in {function.name}: {inst}",
        help="give a branch that may fall through the traits BRANCH, or put its condition into `predicate`",
    )


def reached(edges: Sequence[Sequence[BlockExit]]) -> list[int]:
    """The blocks that are reachable from the entry, ascending."""
    found = {0}
    work = [0]
    while work:
        for _, successor in edges[work.pop()]:
            if successor not in found:
                found.add(successor)
                work.append(successor)
    return sorted(found)


def successors(function: Function, table: InstructionTable) -> list[list[int]]:
    """For each block the indexes of the blocks that may follow it; raises InternalError for a label that is not there."""
    return [[edge.block for edge in edges] for edges in exits(function, table)]


def predecessors(following: list[list[int]]) -> list[list[int]]:
    """The reverse of `successors`."""
    result: list[list[int]] = [[] for _ in following]
    for i, outs in enumerate(following):
        for j in outs:
            result[j].append(i)
    return result


def loops(following: list[list[int]]) -> list[tuple[int, int]]:
    """The first and the last block of each loop, the shorter ones first. A loop is the blocks, in layout order, from the target of
    a backward branch to the branch."""
    found = {(start, end) for end, targets in enumerate(following) for start in targets if start <= end}
    return sorted(found, key=lambda loop: loop[1] - loop[0])


def depths(following: list[list[int]]) -> list[int]:
    """The loop depth of each block: a loop counts for each of its backward branches."""
    found = [0] * len(following)
    for end, targets in enumerate(following):
        for start in (t for t in targets if t <= end):
            for i in range(start, end + 1):
                found[i] += 1
    return found
