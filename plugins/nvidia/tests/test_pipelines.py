"""Pipelined loops on the simulated chip, under all checks: right results, no findings, the copies and barriers that are meant."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.select.lanes import description


@tilefw.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    blocks_n = tl.cdiv(N, BLOCK_N)
    block_m = tl.program_id(0) // blocks_n
    block_n = tl.program_id(0) % blocks_n
    m = (block_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (block_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :]
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    m = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :], acc.to(tl.float16), mask=inside)


def multiply(m: int, n: int, k: int, block: tuple[int, int, int], stages: int, chip: Chip, warps: int = 4) -> tilefw.LaunchResult:
    """Launch `product` on integers so small that the result is exact, and compare it."""
    rng = np.random.default_rng(k)
    a, b = rng.integers(-2, 3, (m, k)).astype(np.float16), rng.integers(-2, 3, (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    grid = (tilefw.cdiv(m, block[0]) * tilefw.cdiv(n, block[1]),)
    result = product[grid](a, b, c, m, n, k, k, n, n, *block, num_stages=stages, num_warps=warps, target=chip.target, checks="all")
    assert np.array_equal(c, a @ b)
    assert not result.diagnostics
    return result


def barrier_bytes(chip: Chip, stages: int) -> int:
    """What barriers of an engine's copies take, where the chip has one: a barrier a stage."""
    return 0 if description(chip).copy_engine is None else 8 * stages


def steady_loop(text: str) -> str:
    """The first loop of a listing."""
    found = re.search(r"^\$(\w*loop\w*):\n(.*?bra \$\1;)", text, re.M | re.S)
    assert found is not None, text
    return found[2]


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5])
def test_a_product_of_many_stages(stages: int, chip: Chip) -> None:
    result = multiply(144, 128, 176, (128, 128, 32), stages, chip)
    loop = steady_loop(result.artifact.text)
    if stages == 1:
        assert "cp.async" not in loop
        return
    ahead = "wgmma" in loop and stages > 2  # copies are waited for in the iteration before theirs, behind its product
    assert ("wgmma" in loop) == any(atom.asynchronous for atom in description(chip).atoms)
    if description(chip).copy_engine is not None:  # a box for a, two for b, of rows of 128 bytes
        assert loop.count("cp.async.bulk.tensor") == 3 and loop.count("mbarrier.try_wait") == 1 and "cp.async.c" not in loop
    else:
        assert loop.count("cp.async.wait_group") == 1 and f"cp.async.wait_group {stages - 2 - ahead};" in loop
        assert loop.count("cp.async.cg") == 8 and loop.count("cp.async.commit_group") == 1
    slot = 2 * 128 * 32 * 2
    fewer = _together(chip, (stages - 1) * slot) > _together(chip, stages * slot)  # sm_86 and sm_89 with four stages
    assert loop.count("bar.sync") == 1 + fewer
    assert result.artifact.entry().shared_bytes == (stages - fewer) * slot + barrier_bytes(chip, stages)


def _together(chip: Chip, shared_bytes: int) -> int:
    """How many workgroups of four warps a processor holds, whatever their registers."""
    return min(2, chip.shared_bytes_per_processor // (shared_bytes + chip.system_shared_bytes))


@pytest.mark.parametrize("k", [0, 8, 32, 40, 64, 72, 200])
def test_fewer_iterations_than_stages(k: int, chip: Chip) -> None:
    multiply(64, 64, k, (64, 64, 32), 4, chip)


def test_a_ring_that_would_not_fit_has_a_slot_less(chip: Chip) -> None:
    slot = (128 + 256) * 64 * 2
    fitting = chip.shared_bytes // slot
    result = multiply(128, 256, 320, (128, 256, 64), fitting + 1, chip, warps=8)
    entry = result.artifact.entry()
    # Among groups of warps: a slot has two barriers, one for each way, and the copying warp's loop comes first.
    divided = entry.workgroup[0] > 8 * chip.lanes
    assert divided == (description(chip).copy_engine is not None)
    assert entry.shared_bytes == fitting * slot + (16 * fitting if divided else barrier_bytes(chip, fitting + 1))
    assert steady_loop(result.artifact.text).count("bar.sync") == (0 if divided else 2)


@tilefw.jit
def softmax(x_ptr, out_ptr, rows, columns, stride, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * stride + column, mask=inside, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * stride + column, e / tl.sum(e, axis=0), mask=inside)


def normalise(x: np.ndarray, stages: int, chip: Chip) -> tilefw.LaunchResult:
    """Launch `softmax` on three programs, and compare what it stores."""
    rows, columns = x.shape
    out = np.full(x.shape, np.nan, np.float32)
    result = softmax[(3,)](x, out, rows, columns, columns, BLOCK=128, STAGES=stages, target=chip.target, checks="all")
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.allclose(out, e / e.sum(axis=1, keepdims=True), atol=1e-6)
    assert not result.diagnostics
    return result


@pytest.mark.parametrize("stages", [2, 4])
def test_copied_rows_are_filled_with_what_is_not_zero(stages: int, chip: Chip) -> None:
    x = np.random.default_rng(1).standard_normal((11, 100)).astype(np.float32)
    loop = steady_loop(normalise(x, stages, chip).artifact.text)
    assert loop.count("cp.async.c") == 2 and "ld.global" not in loop  # a copy and a commit


@pytest.mark.parametrize("stages", [2, 4])
def test_rows_that_are_too_narrow_for_copies_wait_in_registers(stages: int, chip: Chip) -> None:
    x = np.random.default_rng(1).standard_normal((11, 101)).astype(np.float16)
    text = normalise(x, stages, chip).artifact.text
    assert "cp.async" not in text and text.count("ld.global") == 2, "one before the loop and one in it, however many stages"


def test_loads_stay_behind_stores_that_may_overlap(chip: Chip) -> None:
    """In place, each row's store comes before the next load; the launch knows the arrays and asks for other code."""
    x = np.random.default_rng(2).standard_normal((4, 128)).astype(np.float32)
    expected = np.exp(x - x.max(axis=1, keepdims=True))
    result = softmax[(1,)](x, x, 4, 128, 128, BLOCK=128, STAGES=3, target=chip.target, checks="all")
    assert np.allclose(x, expected / expected.sum(axis=1, keepdims=True), atol=1e-6)
    assert result.artifact.text.count("ld.global") == 1


@tilefw.jit
def paged(x_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for i in range(0, n):
        page = tl.load(table_ptr + i)
        x = tl.load(x_ptr + page * BLOCK * DEPTH + row[:, None] * DEPTH + depth[None, :])
        acc = tl.dot(x, tl.trans(x), acc)
    tl.store(out_ptr + row[:, None] * BLOCK + row[None, :], acc)


@tilefw.jit
def gathered(x_ptr, table_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for i in range(0, n):
        rows = tl.load(table_ptr + i * BLOCK + row)
        x = tl.load(x_ptr + rows[:, None] * DEPTH + depth[None, :])
        w = tl.load(w_ptr + i * BLOCK * DEPTH + depth[:, None] * BLOCK + row[None, :])
        acc = tl.dot(x, w, acc)
    tl.store(out_ptr + row[:, None] * BLOCK + row[None, :], acc)


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("n", [0, 2, 5])
def test_addresses_that_are_loaded_are_loaded_earlier_still(stages: int, n: int, chip: Chip) -> None:
    rng = np.random.default_rng(n)
    pages, rows = rng.integers(0, 8, max(n, 1)).astype(np.int32), rng.integers(0, 512, max(n, 1) * 64).astype(np.int32)
    x = rng.integers(-2, 3, (8, 64, 32)).astype(np.float16)
    w = rng.integers(-2, 3, (max(n, 1), 32, 64)).astype(np.float16)
    out = np.full((64, 64), np.nan, np.float32)
    result = paged[(1,)](x, pages, out, n, BLOCK=64, DEPTH=32, num_stages=stages, target=chip.target, checks="all")
    wide = x.astype(np.float32)
    assert np.array_equal(out, sum((wide[p] @ wide[p].T for p in pages[:n]), np.zeros((64, 64), np.float32)))
    assert not result.diagnostics and "cp.async" in steady_loop(result.artifact.text)
    result = gathered[(1,)](x, rows, w, out, n, BLOCK=64, DEPTH=32, num_stages=stages, target=chip.target, checks="all")
    taken = wide.reshape(512, 32)[rows].reshape(-1, 64, 32)
    assert np.array_equal(out, sum((taken[i] @ w[i].astype(np.float32) for i in range(n)), np.zeros((64, 64), np.float32)))
    assert not result.diagnostics
    assert steady_loop(result.artifact.text).count("cp.async.c") == 2 * 64 * 32 * 2 // (16 * 128) + 1  # 4 copies, 1 commit
