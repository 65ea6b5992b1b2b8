"""Triton's code with its waits and pauses taken out and ours put in: as few as LLVM's, and the simulator finds nothing.

LLVM waits more in places that are not counted here: before barriers for lanes that cross the LDS unit, and in front of loads into
halves of a register.
"""

from __future__ import annotations

import re

import pytest
from served import ISAS

from oracles import corpus, execute
from oracles.chips import AMD, Chip
from oracles.corpus import Corpus, Item
from waiting import listing
from waiting.listing import Listing
from waiting.passes import Passes

TRITON = {chip: Corpus(chip) for chip in AMD}
PASSES = {isa.chip.target: Passes(isa) for isa in ISAS}
FAST = ("vector_add", "softmax", "layer_norm", "matmul_f16", "matmul_f64", "atomic_mix", "locked_sum", "hand_over", "attention")
# What one chip's code has and the other's has not: reads by transposition, lanes exchanged, scaled products.
NEW = ("matmul_f16_stages1", "sort_rows", "dot_scaled_e4m3_e5m2")
CASES = [
    pytest.param(chip, case.name, id=f"{chip.triton[1]}-{case.name}", marks=() if case.name in names else pytest.mark.campaign)
    for chip, names in zip(AMD, (FAST, NEW), strict=True) for case in TRITON[chip].cases()
]
# Two waits, each for one of two results, where LLVM has one for both: it also waits for lanes that cross the LDS unit at barriers.
_FINER = {"arg_extremes": 1, "linear_recurrence": 4, "atomic_mix_of_naturals": 2, "matmul_f16_256": 1}


def stripped(chip: Chip, name: str) -> tuple[Item, Listing]:
    try:
        item = TRITON[chip].item(TRITON[chip].case(name))
    except corpus.TritonAbsentError as absent:
        pytest.skip(str(absent))
    if re.search(r"^\s+(global_load_lds_|buffer_load_.*\blds$)", item.text, re.MULTILINE):
        pytest.skip("waits for what is loaded straight to LDS are the pipeline's, not the pass's")
    found = listing.read(PASSES[chip.target].isa, item.text, item.entry)
    if found is None:
        pytest.skip("it goes to computed addresses")
    return item, found


@pytest.mark.parametrize(("chip", "name"), CASES)
def test_as_few_as_llvm_and_clean(chip: Chip, name: str) -> None:
    (item, code), passes = stripped(chip, name), PASSES[chip.target]
    passes.insert(code.function)
    passes.fill(code.function)
    assert passes.complaint(code.function) == ""
    ours, theirs = listing.counts(code.text()), listing.counts(item.text)
    assert ours["waits"] <= theirs["waits"] + _FINER.get(name, 0)
    assert ours["states"] <= theirs["states"]
    outcome = execute.run(item, execute.parse(code.text(), name, chip))
    assert outcome.report.findings == ()
    assert item.check(outcome.outputs) == []
