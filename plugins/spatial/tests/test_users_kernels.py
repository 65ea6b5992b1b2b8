"""Kernels as users write them, launched on the target and judged by the reference's bounds; the checker sees each program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFW_VERIFY", "1")


def judge(kernel: Any, grid: tuple[int, ...], *args: Any, **constexprs: Any) -> None:
    """Launches the kernel, and compares every array with what the reference says of it, the signs of zeros as well."""
    expected = tilefw.reference(kernel, grid, *args, **constexprs)
    kernel[grid](*args, target="spatial-sdm1", **constexprs)
    for name, array in zip(kernel.arg_names, args, strict=False):
        if isinstance(array, np.ndarray):
            found, wanted = array.astype(np.float64), expected[name]
            near = np.abs(found - wanted.value) <= wanted.bound
            same = (found == wanted.value) & (np.signbit(found) == np.signbit(wanted.value))
            assert np.all(near & (wanted.bound > 0) | same | wanted.free), name


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


@tilefw.jit
def branching_count(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    k = 0
    for trip in range(5):
        k += trip * trip
        if k > 3:
            k -= 1
        tl.store(out + trip * B + i, tl.load(x + trip * B + i) * k)


def test_a_loop_carries_what_branches_make_of_its_counter() -> None:
    judge(branching_count, (1,), normal(5, 16), np.zeros((5, 16), np.float32), B=16)


@tilefw.jit
def noted_branches(x, out, notes, B: tl.constexpr):
    i = tl.arange(0, B)
    k = 1
    for trip in range(4):
        tl.store(out + trip * B + i, tl.load(x + trip * B + i) * k)
        if trip % 2 == 0:
            tl.store(notes + trip, k)
            k = k * 3


def test_a_branch_that_stores_beside_what_it_gives_is_taken_once() -> None:
    judge(noted_branches, (1,), normal(4, 16), np.zeros((4, 16), np.float32), np.zeros(4, np.int32), B=16)


@tilefw.jit
def sum_of_rows(x, out, rows, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for row in range(rows):
        total += tl.load(x + row * n + i)
    tl.store(out + i, total)


def test_a_sum_that_begins_with_zero_is_never_negative_zero() -> None:
    judge(sum_of_rows, (2,), -np.zeros((3, 32), np.float32), np.zeros(32, np.float32), 3, 32, B=16)


@tilefw.jit
def rows_of_one_feature(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)[:, None]
    j = tl.arange(0, N)[None, :]
    column = tl.load(x + i, i < n, other=0.0)
    row = tl.load(x + j, j < n, other=0.0)
    score = tl.where(j < n, tl.dot(column, row, input_precision="ieee"), float("-inf"))
    power = tl.exp(score - tl.max(score, 1)[:, None])
    tl.store(out + i, tl.dot(power / tl.sum(power, 1)[:, None], column, input_precision="ieee"), i < n)


def test_a_product_of_one_term_stands_among_reductions() -> None:
    judge(rows_of_one_feature, (1,), normal(5), np.zeros(5, np.float32), 5, N=8)


@tilefw.jit
def both_computed(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    k = tl.arange(0, K)
    left = tl.exp(tl.load(a + i[:, None] * K + k[None, :]).to(tl.float32)).to(tl.float16)
    right = tl.maximum(tl.load(b + k[:, None] * N + j[None, :]), 0.0)
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(left, right))


@pytest.mark.parametrize("k", [1, 2, 4, 16])
def test_computed_weights_of_any_number_of_rows(k: int) -> None:
    """One cycle loads eight rows of K: what fills up the last eight is written, too, before it is read."""
    a, b = normal(64, k, dtype=np.float16), normal(k, 32, dtype=np.float16)
    judge(both_computed, (1,), a, b, np.zeros((64, 32), np.float32), M=64, N=32, K=k)


@tilefw.jit
def row_and_column(table, rows, columns, out, WIDTH: tl.constexpr, B: tl.constexpr):
    row = table + tl.load(rows + tl.program_id(0)) * WIDTH
    i = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * B + i, tl.load(row + tl.load(columns + i).to(tl.int64) * -1 + (WIDTH - 1)))


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_data_chooses_a_row_and_in_it_a_column_from_its_end(dtype: Any) -> None:
    table, rows, columns = normal(5, 12), np.asarray([4, 0, 2], np.int32), np.arange(16).astype(dtype) % 12
    judge(row_and_column, (3,), table, rows, columns, np.zeros((3, 16), np.float32), WIDTH=12, B=16)


@tilefw.jit
def wrapping_scalar(out, factor, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, factor * factor * factor + i)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_scalar_that_wraps_is_no_warning() -> None:
    judge(wrapping_scalar, (1,), np.zeros(16, np.int64), 2**40 + 7, B=16)
