"""A pipelined loop computes what the loop computed, bit for bit and without a finding, at every number of stages."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelined import COPYING, PLAIN, execute, pipeline, random_loop

from tilefw.tile.text import parse


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), stages=st.integers(1, 5), copies=st.booleans(), disjoint=st.booleans())
def test_a_pipelined_loop_computes_the_same(seed: int, stages: int, copies: bool, disjoint: bool) -> None:
    loop = random_loop(seed)
    programs = 1 if loop.stores_to else 2
    text = loop.text().replace("STAGES", str(stages))
    module = pipeline(text, 1, COPYING if copies else PLAIN, disjoint)
    before, expected = execute(loop, parse(text), programs)
    after, found = execute(loop, module, programs)
    assert {f.check for f in after.findings} == {f.check for f in before.findings}, (after.findings, text, str(module))
    for name, value in expected.items():
        assert np.array_equal(found[name].x, value.x), (name, text, str(module))
        for part in ("err", "free"):
            a, b = getattr(value, part), getattr(found[name], part)
            assert np.array_equal(0 if a is None else a, 0 if b is None else b), (name, part, str(module))
