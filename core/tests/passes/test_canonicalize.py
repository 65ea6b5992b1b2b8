"""Canonicalisation ends: a round that simplifies nothing makes nothing either, and is the last."""

from __future__ import annotations

import tilefw
import tilefw.language as tl
from tilefw.frontend import build_module
from tilefw.passes import canonicalize


@tilefw.jit
def polynomial(x_ptr, BLOCK: tl.constexpr):
    at = x_ptr + tl.arange(0, BLOCK)
    x = tl.load(at)
    total = x * 0.5 + 1.5
    for _ in tl.static_range(8):
        total = total * x + 2.5 / (x + 3.5)
    tl.store(at, total)


def test_a_round_in_which_nothing_is_simplified_is_the_last() -> None:
    module = build_module(polynomial, {"x_ptr": "*fp32:16"}, {"BLOCK": 64})
    assert [canonicalize._walk(module) for _ in range(3)][-1] is False
