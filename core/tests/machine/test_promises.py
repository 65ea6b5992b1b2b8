"""Promises of exact integers through the machine layer: which are kept, which are lost, and what an artifact tells of them."""

from __future__ import annotations

import machine_programs as programs
import pytest

from tilefw.machine.assign_registers import assign
from tilefw.machine.coalesce import coalesce
from tilefw.machine.inst import Function
from tilefw.machine.promises import drop_idle_promises, note_halves, promises_of
from tilefw.machine.table import from_dict
from tilefw.machine.text import parse_function


def parsed(body: str, registers: str = "v: 0-9") -> Function:
    return parse_function(f'func @f target "toy"\n  regs {registers}\nentry:\n  ' + body.strip().replace("; ", "\n  ") + "\n")


def promises(function: Function) -> list[str]:
    return [inst.no_wrap for inst in function.insts()]


def test_an_artifact_names_instructions_by_number_and_opcode() -> None:
    function = parsed("%0 = op 1; %1 = op %0 {no_wrap}; %2 = op %1 {no_wrap=proven}; %3 = op %2 {no_wrap=lost}; st %3")
    assert promises_of(function) == {"exact": [[1, "op"]], "lost": [[3, "op"]], "wide": []}


def test_halves_are_counted_over_all_registers_that_an_instruction_writes() -> None:
    function = parsed("%0, %1 = op 1 {wide=0:2+1:0}; %2 = op %1[0:1] {no_wrap}; st %2", "v x4 a4: 0-1\n  regs v: 2")
    assert promises_of(function)["wide"] == [[0, "op", 2], [0, "op", 4]]


def test_a_function_without_promises_says_nothing() -> None:
    assert promises_of(parsed("%0 = op 1 {no_wrap=proven}; st %0")) == {}


def test_only_what_an_access_takes_is_promised() -> None:
    taken, idle = "%0 = op 1 {no_wrap}; %1 = op %0, 2 {no_wrap}; %2 = mov %1; st %2", "%3 = op 1 {no_wrap}; %4 = op %3, %3; st %4"
    function = parsed(f"{taken}; {idle}")
    drop_idle_promises(function, programs.chip())
    assert promises(function) == ["exact", "exact", "", "", "", "", ""]


@pytest.mark.parametrize("cls, limits, expected", [
    ("v", {"v": 2, "a": 0}, {"restore": "lost"}), ("s", {"s": 2}, {"get": "lost"}), ("v", {"v": 2, "a": 2}, {"mova": ""}),
])
def test_what_comes_back_from_a_slot_is_lost_unless_it_is_copied(
    cls: str, limits: dict[str, int], expected: dict[str, str]
) -> None:
    body = "".join(f"%{i} = early {i} {{no_wrap}}; " for i in range(4)) + "".join(f"early %{i}; " for i in range(4)) + "ret"
    table = from_dict("toy", {**programs.ROWS, "early": programs.EFFECT}, list(programs.chip().classes.values()))
    function = parsed(body, f"{cls}: 0-3")
    assign(function, table, limits, programs.SPILLS)
    found = {inst.opcode: inst.no_wrap for inst in function.insts() if inst.opcode in expected and inst.defs}
    assert found == expected
    assert [inst.no_wrap for inst in function.insts() if inst.opcode == "early" and inst.defs] == ["exact"] * 4


def test_an_integer_whose_halves_come_apart_is_not_known() -> None:
    """A copy into the low half may vanish, so that who takes it says so."""
    pair = parsed(
        "%0 = op 1; %1 = op 2 {no_wrap}; %2 = op %0[0:1], 4 {no_wrap}; %0[1:1] = mov %1; %0[0:1] = mov %1; st %2",
        "v x2 a2: 0\n  regs v: 1-9",
    )
    note_halves(pair, programs.chip(), [next(iter(pair.insts())).defs[0]])
    assert promises(pair) == ["", "exact", "lost", "", "", ""]
    whole = parsed("%0 = op 1; %2 = op %0[0:1], 4 {no_wrap}; st %2", "v x2 a2: 0\n  regs v: 1-9")
    note_halves(whole, programs.chip(), [next(iter(whole.insts())).defs[0]])
    assert [(inst.no_wrap, inst.wide) for inst in whole.insts()] == [("", ((0, 0),)), ("exact", ()), ("", ())]


def test_many_halves_take_as_many_looks_at_the_code_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    every, looks = Function.insts, list[Function]()
    monkeypatch.setattr(Function, "insts", lambda self: looks.append(self) or every(self))
    count = 20
    body = "".join(f"%{i}[0:1] = op 1; %{i}[1:1] = op 2; %{i + count} = op %{i}[0:1] {{no_wrap}}; " for i in range(count))
    function = parsed(body + "ret", f"v x2 a2: 0-{count - 1}\n  regs v: {count}-{2 * count - 1}")
    looks.clear()
    note_halves(function, programs.chip(), [reg.whole for reg in function.registers if reg.width == 2])
    assert len(looks) <= 4
    assert promises(function).count("lost") == count


def test_copies_that_vanish_leave_promises_where_they_were() -> None:
    function = parsed("%0 = op 1 {no_wrap}; %1 = mov %0; %2 = op %1, 2 {no_wrap}; st %2")
    coalesce(function, programs.chip())
    assert [(inst.opcode, inst.no_wrap) for inst in function.insts()] == [("op", "exact"), ("op", "exact"), ("st", "")]
