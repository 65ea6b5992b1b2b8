"""Two f32 at once: what a loop carries stands so that V_PK instructions take it."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl


@tilefw.jit
def add_up(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    """Sums of every BLOCK-th element."""
    lanes = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        sums += tl.load(x_ptr + first + lanes)
    tl.store(sums_ptr + lanes, sums)


@tilefw.jit
def scale_between(a_ptr, b_ptr, out_ptr, n, factor, M: tl.constexpr, K: tl.constexpr):
    """Products added to sums that are scaled before each, as attention's are."""
    rows, inner = tl.arange(0, M), tl.arange(0, K)
    sums = tl.zeros([M, M], tl.float32)
    for first in range(0, n, K):
        a = tl.load(a_ptr + rows[:, None] * n + first + inner[None, :])
        b = tl.load(b_ptr + (first + inner[:, None]) * M + rows[None, :])
        sums = tl.dot(a, b, sums * factor)
    tl.store(out_ptr + rows[:, None] * M + rows[None, :], sums)


@tilefw.jit
def weights(a_ptr, b_ptr, out_ptr, factor, kept, M: tl.constexpr, K: tl.constexpr):
    """Powers of masked and scaled sums less the greatest of their row, as attention has them."""
    rows, inner = tl.arange(0, M), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + inner[None, :])
    b = tl.load(b_ptr + inner[:, None] * M + rows[None, :])
    sums = tl.where(rows[None, :] < kept, tl.dot(a, b), -1e30)
    scaled = sums * factor - tl.max(sums, 1)[:, None]
    tl.store(out_ptr + rows[:, None] * M + rows[None, :], tl.exp2(scaled))


on_each_chip = pytest.mark.parametrize("target", [chip.target for chip in CHIPS])


def opcodes(artifact: tilefw.Artifact) -> list[str]:
    return [line.split()[0] for line in artifact.text.splitlines() if line.strip()]


@on_each_chip
def test_sums_that_a_loop_carries_are_added_in_pairs(target: str) -> None:
    x, sums = np.arange(1024, dtype=np.float32), np.zeros(256, np.float32)
    result = add_up[(1,)](x, sums, 1024, BLOCK=256, target=target, checks="all", num_warps=1)
    assert np.array_equal(sums, x.reshape(4, 256).sum(0))
    found = opcodes(result.artifact)
    assert "v_pk_add_f32" in found and not any(opcode.startswith("v_add_f32") for opcode in found)


@on_each_chip
def test_sums_of_a_dot_are_scaled_in_pairs_where_they_stand(target: str) -> None:
    m, k, n = 32, 16, 64
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, n), (n, m)))
    out = np.zeros((m, m), np.float32)
    result = scale_between[(1,)](a, b, out, n, 0.5, M=m, K=k, target=target, checks="all", num_warps=1)
    parts = [a[:, i : i + k].astype(np.float32) @ b[i : i + k].astype(np.float32) for i in range(0, n, k)]
    expected = np.zeros_like(out)
    for part in parts:
        expected = expected * 0.5 + part
    assert np.array_equal(out, expected)
    found = opcodes(result.artifact)
    products = [opcode for opcode in found if opcode.startswith("v_mfma")]
    assert products and found.count("v_pk_mul_f32") >= 8 and not any(opcode.startswith("v_mul_f32") for opcode in found)
    assert sum(opcode.startswith(("v_mov_b32", "v_mov_b64", "v_accvgpr")) for opcode in found) <= 12  # zeros, and the factor twice


@on_each_chip
def test_choices_powers_and_what_is_between_them_are_computed_in_pairs(target: str) -> None:
    m, k = 32, 16
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-1, 2, shape).astype(np.float16) for shape in ((m, k), (k, m)))
    out = np.zeros((m, m), np.float32)
    result = weights[(1,)](a, b, out, 0.5, 27, M=m, K=k, target=target, checks="all", num_warps=1)
    sums = np.where(np.arange(m) < 27, a.astype(np.float32) @ b.astype(np.float32), -1e30)
    assert np.allclose(out, np.exp2(sums * 0.5 - sums.max(1, keepdims=True)), rtol=1e-6)
    found = opcodes(result.artifact)
    assert found.count("v_pk_fma_f32") == 8 and not any(opcode.startswith(("v_fma_f32", "v_sub_f32")) for opcode in found)
