"""The machine layer's face for plugins: instructions, registers, functions, their text and their table, and its passes.

Passes are loaded when they are first asked for: a plugin also runs code that was compiled before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilefw.api.machine_backend import MachineBackend, assign_registers, entry_of
from tilefw.machine.allocate import allocate, drop_identities
from tilefw.machine.check_allocation import check_allocation, snapshot
from tilefw.machine.function_attributes import FunctionAttributes
from tilefw.machine.inst import Block, Function, Inst, Operand, Reg, Slice
from tilefw.machine.register_sets import RegisterSets
from tilefw.machine.spill_model import MEMORY, WHOLE, Location, SpillModel, SpillSlotClass
from tilefw.machine.table import BRANCH, EFFECT, JUMP, MOVE, PURE, InstructionTable, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function, parse_functions, print_function, print_inst

if TYPE_CHECKING:
    from tilefw.machine.check_wait_states import PairRules, check_wait_states
    from tilefw.machine.check_waits import Begun, Seen, check_waits
    from tilefw.machine.function_op import FuncOp as FunctionOp
    from tilefw.machine.function_pass import FunctionPass
    from tilefw.machine.live_peak import LivePeak, live_peak
    from tilefw.machine.rematerialise import RematerialiseInLoops
    from tilefw.machine.schedule import ScheduleInstructions, Steps, schedule
    from tilefw.machine.sink import SinkIntoLoops
    from tilefw.machine.ties import TieOperands, tie_operands
    from tilefw.machine.wait_states import FillWaitStates, Profile, Share, WaitStateModel, fill_wait_states
    from tilefw.machine.waits import Concern, Event, InsertWaits, WaitModel, insert_waits

__all__ = [
    "BRANCH", "EFFECT", "JUMP", "MEMORY", "MOVE", "PURE", "WHOLE", "Begun", "Block", "Concern", "Event", "FillWaitStates",
    "Function", "FunctionAttributes", "FunctionOp", "FunctionPass", "InsertWaits", "Inst", "InstructionTable", "InstructionTraits",
    "LivePeak", "Location", "MachineBackend", "Operand", "PairRules", "Profile", "Reg", "RegisterClass", "RegisterSets",
    "RematerialiseInLoops", "ScheduleInstructions", "Seen", "Share", "SinkIntoLoops", "Slice", "SpillModel", "SpillSlotClass",
    "Steps", "TieOperands", "WaitModel", "WaitStateModel", "allocate", "assign_registers", "check_allocation", "check_wait_states",
    "check_waits", "drop_identities", "entry_of", "fill_wait_states", "from_dict", "insert_waits", "live_peak", "parse_function",
    "parse_functions", "print_function", "print_inst", "schedule", "snapshot", "tie_operands",
]

_PASSES = {
    "FunctionPass": "tilefw.machine.function_pass",
    **dict.fromkeys(("PairRules", "check_wait_states"), "tilefw.machine.check_wait_states"),
    **dict.fromkeys(("Begun", "Seen", "check_waits"), "tilefw.machine.check_waits"),
    **dict.fromkeys(("ScheduleInstructions", "Steps", "schedule"), "tilefw.machine.schedule"),
    "SinkIntoLoops": "tilefw.machine.sink",
    **dict.fromkeys(("LivePeak", "live_peak"), "tilefw.machine.live_peak"),
    "RematerialiseInLoops": "tilefw.machine.rematerialise",
    **dict.fromkeys(("TieOperands", "tie_operands"), "tilefw.machine.ties"),
    **dict.fromkeys(("FillWaitStates", "Profile", "Share", "WaitStateModel", "fill_wait_states"), "tilefw.machine.wait_states"),
    **dict.fromkeys(("Concern", "Event", "InsertWaits", "WaitModel", "insert_waits"), "tilefw.machine.waits"),
}


def __getattr__(name: str) -> Any:
    if name == "FunctionOp":
        return import_module("tilefw.machine.function_op").FuncOp
    if name not in _PASSES:
        raise AttributeError(f"module 'tilefw.api.machine' has no attribute {name!r}")
    return getattr(import_module(_PASSES[name]), name)
