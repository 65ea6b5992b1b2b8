"""Every form's meaning is a function of the lane algebra alone, and its results have the widths that its pattern states."""

from __future__ import annotations

import random

import pytest
from chips_here import EVERYTHING

from isa.samples import instruction, kernel
from tilefw.api.sim import PRIMITIVES
from tilefw.sim.algebra.recording import trace
from tilefw_nvidia import isa
from tilefw_nvidia.chips import named
from tilefw_nvidia.isa.model import Form
from tilefw_nvidia.isa.rows import forms

FORMS = forms()


@pytest.mark.parametrize("form", FORMS, ids=[f"{i}-{form.pattern.split(' ')[0]}" for i, form in enumerate(FORMS)])
def test_a_meaning_traces_symbolically(form: Form) -> None:
    if form.base == "brx":
        pytest.skip("needs a table of labels; see test_grammar")
    opcodes = list(form.opcodes())
    for opcode in random.Random(1).sample(opcodes, min(8, len(opcodes))):
        modifiers = form.match(opcode.split(".")[1:])
        assert modifiers is not None
        text = instruction(form, opcode, modifiers)
        chip = named("sm_90a") if "sm_90a" in form.only else EVERYTHING
        module = isa.parse(kernel([text], "9.0", chip.name), "sample.ptx")
        decoded = isa.program(module, "k", isa.instruction_set(chip)).instructions[0]
        assert decoded.row is form or decoded.row.base == form.base, text
        if decoded.flow is not None:
            continue
        steps, results = trace(decoded.meaning, [source.bits for source in decoded.sources])
        assert {step.name for step in steps} <= set(PRIMITIVES)
        assert list(results) == [destination.bits for destination in decoded.destinations], text


def test_every_form_says_what_it_means_and_where_that_stands() -> None:
    assert [form.pattern for form in FORMS if not form.doc or not form.section] == []
