"""Reductions give what NumPy gives, in the types that Triton gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from whole_tiles import FLOATS, INTEGERS, host_type, load_tile, numbers, store_all, sum_type

import tilefw
import tilefw.language as tl

NUMPY: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "max": np.max, "min": np.min, "xor_sum": np.bitwise_xor.reduce, "reduce_or": np.bitwise_or.reduce,
    "argmax": np.argmax, "argmin": np.argmin,
}


@tilefw.jit
def reduce_by_name(
    x_ptr, out_ptr, SHAPE: tl.constexpr, OP: tl.constexpr, AXIS: tl.constexpr, KEEP: tl.constexpr, TYPE: tl.constexpr
):
    y = getattr(tl, OP)(load_tile(x_ptr, SHAPE), AXIS, keep_dims=KEEP)
    tl.static_assert(y.dtype == TYPE, f"{y.dtype}")
    store_all(out_ptr, y)


def widened(dtype: str) -> str:
    if dtype in ("float16", "bfloat16"):
        return "float32"
    return "int32" if dtype in ("int8", "uint8", "int16", "uint16") else dtype


def check(ran: Any, op: str, x: np.ndarray, type: str, axis: int | None, keep: bool, exact: bool) -> None:
    cast = x if op.startswith("arg") else x.astype(host_type(type))
    wanted = np.asarray(NUMPY[op](cast, axis=axis, keepdims=keep)).astype(host_type(type))
    found = ran(reduce_by_name, x, wanted.shape, wanted.dtype, SHAPE=x.shape, OP=op, AXIS=axis, KEEP=keep, TYPE=getattr(tl, type))
    if exact:
        np.testing.assert_array_equal(found, wanted)
        return
    count = x.size if axis is None else x.shape[axis]
    unit = float(ml_dtypes.finfo(found.dtype).eps)
    bound = count * unit * np.abs(x.astype(np.float64)).sum(axis=axis, keepdims=keep)
    assert (np.abs(found.astype(np.float64) - x.astype(np.float64).sum(axis=axis, keepdims=keep)) <= bound).all()


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_added_with_the_width_of_32_bits_or_more(dtype: str, axis: int | None, ran: Any) -> None:
    check(ran, "sum", numbers(dtype, (8, 16)), sum_type(dtype), axis, keep=False, exact=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_sums_stay_in_their_type(dtype: str, ran: Any) -> None:
    for axis in (None, 0, 1):
        check(ran, "sum", numbers(dtype, (16, 32)), dtype, axis, keep=True, exact=False)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS))
def test_extremes_are_exact(op: str, dtype: str, ran: Any) -> None:
    for axis, keep in ((None, False), (0, True), (-1, False)):
        check(ran, op, numbers(dtype, (8, 16)), widened(dtype), axis, keep, exact=True)


@pytest.mark.parametrize("op", ["xor_sum", "reduce_or"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise_reductions_keep_the_type(op: str, dtype: str, ran: Any) -> None:
    for axis, keep in ((None, True), (1, False)):
        check(ran, op, numbers(dtype, (4, 8)) & numbers(dtype, (4, 8), 1), dtype, axis, keep, exact=True)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("shape", [(16,), (8, 4), (2, 4, 8)])
def test_the_leftmost_of_equal_elements_wins(op: str, shape: tuple[int, ...], ran: Any) -> None:
    x = np.random.default_rng(3).integers(0, 3, shape).astype(np.float32)
    for axis in range(-len(shape), len(shape)):
        check(ran, op, x, "int32", axis, keep=axis % 2 == 0, exact=True)


@tilefw.jit
def sum_flags(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    count = tl.sum(x > 0)
    tl.static_assert(count.dtype == tl.uint32)
    tl.store(out_ptr, count)
    narrow = tl.sum(x, dtype=tl.int8)
    tl.static_assert(narrow.dtype == tl.int8)
    tl.store(out_ptr + 1, narrow)


def test_flags_are_counted_and_a_named_type_adds_in_that_type(ran: Any) -> None:
    x = np.full(64, 7, np.int32)
    assert ran(sum_flags, x, (2,), np.int32, N=64).tolist() == [64, (7 * 64 + 128) % 256 - 128]


@tilefw.jit
def best_and_index(x_ptr, out_ptr, N: tl.constexpr, LEFT: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    value, index = tl.max(x, 0, return_indices=True, return_indices_tie_break_left=LEFT, keep_dims=True)
    tl.static_assert(value.dtype == tl.float16 and index.dtype == tl.int32 and value.shape == (1,))
    tl.store(out_ptr + tl.arange(0, 1), value)
    tl.store(out_ptr + 1 + tl.arange(0, 1), index)
    least, place = x.min(axis=0, return_indices=True)
    tl.store(out_ptr + 2, least)
    tl.store(out_ptr + 3, place)


def test_an_extreme_comes_with_its_index_in_its_own_type(ran: Any) -> None:
    x = numbers("float16", (64,))
    for left in (True, False):
        found = ran(best_and_index, x, (4,), np.float32, N=64, LEFT=left)
        assert found.tolist() == [x.max(), x.argmax(), x.min(), x.argmin()]


@tilefw.jit
def extremes_with_nan(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.max(x, 0))
    tl.store(out_ptr + 1, tl.min(x, 0))


def test_a_nan_loses_against_numbers(ran: Any) -> None:
    x = np.array([np.nan, 1.0, np.nan, -2.0], np.float32)
    assert ran(extremes_with_nan, x, (2,), np.float32, N=4).tolist() == [1.0, -2.0]


@tilefw.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = count_b.to(tl.float32) / count
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@tilefw.jit
def moments(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = load_tile(x_ptr, (M, N))
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), tl.full((M, N), 1, tl.int32)), 1, welford)
    rows = tl.arange(0, M) * 3
    tl.store(out_ptr + rows, mean)
    tl.store(out_ptr + rows + 1, m2 / count)
    tl.store(out_ptr + rows + 2, count)


def test_a_function_of_ones_own_reduces_several_tiles(ran: Any) -> None:
    x = numbers("float32", (4, 64))
    found = ran(moments, x, (4, 3), np.float32, M=4, N=64)
    np.testing.assert_allclose(found[:, 0], x.mean(axis=1), rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[:, 1], x.var(axis=1), rtol=1e-4)
    assert (found[:, 2] == 64).all()


@tilefw.jit
def furthest(a, b):
    if tl.abs(a) > tl.abs(b):
        return a
    return b


@tilefw.jit
def product(a, b):
    return a * b


@tilefw.jit
def own_reductions(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = load_tile(x_ptr, (M, N))
    tl.store(out_ptr, tl.reduce(x, None, furthest))
    kept = tl.reduce(x, 0, product, keep_dims=True)
    tl.static_assert(kept.shape == (1, N))
    store_all(out_ptr + 1, kept)
    (same,) = tl.reduce((x,), None, product, keep_dims=True)
    tl.static_assert(same.shape == (1, 1))
    tl.store(out_ptr + 1 + N, same.item())


def test_branches_axes_and_single_tuples_of_a_function_of_ones_own(ran: Any) -> None:
    x = (1 + 0.1 * numbers("float32", (4, 8))) * np.where(numbers("float32", (4, 8), 5) > 0, 1, -1).astype(np.float32)
    found = ran(own_reductions, x, (10,), np.float32, M=4, N=8)
    assert found[0] == x.flat[np.abs(x).argmax()]
    wide = x.astype(np.float64)  # each product of a float32 is off by 2^-24, in whatever order they are taken
    np.testing.assert_allclose(found[1:9], wide.prod(axis=0), rtol=4 * 2.0**-24)
    np.testing.assert_allclose(found[9], wide.prod(), rtol=32 * 2.0**-24)


@tilefw.jit
def softmax_of(x_ptr, out_ptr, SHAPE: tl.constexpr, DIM: tl.constexpr, TYPE: tl.constexpr, IEEE: tl.constexpr):
    y = tl.softmax(load_tile(x_ptr, SHAPE), DIM, ieee_rounding=IEEE)
    tl.static_assert(y.dtype == TYPE)
    store_all(out_ptr, y)


@pytest.mark.parametrize(("dtype", "type"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")])
def test_softmax_goes_along_axis_0_by_default(dtype: str, type: str, ran: Any) -> None:
    x = numbers(dtype, (8, 16))
    for dim in (None, 0, 1, -1):
        powers = np.exp(x.astype(np.float64) - x.max(axis=dim or 0, keepdims=True))
        wanted = powers / powers.sum(axis=dim or 0, keepdims=True)
        found = ran(softmax_of, x, x.shape, type, SHAPE=x.shape, DIM=dim, TYPE=getattr(tl, type),
                    IEEE=dim is None and type == "float32")
        # Differences of up to 8 as exponents are off by 16 units, exp by 3, up to 16 terms in a sum by 16, the quotient by 2:
        # in the numerator and again in the denominator.
        np.testing.assert_allclose(found, wanted, rtol=64 * float(np.finfo(type).epsneg))
