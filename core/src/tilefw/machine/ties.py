"""Results that must stand in an operand's register: the operand is copied to the result first, where it is not there already.

Selection writes an instruction that changes a register as one with a result of its own and a tied operand, which others may
still read. Assignment of registers takes the two as one; where nobody reads the operand afterwards, it lets the copy go away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilefw.api.errors import InternalError
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Function, Inst, Operand, Slice

Copy = Callable[[Slice, Operand], Inst]
"""A copy of an operand to a register."""


@dataclass(frozen=True)
class TieOperands(FunctionPass):
    """Copies an operand that an instruction overwrites where its value is still needed. `copy` makes the chip's instruction."""

    name = "tie-operands"
    copy: Copy

    def run(self, function: Function) -> None:
        tie_operands(function, self.copy)

    def writer(self) -> object:
        return self.copy


def tie_operands(function: Function, copy: Copy) -> int:
    """Make every tied operand the register of its result, by a copy before the instruction. Returns the number of copies.

    `copy` makes one. Raises InternalError where an instruction reads its result's register by another operand too.
    """
    copied = 0
    for block in function.blocks:
        if not any(inst.tied for inst in block.insts):
            continue
        insts: list[Inst] = []
        for inst in block.insts:
            for definition, use in inst.tied:
                if inst.defs[definition] is not inst.uses[use]:
                    insts.append(_copied(inst, definition, use, copy))
                    copied += 1
            insts.append(inst)
        block.insts = insts
    return copied


def _copied(inst: Inst, definition: int, use: int, copy: Copy) -> Inst:
    """The copy; from now on `inst` has the result in place of the operand."""
    result, operand = inst.defs[definition], inst.uses[use]
    others = inst.uses[:use] + inst.uses[use + 1 :]
    if any(isinstance(other, Slice) and other.reg is result.reg for other in others):
        raise InternalError(f"'{inst}' reads the register {result} that its tied operand is copied to")
    inst.uses = (*inst.uses[:use], result, *inst.uses[use + 1 :])
    made = copy(result, operand)
    made.place = inst.place
    return made
