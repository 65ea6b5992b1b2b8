"""A pass on machine code runs alone on text: what it changes, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilefw.api.errors import IRError
from tilefw.machine.coalesce import Coalesce
from tilefw.machine.dead import EliminateDead
from tilefw.machine.function_pass import FunctionPass
from tilefw.machine.hoist import Hoist
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, RegisterClass, from_dict
from tilefw.passes.opt import opt
from tilefw.simt.select.combine import CombineInstructions, Combiner, Fusion

TABLE = from_dict("toy", {"add": PURE, "mul": PURE, "fma": PURE, "mov": MOVE, "set": PURE, "st": EFFECT, "br": EFFECT, "ret": JUMP},
                  [RegisterClass("v", 32)])
FUSIONS = Combiner({"add": (Fusion("add", "mul", "fma"),)})
TEXT = """
machine.func {{
func @f target "toy"
  regs v: 0-9
{body}
}}
"""
STRAIGHT = """entry:
  %0 = set 1
  %1 = set 2
  %2 = mul %0, %1
  %3 = add %2, %1
  %4 = mov %3
  %5 = mul %0, %0
  st %4
  ret"""
LOOP = """entry:
  %0 = set 1
loop:
  %1 = mul %0, %0
  %2 = mov %1
  st %2
  br %0 {targets=loop}
end:
  ret"""


def body(text: str) -> list[str]:
    """The instructions and labels, without indentation."""
    lines = [line.strip() for line in text.splitlines()]
    return lines[next(i for i, line in enumerate(lines) if line.endswith(":")) : lines.index("ret") + 1]


def after(one: FunctionPass, text: str) -> list[str]:
    made = {one.name: one}
    return body(opt(TEXT.format(body=text), one.name, target_passes=made))


@pytest.mark.parametrize(("one", "text", "change"), [
    (EliminateDead(TABLE), STRAIGHT, lambda lines: lines.remove("%5 = mul %0, %0")),
    (CombineInstructions(FUSIONS), STRAIGHT, lambda lines: lines.__setitem__(4, "%3 = fma %0, %1, %1")),
    (Hoist(TABLE, {"v": (64,)}), LOOP, lambda lines: lines.insert(4, lines.pop(2))),
    (Coalesce(TABLE, straight_line=False), STRAIGHT, lambda lines: None),
], ids=["eliminate-dead", "combine", "hoist", "coalesce"])
def test_a_pass_changes_this_and_nothing_else(one: FunctionPass, text: str, change: Callable[[list[str]], None]) -> None:
    expected = body(TEXT.format(body=text))
    change(expected)
    assert after(one, text) == expected


def test_coalescing_removes_the_copy() -> None:
    lines = after(Coalesce(TABLE), LOOP)
    assert len(lines) == len(body(TEXT.format(body=LOOP))) - 1 and not any("mov" in line for line in lines)


@pytest.mark.parametrize("machine_pass", [EliminateDead(TABLE), Hoist(TABLE, (64,)), Coalesce(TABLE)], ids=lambda p: p.name)
def test_an_opcode_that_the_table_does_not_have_is_an_error_with_the_instruction(machine_pass: FunctionPass) -> None:
    body = LOOP.replace("mul", "mull")
    with pytest.raises(IRError, match="the instruction table of toy has no 'mull'") as caught:
        opt(TEXT.format(body=body), machine_pass.name, target_passes={machine_pass.name: machine_pass})
    assert caught.value.code == "TFW0512" and "= mull %0" in (caught.value.note or "")
