"""The machine layer's face for plugins: instructions, registers, functions, their text and their table."""

from __future__ import annotations

from tilefw.machine.allocate import allocate, drop_identities
from tilefw.machine.check import check_allocation
from tilefw.machine.inst import Block, Function, Inst, Operand, Reg, Slice
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, InstructionTable, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function, parse_functions, print_function, print_inst

__all__ = [
    "EFFECT", "JUMP", "MOVE", "PURE", "Block", "Function", "Inst", "InstructionTable", "InstructionTraits", "Operand", "Reg",
    "RegisterClass", "Slice", "allocate", "check_allocation", "drop_identities", "from_dict", "parse_function", "parse_functions",
    "print_function", "print_inst",
]
