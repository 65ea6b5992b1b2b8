"""Control flow over blocks: successors, predecessors, how many loops are around each."""

from __future__ import annotations

from tilefw.api.errors import InternalError
from tilefw.machine.inst import Function
from tilefw.machine.table import InstructionTable


def successors(function: Function, table: InstructionTable) -> list[list[int]]:
    """For each block the indexes of the blocks that may follow it; raises InternalError for a label that is not there."""
    index = {block.label: i for i, block in enumerate(function.blocks)}
    result: list[list[int]] = []
    for i, block in enumerate(function.blocks):
        out: list[int] = []
        falls = True
        for inst in block.insts:
            for target in inst.targets:
                if target not in index:
                    raise InternalError(f"{function.name}: branch to unknown label {target}")
                out.append(index[target])
            if inst.predicate is None and table.traits(inst.opcode).terminator:
                falls = False
        if falls and i + 1 < len(function.blocks):
            out.append(i + 1)
        result.append(out)
    return result


def predecessors(following: list[list[int]]) -> list[list[int]]:
    """The reverse of `successors`."""
    result: list[list[int]] = [[] for _ in following]
    for i, outs in enumerate(following):
        for j in outs:
            result[j].append(i)
    return result


def depths(following: list[list[int]]) -> list[int]:
    """How many loops are around each block: those from the target of a branch backward, in layout order, to the branch."""
    found = [0] * len(following)
    for end, targets in enumerate(following):
        for start in (t for t in targets if t <= end):
            for i in range(start, end + 1):
                found[i] += 1
    return found
