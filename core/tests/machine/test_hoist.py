"""What a loop computes alike in every iteration stands before it, as far as there are registers; all else stays."""

from __future__ import annotations

import random
from typing import Any

import machine_programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.machine.hoist import hoist
from tilefw.machine.inst import Function
from tilefw.machine.liveness import Liveness, analyse
from tilefw.machine.table import EFFECT, JUMP, MOVE, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function, print_function

LOAD = InstructionTraits(memory="global")
TABLE = from_dict(
    "toy", {"add": PURE, "mov": MOVE, "set": PURE, "ld": LOAD, "st": EFFECT, "br": EFFECT, "ret": JUMP}, [RegisterClass("v", 32)]
)
LOOP = """func @f target "toy"
  regs v: 0-5
  regs v x2 a2: 6
entry:
  %0 = set 1
  %1 = set 2
  br {targets=end}
loop:
BODY
  %1 = add %1, 1
  br %1 {targets=loop}
end:
  ret
"""


def moved(body: str, steps: int = 64) -> tuple[list[str], list[str]]:
    """The instructions before and in the loop after hoisting, as text."""
    text = LOOP.replace("BODY", "\n".join(f"  {line.strip()}" for line in body.strip().splitlines()))
    function = parse_function(text)
    hoist(function, TABLE, {"v": (steps,)})
    return opcodes(function, "entry"), opcodes(function, "loop")


def opcodes(function: Function, label: str) -> list[str]:
    (block,) = [b for b in function.blocks if b.label == label]
    return [f"{inst.opcode} {inst.defs[0].reg.id}" if inst.defs else inst.opcode for inst in block.insts]


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.lists(st.lists(st.integers(0, 1), max_size=12), min_size=3, max_size=3))
def test_programs_compute_what_they_did(rng: random.Random, ways: list[list[int]]) -> None:
    function = machine_programs.draw(rng)
    chip = machine_programs.chip()
    before = [machine_programs.run(function, way) for way in ways]
    text = print_function(function)
    hoist(function, chip, {chip.file(cls): (1000,) for cls in chip.classes})
    after = [machine_programs.run(function, way) for way in ways]
    assert all(map(machine_programs.agree, before, after)), f"{text}\nbecame\n{print_function(function)}"


def test_what_is_live_is_known_after_each_loop_as_if_found_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the units that moved instructions read and write are solved anew."""
    chip, real, renewed = machine_programs.chip(), Liveness.renew, []

    def renew(lives: Liveness, function: Function, *given: Any) -> None:
        real(lives, function, *given)
        assert lives == analyse(function, chip)
        renewed.append(len(function.blocks))

    monkeypatch.setattr(Liveness, "renew", renew)
    for seed in range(150):
        hoist(machine_programs.draw(random.Random(seed)), chip, {chip.file(cls): (1000,) for cls in chip.classes})
    assert renewed


def test_a_chain_moves_in_order_and_before_the_branch():
    before, inside = moved("%2 = add %0, 5\n%3 = add %2, %0\nst %3")
    assert before == ["set 0", "set 1", "add 2", "add 3", "br"]
    assert inside == ["st", "add 1", "br"]


@pytest.mark.parametrize("line", [
    "%2 = add %1, 5",  # reads what the loop writes
    "%2 = ld %0",  # memory may change
    "@%0 %2 = set 5",  # only in some lanes
    "st %0",
])
def test_what_may_differ_between_iterations_stays(line: str):
    before, inside = moved(f"{line}\nst %2")
    assert before == ["set 0", "set 1", "br"] and len(inside) == 4


def test_what_is_written_twice_stays():
    before, inside = moved("%2 = set 5\nst %2\n%2 = set 6\nst %2")
    assert "set 2" not in before and inside.count("set 2") == 2


def test_what_is_read_before_the_loop_again_stays():
    """An outer loop's next round stores `%3` of the inner loop; before the inner loop's entry it would be another round's."""
    function = parse_function("""func @f target "toy"
  regs v: 0 2-3
entry:
  %0 = set 1
outer:
  st %3
  %2 = ld %0
  br %2 {targets=outer}
inner:
  %3 = add %2, 1
  br %3 {targets=inner}
again:
  br %0 {targets=outer}
  ret
""")
    hoist(function, TABLE, {"v": (64,)})
    assert opcodes(function, "inner") == ["add 3", "br"]


def test_parts_of_a_tuple_move_each_by_itself():
    before, inside = moved("%6[0:1] = add %1, 1\n%6[1:1] = set 7\nst %6")
    assert before == ["set 0", "set 1", "set 6", "br"] and inside[0] == "add 6"


def test_no_more_move_than_there_are_registers_for():
    body = "%2 = set 5\nst %2\n%3 = set 6\nst %3\n%4 = set 7\nst %4"
    before, _ = moved(body, steps=8)
    assert before == ["set 0", "set 1", "set 2", "set 3", "br"]  # two are live at once in the loop, and four are spared
    before, _ = moved(body, steps=4)
    assert before == ["set 0", "set 1", "br"]
