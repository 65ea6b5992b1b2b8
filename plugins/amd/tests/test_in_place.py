"""A store never overtakes the loads of what was there, whichever waves the compiler has either element in."""

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
