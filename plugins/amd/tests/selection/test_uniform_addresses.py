"""Where a block begins stands in scalar registers, whatever it is computed from."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl


@tilefw.jit
def two_places(x_ptr, out_ptr, n, N: tl.constexpr):
    """The loads have a constant in common, which the first scales beside a scalar."""
    i = tl.arange(0, N)
    found = tl.load(x_ptr + (i + 1023 + n * 64)).to(tl.int64)
    for k in range(n):
        found += tl.load(x_ptr + (i + 1023), mask=i % 2 == k % 2, other=5, cache_modifier=".cv")
    tl.store(out_ptr + i, found)


@pytest.mark.parametrize("target", [chip.target for chip in CHIPS])
def test_an_offset_of_scalars_and_literals(target: str) -> None:
    x, i, n = np.arange(2000, dtype=np.int16), np.arange(64), 3
    out = np.zeros(64, np.int64)
    two_places[(1,)](x, out, n, 64, target=target, checks="all", num_warps=1)
    assert np.array_equal(out, x[i + 1023 + n * 64] + sum(np.where(i % 2 == k % 2, x[i + 1023], 5) for k in range(n)))


@tilefw.jit
def behind_a_remainder(at_ptr, x_ptr, out_ptr, n, N: tl.constexpr):
    """Remainders of 64 bits are made in vector registers, of scalars too."""
    i = tl.arange(0, N)
    at = tl.load(at_ptr) - 1
    tl.store(out_ptr + (at % n * N + i), tl.load(x_ptr + i))


@pytest.mark.parametrize("target", [chip.target for chip in CHIPS])
def test_a_base_that_was_made_in_vector_registers(target: str) -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(256, np.float32)
    behind_a_remainder[(1,)](np.array([24], np.int64), x, out, 4, 64, target=target, checks="all", num_warps=1)
    assert np.array_equal(out.reshape(4, 64), np.stack([x if row == 23 % 4 else np.zeros(64, np.float32) for row in range(4)]))
