"""Elements of packed registers are stored from where they stand."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl


@tilefw.jit
def halve(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Two elements a lane, which n lets no access take together."""
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, (x * 0.5).to(out_ptr.dtype.element_ty), mask=at < n)


@pytest.mark.parametrize("target", [chip.target for chip in CHIPS])
@pytest.mark.parametrize("n", [1, 127, 256])
def test_what_is_packed_on_the_way_is_not_taken_apart_for_a_store(n: int, target: str) -> None:
    x, out = np.arange(256, dtype=np.float32), np.full(256, 7.0, np.float16)
    result = halve[(1,)](x, out, n, BLOCK=256, target=target, checks="all", num_warps=1)
    assert np.array_equal(out, np.where(np.arange(256) < n, x * 0.5, 7.0).astype(np.float16))
    opcodes = [line.split()[0] for line in result.artifact.text.splitlines() if line.strip()]
    if n < 255:
        assert opcodes.count("buffer_store_short_d16_hi") == opcodes.count("buffer_store_short") == 2
        assert not any(opcode.startswith("v_lshrrev_b32") for opcode in opcodes)
