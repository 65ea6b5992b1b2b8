"""Passes keep the meaning: random programs give the same results before and after, within the bounds of both."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.passes.canonicalize import CanonicalizePass
from tilefw.passes.cse import CsePass
from tilefw.passes.dce import DcePass
from tilefw.passes.forward_stores import ForwardStoresPass
from tilefw.passes.licm import LicmPass
from tilefw.passes.manager import PassManager
from tilefw.passes.pipeline import default_passes
from tilefw.passes.scalarize_carried import ScalarizeCarriedPass
from tilefw.passes.structured_access import StructuredAccessPass
from tilefw.testing.random_program import RandomProgram, generate
from tilefw.tile.reference.interpret import run
from tilefw.tile.reference.memory import RefMemory
from tilefw.tile.reference.value import EvaluatedValue
from tilefw.tile.text.module import parse, with_locations

PIPELINES = {
    "canonicalize": [CanonicalizePass],
    "cse": [CsePass],
    "licm": [LicmPass],
    "forward-stores": [ForwardStoresPass],
    "dce": [DcePass],
    "structured-access": [StructuredAccessPass],
    "scalarize-carried": [ScalarizeCarriedPass, StructuredAccessPass],
}


def execute(module, program: RandomProgram) -> tuple[dict[str, EvaluatedValue], set[str]]:
    """Values of the outputs, and the checks that found something."""
    memory = RefMemory()
    buffers, bound = {}, []
    for name, argument in program.arguments.items():
        if isinstance(argument, int | float):
            bound.append(argument)
        else:
            buffers[name] = memory.of_array(np.ascontiguousarray(argument.array))
            bound.append(buffers[name])
    report = run(module, None, program.grid, bound, memory=memory, budget=400_000_000)
    return {name: buffers[name].read_reference() for name in program.outputs}, {f.check for f in report.findings}


def assert_agree(before: dict[str, EvaluatedValue], after: dict[str, EvaluatedValue], text: str) -> None:
    for name, a in before.items():
        b = after[name]
        free = (False if a.free is None else a.free) | (False if b.free is None else b.free)
        if a.x.dtype == np.float64 and b.x.dtype == np.float64:
            slack = (0.0 if a.err is None else a.err) + (0.0 if b.err is None else b.err)
            with np.errstate(invalid="ignore"):
                same = (a.x == b.x) | (np.isnan(a.x) & np.isnan(b.x)) | (np.abs(a.x - b.x) <= slack) | ~np.isfinite(slack)
        else:
            same = a.x == b.x
        assert (same | free).all(), f"{name} differs\n{text}"


def check(seed: int, passes) -> None:
    program = generate(random.Random(seed), 12)
    before, found = execute(parse(program.text, "program"), program)
    module = parse(program.text, "program")
    PassManager([item() for item in passes], verify_each=True).run(module)
    after, found_after = execute(module, program)
    assert found_after <= found | {"undecided"}, (found_after, str(module))
    assert_agree(before, after, str(module))


@pytest.mark.parametrize("name", PIPELINES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_pass_keeps_the_meaning(name: str, seed: int) -> None:
    check(seed, PIPELINES[name])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_default_pipeline_keeps_the_meaning(seed: int) -> None:
    check(seed, [lambda item=item: item for item in default_passes()])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_text_survives_a_round_trip(seed: int) -> None:
    module = parse(generate(random.Random(seed), 12).text, "program")
    assert str(parse(str(module), "again")) == str(module)
    located = with_locations(module)
    assert with_locations(parse(located, "again")) == located
    PassManager(default_passes()).run(module)
    assert str(parse(str(module), "again")) == str(module)
