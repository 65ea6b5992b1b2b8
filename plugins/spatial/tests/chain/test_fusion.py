"""Products go unrounded into sums where the launch allows it, and only there."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.runtime.jit import JITFunction


@tilefw.jit
def multiply_add(x, y, z, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))


@tilefw.jit
def multiply_and_add_in_memory(x, y, z, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(z + i))
    tl.atomic_add(out + i, tl.load(x + i) * tl.load(y + i))


@pytest.mark.parametrize(("kernel", "allowed", "fused"), [
    (multiply_add, True, True), (multiply_add, False, False), (multiply_and_add_in_memory, True, False),
])
def test_a_sum_takes_a_product_unrounded_where_that_is_allowed(kernel: JITFunction, allowed: bool, fused: bool) -> None:
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal(256).astype(np.float32) for _ in range(3))
    out = np.zeros_like(x)
    kernel[(1,)](x, y, z, out, BLOCK=256, target="spatial-sdm1", enable_fp_fusion=allowed)
    once = (x.astype(np.float64) * y + z).astype(np.float32)
    assert (once != x * y + z).any()
    assert np.array_equal(out, once if fused else x * y + z)
