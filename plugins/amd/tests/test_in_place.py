"""Accesses to one element stay in order, whichever waves the compiler has it in."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl


@tilefw.jit
def take(x_ptr, out_ptr, n, ADD: tl.constexpr, BLOCK: tl.constexpr):
    """Loads two elements an access, as its mask is alike in pairs, and stores one, as the other mask is not."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=7)
    tl.store(out_ptr + i, x)
    tl.store(x_ptr + i, x + 1 if ADD else 0.0, mask=(i < n) & (i >= 0))


@pytest.mark.parametrize("target", ["amd-cdna3", "nvidia-sm80"])
@pytest.mark.parametrize("add", [False, True])
def test_masks_of_load_and_store_may_differ(target: str, add: bool) -> None:
    x, out = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    before, n = x.copy(), 496
    take[(1,)](x, out, n, ADD=add, BLOCK=512, target=target, checks="all")
    assert np.array_equal(out[:n], before[:n]) and (out[n:] == 7).all()
    assert np.array_equal(x[:n], before[:n] + 1 if add else np.zeros(n)) and np.array_equal(x[n:], before[n:])


@tilefw.jit
def write_and_multiply(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Every element is read where it was written, by other waves: copies and dots have an order of their own."""
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    tl.store(a_ptr + i * BLOCK + j, 1.0, mask=j < n)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, 2, num_stages=STAGES):
        a = tl.load(a_ptr + i * BLOCK + j)
        b = tl.load(b_ptr + (k * BLOCK + i) * BLOCK + j)
        total = tl.dot(a, b, total)
    tl.store(out_ptr + i * BLOCK + j, total)


@pytest.mark.parametrize("target", ["amd-cdna3", "nvidia-sm80"])
@pytest.mark.parametrize("stages", [1, 2])
def test_what_was_stored_is_loaded(target: str, stages: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((32, 32), (64, 32)))
    written, out = a.copy(), np.zeros((32, 32), np.float32)
    written[:, :30] = 1
    write_and_multiply[(1,)](a, b, out, 30, BLOCK=32, STAGES=stages, target=target, checks="all")
    assert np.array_equal(a, written) and np.array_equal(out, written.astype(np.float32) @ (b[:32] + b[32:]).astype(np.float32))
