"""Where a loop has too few registers, what costs one instruction is made in it, no more than is wanting; all else stays."""

from __future__ import annotations

import random

import machine_programs
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.machine.inst import Function
from tilefw.machine.live_peak import LivePeak, live_peak
from tilefw.machine.rematerialise import Excess, rematerialise
from tilefw.machine.table import EFFECT, JUMP, PURE, InstructionTraits, RegisterClass, from_dict
from tilefw.machine.text import parse_function, print_function

TABLE = from_dict(
    "toy", {
        "add": PURE, "set": PURE, "shuffle": InstructionTraits(convergent=True), "ld": InstructionTraits(memory="global"),
        "st": EFFECT, "br": EFFECT, "ret": JUMP,
    },
    [RegisterClass("v", 32)],
)
SIZES = {"v": 1}
# Four offsets of one column and one stride, which the loop reads one after the other.
ROWS = """func @f target "toy"
  regs v: 0-9
entry:
  %0 = set 1
  %1 = set 2
  %2 = add %0, %1, 0
  %3 = add %0, %1, 1
  %4 = add %0, %1, 2
  %5 = add %0, %1, 3
  br {targets=end}
loop:
  %6 = ld %2
  st %6
  %7 = ld %3
  st %7
  %8 = ld %4
  st %8
  %9 = ld %5
  st %9
  br {targets=loop}
end:
  ret
"""


def over(limit: int) -> Excess:
    return lambda function, peak: peak.most - limit


def opcodes(function: Function, label: str) -> list[str]:
    (block,) = [b for b in function.blocks if b.label == label]
    return [f"{inst.opcode} {inst.defs[0].reg.id}" if inst.defs else inst.opcode for inst in block.insts]


@settings(max_examples=80, deadline=None)
@given(st.randoms(use_true_random=False), st.lists(st.lists(st.integers(0, 1), max_size=12), min_size=3, max_size=3))
def test_programs_compute_what_they_did(rng: random.Random, ways: list[list[int]]) -> None:
    function = machine_programs.draw(rng)
    chip = machine_programs.chip()
    before = [machine_programs.run(function, way) for way in ways]
    text = print_function(function)
    rematerialise(function, chip, dict.fromkeys(chip.classes, 1), over(0))
    after = [machine_programs.run(function, way) for way in ways]
    assert all(map(machine_programs.agree, before, after)), f"{text}\nbecame\n{print_function(function)}"


def test_the_random_programs_have_what_moves() -> None:
    chip, moved = machine_programs.chip(), 0
    for seed in range(60):
        moved += rematerialise(machine_programs.draw(random.Random(seed)), chip, dict.fromkeys(chip.classes, 1), over(0))
    assert moved > 5


def test_as_many_move_as_registers_are_wanting_and_each_to_where_it_is_read() -> None:
    function = parse_function(ROWS)
    assert live_peak(function, TABLE, SIZES).most == 5
    assert rematerialise(function, TABLE, SIZES, over(4)) == 3  # so that column and stride are held beside the last
    function = parse_function(ROWS.replace("  st %6\n", "  st %0\n  st %1\n"))  # in the loop, column and stride are held anyway
    assert rematerialise(function, TABLE, SIZES, over(5)) == 2
    assert opcodes(function, "entry") == ["set 0", "set 1", "add 4", "add 5", "br"]
    assert opcodes(function, "loop")[:2] == ["add 2", "ld 6"]
    assert live_peak(function, TABLE, SIZES).most <= 5


def test_nothing_moves_while_registers_last() -> None:
    function = parse_function(ROWS)
    assert rematerialise(function, TABLE, SIZES, lambda function, peak: 0) == 0
    assert print_function(function) == print_function(parse_function(ROWS))


def test_what_is_read_elsewhere_or_loaded_or_exchanged_or_made_of_what_changes_stays() -> None:
    held = ROWS.replace("  st %6\n", "  st %0\n  st %1\n")
    elsewhere = held.replace("  ret", "  st %2\n  ret")
    loaded = held.replace("%2 = add %0, %1, 0", "%2 = ld %0")
    exchanged = held.replace("%2 = add %0, %1, 0", "%2 = shuffle %0, %1")
    changing = held.replace("  br {targets=loop}", "  %0 = add %0, 1\n  br {targets=loop}")
    one, all_four = ["add 2"], ["add 2", "add 3", "add 4", "add 5"]
    for text, stays in ((elsewhere, one), (loaded, ["ld 2"]), (exchanged, ["shuffle 2"]), (changing, all_four)):
        function = parse_function(text)
        rematerialise(function, TABLE, SIZES, lambda function, peak: 100)
        assert [each for each in opcodes(function, "entry") if not each.startswith(("set", "br"))] == stays


def test_a_peak_is_a_block_s_own() -> None:
    function, seen = parse_function(ROWS), list[LivePeak]()
    rematerialise(function, TABLE, SIZES, lambda function, peak: seen.append(peak) or 0)
    assert seen == [LivePeak(5, 4)]
