"""Rows give the same bits compiled as in NumPy's form, on numbers at the edges and at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from chips_here import EVERYTHING

from isa.samples import instruction, kernel
from tilefw.testing.compiled_rows import disagreements
from tilefw_nvidia import isa
from tilefw_nvidia.chips import named
from tilefw_nvidia.isa.rows import forms

pytest.importorskip("llvmlite")

FORMS = [form for form in forms() if form.base != "brx"]
OPCODES = [(form, opcode) for form in FORMS for opcode in form.opcodes()]


def decoded(form: Any, opcode: str) -> tuple[Callable[..., Any], list[int]] | None:
    """An opcode's meaning and the widths of its sources."""
    chip = named("sm_90a") if "sm_90a" in form.only else EVERYTHING
    text = instruction(form, opcode, form.match(opcode.split(".")[1:]))
    module = isa.parse(kernel([text], "9.0", chip.name), "sample.ptx")
    found = isa.program(module, "k", isa.instruction_set(chip)).instructions[0]
    return None if found.meaning is None else (found.meaning, [source.bits for source in found.sources])


def compared(opcodes: list[tuple[Any, str]]) -> Iterator[tuple[str, list[str] | None]]:
    for form, opcode in opcodes:
        row = decoded(form, opcode)
        if row is not None:
            yield opcode, disagreements(*row, count=64)


def test_opcodes_mean_the_same_compiled() -> None:
    choose = random.Random(3)
    found = dict(compared([(form, choose.choice(list(form.opcodes()))) for form in choose.sample(FORMS, 150)]))
    assert {opcode: wrong for opcode, wrong in found.items() if wrong} == {}
    assert sum(wrong == [] for wrong in found.values()) > 40, "few of them have a compiled form"


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(16))
def test_every_opcode_means_the_same_compiled(part: int) -> None:
    assert {opcode: wrong for opcode, wrong in compared(OPCODES[part::16]) if wrong} == {}
