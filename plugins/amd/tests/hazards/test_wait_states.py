"""Each hazard of the manual is asked for with exactly its wait states: one fewer is reported, none reported with them."""

from __future__ import annotations

from functools import partial

import pytest
from served import CHIP, CHIPS, parse

from hazards import llc
from hazards.pairs import EXCHANGES, EXTRAS, PAIRS, Extra, Pair
from tilefw.api.sim import Instruction
from tilefw.sim.checks.hazards import HazardTracker
from tilefw_amd.chips import Chip
from tilefw_amd.isa.meaning.operand_roles import DOUBLES, HARDWARE, NAMES_BEHIND, hardware_register
from tilefw_amd.isa.set import instruction_set
from tilefw_amd.isa.text import parser
from tilefw_amd.machine.hazards import WAIT_RANGES, straight_hazards


def missing(first: str, second: str, states: int, chip: Chip = CHIP) -> list[str]:
    """What the chip's rules report of two instructions with so many wait states between them."""
    pauses = [f"s_nop {min(left, 16) - 1}" for left in range(states, 0, -16)]
    lines = [first, *pauses, second]
    read = partial(parser.parse, instruction_set(chip))
    program = [Instruction(i, text, text.split()[0], "", row=read(text)) for i, text in enumerate(lines)]
    _, found = HazardTracker(straight_hazards(chip), program, ()).through(program, ())
    return [str(fault) for fault in found]


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_the_rules_ask_for_exactly_the_wait_states_of_the_manual(pair: Pair) -> None:
    first, second = pair.first.text, pair.second.text
    assert missing(first, second, pair.states) == []
    for fewer in range(pair.states):
        (fault,) = missing(first, second, fewer)
        lacking = pair.states - fewer
        assert f"{lacking} wait state{'s' if lacking > 1 else ''} missing" in fault


def test_a_hardware_register_is_named() -> None:
    setreg = parse("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3")
    assert [NAMES_BEHIND[number - HARDWARE] for number in hardware_register(setreg)] == ["HW_REG_MODE"]
    assert NAMES_BEHIND[DOUBLES - HARDWARE] == "the f64 matrix unit"


def asked(pair: Pair, chip: Chip) -> int:
    """The fewest wait states with which the chip's rules report nothing."""
    first, second = pair.first.text, pair.second.text
    return next(states for states in range(40) if not missing(first, second, states, chip))


def pairs_of(chip: Chip) -> tuple[Pair, ...]:
    """The pairs whose instructions the chip has."""
    return (*PAIRS, *EXCHANGES) if "v_permlane32_swap_b32" in instruction_set(chip).rows else PAIRS


@pytest.mark.skipif(llc.LLC is None, reason="needs llc-22")
def test_llvm_puts_the_wait_states_of_the_manual() -> None:
    answers = llc.ask(PAIRS, CHIP)
    assert [(answer.states, pair.name) for pair, answer in zip(PAIRS, answers, strict=True)] == [(p.states, p.name) for p in PAIRS]


@pytest.mark.skipif(llc.LLC is None, reason="needs llc-22")
@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_the_rules_ask_for_exactly_the_wait_states_of_llvm(chip: Chip) -> None:
    pairs = pairs_of(chip)
    answers = llc.ask(pairs, chip)
    assert len(answers) == len(pairs) > 400
    assert [asked(pair, chip) for pair in pairs[len(PAIRS):]] == [pair.states for pair in pairs[len(PAIRS):]]
    differing = [
        (pair.name, asked(pair, chip), answer)
        for pair, answer in zip(pairs, answers, strict=True)
        if answer != (asked(pair, chip), [pair.first.text, pair.second.text])
    ]
    assert differing == []


@pytest.mark.parametrize("extra", EXTRAS, ids=[extra.why for extra in EXTRAS])
def test_what_only_llvm_asks_for_is_no_hazard(extra: Extra) -> None:
    assert missing(extra.first.text, extra.second.text, 0) == []


@pytest.mark.skipif(llc.LLC is None, reason="needs llc-22")
def test_llvm_asks_for_more_in_just_these_places() -> None:
    answers = llc.ask([Pair(extra.why, 0, extra.first, extra.second) for extra in EXTRAS], CHIP)
    assert answers == [(extra.states, [extra.first.text, extra.second.text]) for extra in EXTRAS]


def test_ranges_of_waits() -> None:
    """CDNA3 ISA, section "SOPP", S_WAITCNT: 6, 3 and 4 bits."""
    assert WAIT_RANGES == {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 15}
