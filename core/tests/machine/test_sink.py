"""What only a loop needs is computed behind the branch around the loop; what is needed elsewhere, or acts, stays before it."""

from __future__ import annotations

import random

import machine_programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.machine.inst import Function
from tilefw.machine.sink import sink
from tilefw.machine.table import EFFECT, JUMP, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function, print_function

TABLE = from_dict(
    "toy", {
        "add": PURE, "set": PURE, "shuffle": InstructionTraits(convergent=True), "ld": InstructionTraits(memory="global"),
        "st": EFFECT, "br": EFFECT, "ret": JUMP,
    },
    [RegisterClass("v", 32)],
)
LOOP = """func @f target "toy"
  regs v: 0-5
entry:
  %0 = set 1
  %1 = set 2
BEFORE
  br %0 {targets=end}
loop:
  st %2
  %1 = add %1, %3
  br %1 {targets=loop}
end:
  st %4
  ret
"""


def moved(before: str) -> tuple[list[str], list[str]]:
    """The instructions before the loop's guard and between it and the loop, after sinking, as text."""
    lines = "\n".join(f"  {line.strip()}" for line in before.strip().splitlines())
    function = parse_function(LOOP.replace("BEFORE", lines))
    sink(function, TABLE)
    return opcodes(function, "entry"), opcodes(function, "loop_entry")


def opcodes(function: Function, label: str) -> list[str]:
    found = [f"{i.opcode} {i.defs[0].reg.id}" if i.defs else i.opcode for b in function.blocks if b.label == label for i in b.insts]
    return found


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.lists(st.lists(st.integers(0, 1), max_size=12), min_size=3, max_size=3))
def test_programs_compute_what_they_did(rng: random.Random, ways: list[list[int]]) -> None:
    function = machine_programs.draw(rng)
    before = [machine_programs.run(function, way) for way in ways]
    text = print_function(function)
    sink(function, machine_programs.chip())
    after = [machine_programs.run(function, way) for way in ways]
    assert all(map(machine_programs.agree, before, after)), f"{text}\nbecame\n{print_function(function)}"


def test_random_programs_have_something_to_sink() -> None:
    chip = machine_programs.chip()
    assert any(sink(machine_programs.draw(random.Random(seed)), chip) for seed in range(60))


def test_a_chain_sinks_in_order_with_what_the_loop_begins_with() -> None:
    before, between = moved("%2 = add %0, 5\n%3 = add %2, %0")
    assert before == ["set 0", "br"]
    assert between == ["set 1", "add 2", "add 3"]


@pytest.mark.parametrize("line", [
    "%4 = add %0, 5",  # read behind the loop
    "%2 = ld %0",  # memory may change
    "@%0 %2 = set 5",  # only in some lanes
    "%2 = shuffle %0",  # with lanes that may not enter the loop
    "st %0",
])
def test_what_is_needed_elsewhere_or_acts_stays(line: str) -> None:
    before, between = moved(line)
    assert len(before) == 3 and between == ["set 1"]


def test_what_reads_a_register_that_is_written_before_the_guard_stays() -> None:
    before, _ = moved("%2 = add %4, 5\n%4 = set 7")
    assert before == ["set 0", "add 2", "set 4", "br"]
