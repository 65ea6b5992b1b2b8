"""What arrives while its instruction may still read is apart from the operands."""

from __future__ import annotations

import pytest
from served import ISAS

from tilefw.api.machine import parse_function, print_function
from tilefw.machine.assign_registers import assign
from tilefw_amd.isa.set import InstructionSet
from tilefw_amd.machine.traits import instructions

LOADS = {"s_load_dword": (1, 1), "s_load_dwordx2": (2, 2), "s_load_dwordx4": (4, 4)}


@pytest.mark.parametrize("isa", ISAS, ids=str)
@pytest.mark.parametrize("opcode", LOADS)
def test_a_scalar_load_of_several_words_keeps_its_address(opcode: str, isa: InstructionSet) -> None:
    """The address dies there; one word takes its place."""
    width, align = LOADS[opcode]
    text = f'func @f target "{isa.chip.target}"\n  regs s x2 a2: 0\n  regs s x{width} a{align}: 1\nentry:\n'
    text += f"  %0 = s_mov_b64 64\n  %1 = {opcode} %0, 0\n  s_setreg_b32 %1[0:1], 1\n  s_endpgm\n"
    function = parse_function(text)
    assign(function, instructions(isa))
    load = function.blocks[0].insts[1]
    (result,), address = load.defs, load.uses[0]
    apart = result.first >= address.first + 2 or address.first >= result.first + width
    assert apart == (width > 1), print_function(function)
