"""Code for a chip with registers that are equal in all lanes: which rules serve it, and how registers stand together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from tilefw.machine.inst import Function, Slice
from tilefw.machine.table import MOVE, PURE, RegisterClass, from_dict
from tilefw.simt.chip import LaneChip, template
from tilefw.simt.select.code import Code, Const, Element


def _absent(self: Any, *_: Any) -> Any:
    raise AssertionError("not asked for here")


class Chip(LaneChip):
    """Lanes' registers `v`, uniform ones `s`; one addition for each, and a product for lanes alone."""

    name, lanes, pointer_bits, access_bytes = "toy", 64, 64, 16
    forms: ClassVar = {"i1": ("s", 2, 2), "w32": ("v", 1, 1), "w64": ("v", 2, 2), "u32": ("s", 1, 1), "u64": ("s", 2, 2)}
    rules: ClassVar = {"addi.i32": template("v_add", "w32"), "muli.i32": template("v_mul", "w32")}
    uniform_rules: ClassVar = {"addi.i32": template("s_add", "u32")}
    uniform_classes = frozenset({"s"})
    consecutive = True
    table = from_dict(
        "toy", {"v_add": PURE, "s_add": PURE, "v_mul": PURE, "copy": MOVE}, [RegisterClass("v", 32), RegisterClass("s", 32)]
    )

    def literal(self, code: Code, const: Const) -> int:
        return const.bits

    def move(self, code: Code, to: Slice, source: Element) -> None:
        code.effect("copy", [to], [self.operand(code, source)])

    def alignment(self, cls: str, width: int) -> int:
        return min(width, 4) if cls == "s" else min(width, 2)

    unpack = pack = parameter = thread_id = program_id = num_programs = load = store = barrier = _absent
    branch = branch_if = exit = _absent


@pytest.fixture
def code() -> Code:
    return Code(Function("f", "toy"), Chip())


def opcodes(code: Code) -> list[str]:
    return [inst.opcode for inst in code.function.insts()]


def test_a_rule_for_uniform_operands_serves_them_alone(code: Code):
    s, t, v = code.new_register("u32"), code.new_register("u32"), code.new_register("w32")
    assert code("addi.i32", s, t).reg.cls == "s"
    assert code("addi.i32", s, code.i32(5)).reg.cls == "s"
    assert code("addi.i32", s, v).reg.cls == "v"
    assert opcodes(code) == ["s_add", "s_add", "v_add"]


def test_a_row_without_uniform_rule_is_the_lanes(code: Code):
    s = code.new_register("u32")
    assert code("muli.i32", s, s).reg.cls == "v"


def test_literals_alone_are_not_uniform(code: Code):
    assert not code.uniform(code.i32(1), code.i32(2))
    assert code.uniform(code.new_register("u32"), code.i32(2))


@pytest.mark.parametrize(("key", "x", "y", "result"), [
    ("addi.i32", (1 << 32) - 1, 3, 2), ("subi.i64", 1, 2, (1 << 64) - 1), ("shl.i64", 1023, 1, 2046), ("shl.i32", 3, 31, 1 << 31),
    ("shl.i64", 1, 64, 0), ("shru.i32", 1 << 31, 32, 0), ("shru.i64", 1 << 63, 63, 1), ("muli.i64", 1 << 40, 1 << 40, 0),
])
def test_sums_and_shifts_of_literals_are_literals(code: Code, key: str, x: int, y: int, result: int):
    """No lane's register, where a uniform address is made of them."""
    kind = key.partition(".")[2]
    assert code(key, Const(kind, x), Const(kind, y)) == Const(kind, result)
    assert opcodes(code) == []
    assert not code.uniform(code.new_register("u32"), code.new_register("w32"))


def test_new_registers_stand_together_and_are_their_tuple(code: Code):
    registers = code.new_registers("w32", 4)
    assert len({r.reg for r in registers}) == 1 and registers[0].reg.width == 4 and registers[0].reg.align == 2
    assert code.tuple(registers, "v") is registers[0].reg.whole
    assert code.tuple(registers[2:], "v") is registers[0].reg.slice(2, 2)
    assert not opcodes(code)


@pytest.mark.parametrize("pick", [lambda r: r[1:3], lambda r: [r[1], r[0]], lambda r: [r[0], r[2]]], ids=["odd", "turned", "apart"])
def test_others_are_copied_once(code: Code, pick: Any):
    elements: Sequence[Slice] = pick(code.new_registers("w32", 4))
    together = code.tuple(elements, "v")
    assert together.count == 2 and together.reg is not elements[0].reg
    assert code.tuple(elements, "v") is together
    assert opcodes(code) == ["copy", "copy"]
    assert [inst.uses[0] for inst in code.function.insts()] == list(elements)


def test_literals_take_their_width_in_a_tuple(code: Code):
    together = code.tuple([Const("i64", 1 << 40), code.i32(3), code.new_register("u32")], "s")
    assert together.count == 4 and together.reg.align == 4
    assert [(inst.defs[0].first, inst.defs[0].count) for inst in code.function.insts()] == [(0, 2), (2, 1), (3, 1)]


def test_copies_made_in_a_region_are_not_there_after_it(code: Code):
    elements = [code.new_register("w32"), code.new_register("w32")]
    code.scopes.append({})
    inside = code.tuple(elements, "v")
    code.scopes.pop()
    assert code.tuple(elements, "v") is not inside
