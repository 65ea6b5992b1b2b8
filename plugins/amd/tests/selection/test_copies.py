"""Loads straight to LDS: a dot's operands on chips that have them, in groups that a loop waits for one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl


@tilefw.jit
def product(a_ptr, b_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, K, STEP):
        a = tl.load(a_ptr + m[:, None] * K + (start + k[None, :]), mask=start + k[None, :] < K, other=0.0)
        b = tl.load(b_ptr + (start + k[:, None]) * N + n[None, :], mask=start + k[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc)


@tilefw.jit
def product_elsewhere(a_ptr, b_ptr, table_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    """Of matrices whose addresses were loaded: nothing is known of how far they reach."""
    tl.store(table_ptr, a_ptr.to(tl.int64))
    tl.store(table_ptr + 1, b_ptr.to(tl.int64))
    tl.debug_barrier()
    a_ptr = tl.multiple_of(tl.load(table_ptr).to(tl.pointer_type(tl.float16)), 16)
    b_ptr = tl.multiple_of(tl.load(table_ptr + 1).to(tl.pointer_type(tl.float16)), 16)
    product(a_ptr, b_ptr, out_ptr, K, M, N, STEP)


@tilefw.jit
def product_of_bytes(a_ptr, b_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    acc = tl.zeros((M, N), dtype=tl.int32)
    for start in range(0, K, STEP):
        a = tl.load(a_ptr + m[:, None] * K + (start + k[None, :]))
        b = tl.load(b_ptr + (start + k[:, None]) * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc)


BLOCKS = {"M": 64, "N": 64, "STEP": 32, "target": "amd-cdna4", "num_warps": 4}


def operands(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, k), (k, 64)))
    return a, b, np.full((64, 64), np.nan, np.float32)


@pytest.mark.parametrize("num_stages", [2, 3, 4])
@pytest.mark.parametrize("k", [0, 16, 32, 48, 64, 96, 208])
def test_a_loop_of_any_length_copies_what_it_reads(k: int, num_stages: int) -> None:
    a, b, out = operands(k)
    result = product[(1,)](a, b, out, k, **BLOCKS, checks="all", num_stages=num_stages)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    text = result.artifact.text
    assert "offen lds" in text and "ds_read_b64_tr_b16" in text and "ds_write" not in text


def test_each_stage_but_one_stays_in_flight() -> None:
    a, b, out = operands(256)
    for num_stages in (2, 3, 4):
        result = product[(1,)](a, b, out, 256, **BLOCKS, num_stages=num_stages)
        loop = result.artifact.text.partition("s_cbranch_scc0")[2].partition("s_cbranch_scc1")[0]
        assert f"vmcnt({2 * (num_stages - 2)})" in loop  # two copies an iteration
        assert loop.count("vmcnt") == 1


@pytest.mark.parametrize("k", [16, 48, 96])
def test_lanes_that_a_mask_keeps_out_store_zeros_where_no_limit_does(k: int) -> None:
    a, b, out = operands(k)
    result = product_elsewhere[(1,)](a, b, np.zeros(2, np.int64), out, k, **BLOCKS, checks="all", num_stages=3)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert "global_load_lds_dwordx4" in result.artifact.text


def test_operands_of_bytes_are_read_by_columns() -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-9, 10, shape).astype(np.int8) for shape in ((64, 192), (192, 64)))
    out = np.zeros((64, 64), np.int32)
    result = product_of_bytes[(1,)](a, b, out, 192, **{**BLOCKS, "STEP": 64}, checks="all", num_stages=3)
    assert np.array_equal(out, a.astype(np.int32) @ b.astype(np.int32))
    assert "offen lds" in result.artifact.text and "ds_read_b64_tr_b8" in result.artifact.text
