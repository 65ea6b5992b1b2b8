"""A chip with register files by type: what is loaded and carried is in the file of its type, packed elements with integers."""

from __future__ import annotations

from typing import ClassVar

import pytest
import test_uniform_code as toy
from xdsl.dialects.func import FuncOp

from tilefw.machine.inst import Function, Slice
from tilefw.machine.table import MOVE, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.simt.chip import template
from tilefw.simt.chip_requests import LaneAccess
from tilefw.simt.lane import Lane
from tilefw.simt.select.code import Code, Element
from tilefw.simt.select.lane_to_machine import Selector
from tilefw.tile.text.module import parse

CLASSES = [RegisterClass(name, 32) for name in ("x", "f", "h", "p")]
LOAD = InstructionTraits(memory="global")
MASK = "%t = lane.thread_id : () -> vector<1xi32>\n%k = lane.lts %t, %t : vector<1xi32>\n"


class Chip(toy.Chip):
    """Integers and addresses in `x`, f32 in `f`, f16 alone in `h`, predicates in `p`."""

    forms: ClassVar = {
        "i1": ("p", 1, 1), "e8": ("x", 1, 1), "e16": ("x", 1, 1), "w32": ("x", 1, 1), "w64": ("x", 2, 1), "f32": ("f", 1, 1),
        "f16": ("h", 1, 1),
    }
    rules: ClassVar = {"select.f32": template("fsel", "f32"), "lts.i32": template("less", "i1")}
    uniform_rules: ClassVar = {}
    uniform_classes = frozenset()
    consecutive = False
    table = from_dict("toy", {"ld": LOAD, "copy": MOVE, "fsel": PURE, "less": PURE, "arg": PURE, "st": LOAD}, CLASSES)

    def parameter(self, code: Code, index: int, type: str) -> Element:
        return code.inst("arg", "w64" if type == "i64" else "w32")

    def load(self, code: Code, access: LaneAccess) -> None:
        code.effect("ld", [r for r in access.registers if isinstance(r, Slice)], [access.address, access.immediate])

    def store(self, code: Code, access: LaneAccess) -> None:
        code.effect("st", (), [self.operand(code, r) for r in access.registers])

    def thread_id(self, code: Code) -> Element:
        return code.inst("arg", "w32")

    def exit(self, code: Code) -> None:
        """Nothing."""


def select(line: str) -> Function:
    """The code of one line, which has an address and a fill to name."""
    head = "%a = lane.constant 64 : vector<1xi64>\n%z = lane.constant 1.5 : vector<1xf32>\n"
    module = parse(f"func.func @f(%n: i32) {{\n{head}{line}\nfunc.return\n}}", dialects=[Lane])
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    machine = Function("f", "toy")
    Selector(machine, Chip()).function(function)
    return machine


def load(result: str, width: int, more: str = "", parts: str = "address", operands: str = "vector<1xi64>") -> str:
    facts = f'{{parts = "{parts}", width = {width} : i64, slots = array<i64: 0>, immediates = array<i64: 0>, buffer = 0 : i64}}'
    return f"%v = lane.load %a{more} {facts} : ({operands}) -> {result}"


def files(function: Function, opcode: str) -> list[str]:
    return [d.reg.cls for inst in function.insts() if inst.opcode == opcode for d in inst.defs]


@pytest.mark.parametrize(("result", "width", "where"), [
    ("vector<2xf32>", 2, ["f", "f"]), ("vector<2xi32>", 2, ["x", "x"]), ("f32", 1, ["f"]), ("i32", 1, ["x"]),
    ("vector<1xf16>", 1, ["h"]), ("vector<4xf16>", 4, ["x", "x"]), ("vector<1xi16>", 1, ["x"]), ("vector<1xf64>", 1, ["x"]),
])
def test_a_load_lands_in_the_file_of_its_type(result: str, width: int, where: list[str]) -> None:
    assert files(select(load(result, width)), "ld") == where


def test_what_a_masked_load_leaves_stands_in_the_same_file() -> None:
    operands = "vector<1xi64>, vector<1xi1>, vector<1xf32>"
    function = select(MASK + load("vector<1xf32>", 1, ", %k, %z", "address,mask,other", operands))
    assert files(function, "ld") == ["f"] and files(function, "copy") == ["f", "x"]  # the fill, then the address


def test_what_several_places_write_stands_in_the_file_of_its_type() -> None:
    chip = Chip()
    assert [chip.forms[chip.form(name, False)][0] for name in ("f32", "i32", "f16", "bf16", "i64", "i1")] == list("fxhxxp")
