"""The machine layer's face for plugins: instructions, registers, functions, their text and their table."""

from __future__ import annotations

from tilefw.machine.allocate import allocate, drop_identities
from tilefw.machine.check import check_allocation
from tilefw.machine.check_wait_states import Pair, check_wait_states
from tilefw.machine.check_waits import Begun, Seen, check_waits
from tilefw.machine.function_op import FuncOp as FunctionOp
from tilefw.machine.inst import Block, Function, Inst, Operand, Reg, Slice
from tilefw.machine.register_sets import RegisterSets
from tilefw.machine.spill_model import MEMORY, Home, Location, SpillModel
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, InstructionTable, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function, parse_functions, print_function, print_inst
from tilefw.machine.wait_states import FillWaitStates, Part, WaitStateModel, fill_wait_states
from tilefw.machine.waits import Concern, Event, InsertWaits, WaitModel, insert_waits

__all__ = [
    "EFFECT", "JUMP", "MEMORY", "MOVE", "PURE", "Begun", "Block", "Concern", "Event", "FillWaitStates", "Function",
    "FunctionOp", "Home", "InsertWaits", "Inst", "InstructionTable", "InstructionTraits", "Location", "Operand", "Pair", "Part",
    "Reg", "RegisterClass", "RegisterSets", "Seen", "Slice", "SpillModel", "WaitModel", "WaitStateModel", "allocate",
    "check_allocation", "check_wait_states", "check_waits", "drop_identities", "fill_wait_states", "from_dict", "insert_waits",
    "parse_function", "parse_functions", "print_function", "print_inst",
]
