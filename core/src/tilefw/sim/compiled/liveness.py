"""Registers whose values may still be read: what a compiled run need not write is what every way onwards overwrites first.

A lane, or a wave with one program counter, follows one way through the blocks. A guarded instruction leaves what its lanes hold,
and so reads its destinations. (Lanes that a mask stack puts to sleep keep theirs without a guard: such chips compile nothing.)
Where a program calls functions every register counts as read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from tilefw.sim.program import Await, Call, Instruction, Jump
from tilefw.sim.steps.operand_registers import reads, writes

Registers = int
"""A set of registers: bit i for register i."""


class FlowBlock(Protocol):
    """A block of the program, as far as liveness looks at it."""

    start: int
    flow: Instruction | None
    instructions: list[Instruction]


class LaterReads:
    """Of a program of `blocks` with the numbers of each one's `successors`; found when it is first asked for."""

    def __init__(self, blocks: Sequence[FlowBlock], successors: Sequence[Sequence[int]]) -> None:
        self._blocks, self._successors = blocks, successors

    def after(self, block: int, instruction: Instruction) -> Registers:
        """What may be read after an instruction of a block."""
        live = self._ends[block]
        for each in reversed(self._blocks[block].instructions[instruction.index - self._blocks[block].start + 1 :]):
            live = _before(each, live)
        return live

    @cached_property
    def _ends(self) -> list[Registers]:
        """What may be read after each block."""
        count = len(self._blocks)
        used = (r for block in self._blocks for i in block.instructions for r in (*reads(i), *writes(i)))
        everything = (1 << 1 + max(used, default=0)) - 1
        if any(b.flow is not None and isinstance(b.flow.flow, (Call, Jump)) for b in self._blocks):
            return [everything] * count
        begins, ends = [0] * count, [0] * count
        changed = True
        while changed:
            changed = False
            for number in reversed(range(count)):
                block = self._blocks[number]
                following = [n for n in self._successors[number] if n < count]
                if block.flow is not None and isinstance(block.flow.flow, Await):
                    following.append(number)
                live = 0
                for each in following:
                    live |= begins[each]
                ends[number] = live
                for instruction in reversed(block.instructions):
                    live = _before(instruction, live)
                changed = changed or live != begins[number]
                begins[number] = live
        return ends


def _before(instruction: Instruction, live: Registers) -> Registers:
    """What may be read before an instruction, where `live` may be after it."""
    written = read = 0
    for register in writes(instruction):
        written |= 1 << register
    for register in reads(instruction):
        read |= 1 << register
    if instruction.guard is not None:
        return live | read | written
    return (live & ~written) | read
