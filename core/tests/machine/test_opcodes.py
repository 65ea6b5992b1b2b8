"""An opcode that the table lacks, written by a plugin's pass, spills, copies, waits or pauses, is told with the plugin's source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilefw.api.errors import PluginError
from tilefw.machine.assign_registers import AssignRegisters
from tilefw.machine.function_op import FuncOp
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.inst import Function, Inst
from tilefw.machine.schedule import ScheduleInstructions
from tilefw.machine.spill_model import MEMORY, SpillModel, SpillSlotClass
from tilefw.machine.table import EFFECT, JUMP, PURE, RegisterClass, from_dict
from tilefw.machine.text import parse_function
from tilefw.machine.ties import TieOperands

HERE = Path(__file__)
TABLE = from_dict(
    "toy", {"set": PURE, "st": EFFECT, "ret": JUMP, "fill": PURE, "spill": EFFECT, "change": PURE}, [RegisterClass("v", 32, 2)]
)
TEXT = 'func @f target "toy"\n  regs v: 0-3\nentry:\n' + "".join(f"  %{i} = set {i}\n" for i in range(4))
TEXT += "".join(f"  st %{i}\n" for i in range(4)) + "  ret\n"
TIED = 'func @f target "toy"\n  regs v: 0-1\nentry:\n  %0 = set 1\n  %1 = change %0 {tied=0:0}\n  st %0\n  st %1\n  ret\n'


@dataclass(frozen=True)
class Own(FunctionPass):
    name = "own"

    def run(self, function: Function) -> None:
        function.blocks[0].insts.insert(0, Inst("sett", [function.register("v").whole], [1]))


def misspelled_spill(value, slot, index):
    return [Inst("spil", (), [index, value])]


def misspelled_fill(value, slot, index):
    return [Inst("fil", [value], [index])]


def misspelled_copy(result, operand):
    return Inst("mvo", [result], [operand])


def spills(store, load) -> SpillModel:
    return SpillModel({"v": (SpillSlotClass(MEMORY, 1, 9, store, load),)}, lambda *_: False, lambda inst: None)


def spill(value, slot, index):
    return [Inst("spill", (), [index, value])]


def fill(value, slot, index):
    return [Inst("fill", [value], [index])]


def run(passes: list[FunctionPass], text: str = TEXT) -> Function:
    function = parse_function(text)
    module = ModuleOp([FuncOp.of(function)])
    for each in passes:
        each.apply(Context(), module)
    return function


CASES = [
    ([Own(), ScheduleInstructions(TABLE)], TEXT, "sett", "@dataclass"),
    ([ScheduleInstructions(TABLE), Own(), AssignRegisters(TABLE)], TEXT, "sett", "@dataclass"),
    ([AssignRegisters(TABLE, spills=spills(misspelled_spill, fill), verify=False)], TEXT, "spil", "def misspelled_spill"),
    ([AssignRegisters(TABLE, spills=spills(spill, misspelled_fill), verify=False)], TEXT, "fil", "def misspelled_fill"),
    ([TieOperands(misspelled_copy), AssignRegisters(TABLE, verify=False)], TIED, "mvo", "def misspelled_copy"),
]


@pytest.mark.parametrize(("passes", "text", "opcode", "begins"), CASES, ids=["first", "between", "spill", "fill", "copy"])
def test_the_source_that_wrote_the_opcode_is_shown(passes: list[FunctionPass], text: str, opcode: str, begins: str) -> None:
    with pytest.raises(PluginError, match=f"the instruction table of toy has no '{opcode}'") as caught:
        run(passes, text)
    place = caught.value.place
    assert caught.value.code == "TFW0512" and place is not None and Path(place.file) == HERE
    assert HERE.read_text(encoding="utf-8").splitlines()[place.line - 1].startswith(begins)


def test_code_of_known_opcodes_passes() -> None:
    done = run([AssignRegisters(TABLE, spills=spills(spill, fill), verify=False)])
    assert {inst.opcode for inst in done.insts()} == {"set", "st", "spill", "fill", "ret"} and done.writer is None
