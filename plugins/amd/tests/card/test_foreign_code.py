"""Machine code that tilefw did not make runs on the card: Triton's, kernels with hidden arguments, and with dynamic LDS."""

from __future__ import annotations

import numpy as np
import pytest
from assembled import BACKEND, PROLOGUE, store, text

from hip_standin import HipStandIn
from oracles import corpus, execute
from oracles.case import Case
from oracles.chips import GFX942
from oracles.corpus import Corpus
from tilefw.api import BufferView, LaunchOptions
from tilefw.api.hardware import Card

TRITON = Corpus(GFX942)
KINDS = ("vector_add", "softmax", "matmul_f16", "layernorm", "histogram")
CASES = [
    pytest.param(case, id=case.name, marks=() if case.name in KINDS else pytest.mark.campaign)
    for case in TRITON.cases() if case.fast
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_tritons_code_runs_on_the_card(case: Case, standin: HipStandIn, card: Card) -> None:
    try:
        item = TRITON.item(case, 0, 0)
    except corpus.TritonAbsentError as absent:
        pytest.skip(str(absent))
    assert item.check(execute.run(item, device=card).outputs) == []


def launched(body: str, card: Card, dynamic_shared: int, **how: object) -> np.ndarray:
    module = card.load(BACKEND.parse(text(PROLOGUE + body, **how), "kernel.s"))
    buffer = card.allocate(256)
    card.write(buffer, bytes(256))
    options = LaunchOptions(block=(64, 1, 1), dynamic_shared=dynamic_shared)
    report = card.launch(module, "kernel", (5,), (BufferView(buffer),), options)
    assert report.completion is not None
    report.completion.wait()
    return np.frombuffer(card.read(buffer, 256), np.uint32)


def test_shared_memory_is_as_much_as_the_launch_says(standin: HipStandIn, card: Card) -> None:
    body = """
  v_xor_b32 v1, 0xfc, v40
  ds_write_b32 v40, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b32 v2, v1
  s_waitcnt lgkmcnt(0)
""" + store("v2")
    assert np.array_equal(launched(body, card, 256), np.arange(64)[::-1])
    assert [args[7] for name, args in standin.calls if name == "hipModuleLaunchKernel"] == [256]


def test_the_runtime_fills_in_hidden_arguments(standin: HipStandIn, card: Card) -> None:
    body = "  s_load_dword s6, s[0:1], 0x10\n  s_waitcnt lgkmcnt(0)\n" + store("s6")
    hidden = [("hidden_block_count_x", 16, 4), ("hidden_group_size_x", 20, 2)]
    assert launched(body, card, 0, hidden=hidden).tolist() == [5] * 64
