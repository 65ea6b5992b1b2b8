"""Triton's gfx942 code with its waits and pauses taken out and ours put in: as few as LLVM's, and the simulator finds nothing.

LLVM waits more in places that are not counted here: before barriers for lanes that cross the LDS unit, and in front of loads into
halves of a register.
"""

from __future__ import annotations

import pytest
from served import WAITS, seen, wait_rules, wait_state_model

from oracles import corpus, execute
from oracles.chips import GFX942
from oracles.corpus import Corpus, Item
from tilefw.api.machine import check_wait_states, check_waits, fill_wait_states, insert_waits
from waiting import listing
from waiting.flow import TABLE
from waiting.listing import Listing

TRITON = Corpus(GFX942)
FAST = ("vector_add", "softmax", "layer_norm", "matmul_f16", "matmul_f64", "atomic_mix", "locked_sum", "hand_over", "attention")
NAMES = [
    pytest.param(case.name, marks=() if case.name in FAST else pytest.mark.campaign) for case in TRITON.cases()
]
# Two waits, each for one of two results, where LLVM has one for both: it also waits for lanes that cross the LDS unit at barriers.
_FINER = {"arg_extremes": 1, "linear_recurrence": 4, "atomic_mix_of_naturals": 2, "matmul_f16_256": 1}


def stripped(name: str) -> tuple[Item, Listing]:
    try:
        item = TRITON.item(TRITON.case(name))
    except corpus.TritonAbsentError as absent:
        pytest.skip(str(absent))
    found = listing.read(item.text, item.entry)
    if found is None:
        pytest.skip("it goes to computed addresses")
    return item, found


@pytest.mark.parametrize("name", NAMES)
def test_as_few_as_llvm_and_clean(name: str) -> None:
    item, code = stripped(name)
    insert_waits(code.function, TABLE, WAITS)
    fill_wait_states(code.function, TABLE, wait_state_model())
    check_waits(code.function, TABLE, seen)
    check_wait_states(code.function, TABLE, wait_rules())
    ours, theirs = listing.counts(code.text()), listing.counts(item.text)
    assert ours["waits"] <= theirs["waits"] + _FINER.get(name, 0)
    assert ours["states"] <= theirs["states"]
    text = code.text().replace("amdgpu9.42-amd-amdhsa-unknown-gfx942", "amdgcn-amd-amdhsa--gfx942")
    outcome = execute.run(item, execute.parse(text, name, GFX942))
    assert outcome.report.findings == ()
    assert item.check(outcome.outputs) == []
