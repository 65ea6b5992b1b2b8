"""One kit serves chips of different descriptions: library kernels, lowered for made-up chips, run in the lane interpreter.

Beside a chip like those of today stand one with waves of 64 lanes, other matrix atoms, no fragment loads and no asynchronous
copies, and one that has nothing but shared memory.
"""

from __future__ import annotations

import pytest
from library_on_chips import CASES, SMALL, check, lowered
from made_up import BLOCKS, PIECES, PLAIN, RUNS, WIDE

ATOMS = {"wide": "times.", "blocks": "blocks.", "runs": "runs.", "pieces": "runs.", "plain": "lane."}


@pytest.mark.parametrize("chip", [BLOCKS, WIDE, RUNS, PIECES, PLAIN], ids=lambda c: c.name)
@pytest.mark.parametrize(("name", "parameters"), CASES, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values())))
def test_a_library_kernel_is_right_on_the_chip(name, parameters, chip):
    check(name, parameters, chip)


@pytest.mark.parametrize("chip", [BLOCKS, WIDE, RUNS, PIECES, PLAIN], ids=lambda c: c.name)
def test_what_the_description_lacks_is_not_used(chip):
    function, *_ = lowered("matmul", {"m": 64, "n": 64, "k": 96, **SMALL}, chip)
    text = str(function)
    assert f'atom = "{ATOMS[chip.name]}' in text
    assert ("lane.fragment_load" in text) == bool(chip.fragment_loads or chip.transposed_loads)
    assert ("lane.copy_async" in text) == bool(chip.copy_bytes)
