"""Products of tiles are those of NumPy, within what the types and the input precision allow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilefw
import tilefw.language as tl

# Element type -> (its NumPy type, the result's type, the relative error of one product and one addition in it).
TYPES = {
    "float16": (np.float16, "float32", 2.0**-24),
    "bfloat16": (ml_dtypes.bfloat16, "float32", 2.0**-24),
    "float32": (np.float32, "float32", 2.0**-10),  # tf32: 10 bits of mantissa, perhaps cut off
    "float64": (np.float64, "float64", 2.0**-53),
    "float8e5": (ml_dtypes.float8_e5m2, "float32", 2.0**-24),
    "float8e4nv": (ml_dtypes.float8_e4m3fn, "float32", 2.0**-24),
}


@tilefw.jit
def load_matrices(ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    if B == 0:
        return tl.load(ptr + rows)
    return tl.load(ptr + tl.arange(0, B)[:, None, None] * (M * N) + rows[None, :, :])


@tilefw.jit
def product(a_ptr, b_ptr, c_ptr, out_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
            PRECISION: tl.constexpr, TYPE: tl.constexpr, ADD: tl.constexpr):
    a, b = load_matrices(a_ptr, B, M, K), load_matrices(b_ptr, B, K, N)
    if ADD:
        y = tl.dot(a, b, load_matrices(c_ptr, B, M, N), input_precision=PRECISION)
    else:
        y = tl.dot(a, b, input_precision=PRECISION, out_dtype=TYPE)
    tl.static_assert(y.dtype == TYPE, f"{y.dtype}")
    tl.store(out_ptr + tl.arange(0, y.numel), tl.ravel(y))


def multiply(ran: Any, a: np.ndarray, b: np.ndarray, type: str, add: bool = False, precision: str | None = None) -> np.ndarray:
    """The kernel's product of two stacks of matrices, plus ones when `add`."""
    batch = a.shape[0] if a.ndim == 3 else 0
    shape = (*a.shape[:-1], b.shape[-1])
    start = np.ones(shape, type)
    return ran(product, (a, b, start), shape, type, B=batch, M=shape[-2], N=shape[-1], K=a.shape[-1], PRECISION=precision,
               TYPE=getattr(tl, type), ADD=add)


def matrices(dtype: Any, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def within(found: np.ndarray, a: np.ndarray, b: np.ndarray, unit: float, add: bool = False) -> None:
    """Any order of summation, with `unit` of relative error in each product and each addition."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    bound = (a.shape[-1] + 3) * unit * (np.abs(x) @ np.abs(y) + add)
    assert (np.abs(found.astype(np.float64) - (x @ y + add)) <= bound).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_floats_of_every_type_multiply(dtype: str, ran: Any) -> None:
    host, result, unit = TYPES[dtype]
    for a, b, add in (((16, 32), (32, 8), False), ((4, 8, 16), (4, 16, 16), True)):
        x, y = matrices(host, a, 1), matrices(host, b, 2)
        within(multiply(ran, x, y, result, add), x, y, unit, add)


@pytest.mark.parametrize(("precision", "unit"), [
    ("ieee", 2.0**-24), ("tf32", 2.0**-10), ("TF32x3", 2.0**-19), ("bf16x3", 2.0**-14), ("bf16x6", 2.0**-20),
])
def test_input_precision_bounds_the_error_of_float32(precision: str, unit: float, ran: Any) -> None:
    x, y = matrices(np.float32, (16, 64), 1), matrices(np.float32, (64, 16), 2)
    within(multiply(ran, x, y, "float32", precision=precision), x, y, unit)


def test_float16_adds_in_float16_when_it_is_told_to(ran: Any) -> None:
    x, y = matrices(np.float16, (16, 16), 1), matrices(np.float16, (16, 16), 2)
    for add in (False, True):
        within(multiply(ran, x, y, "float16", add), x, y, 2.0**-11, add)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_integers_are_exact(dtype: str, ran: Any) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    x, y = (rng.integers(info.min, info.max, shape, dtype, endpoint=True) for shape in ((8, 64), (64, 32)))
    for add in (False, True):
        wanted = x.astype(np.int32) @ y.astype(np.int32) + add
        np.testing.assert_array_equal(multiply(ran, x, y, "int32", add), wanted)


@tilefw.jit
def mixed_floats(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    y = tl.dot(load_matrices(a_ptr, 0, N, N), load_matrices(b_ptr, 0, N, N))
    tl.store(out_ptr + tl.arange(0, y.numel), tl.ravel(y))


def test_8_bit_floats_of_two_formats_multiply(ran: Any) -> None:
    x, y = matrices(ml_dtypes.float8_e5m2, (16, 16), 1), matrices(ml_dtypes.float8_e4m3fn, (16, 16), 2)
    within(ran(mixed_floats, (x, y), (16, 16), np.float32, N=16), x, y, 2.0**-24)


@tilefw.jit
def chained(a_ptr, b_ptr, out_ptr, N: tl.constexpr, STEPS: tl.constexpr):
    a, b = load_matrices(a_ptr, 0, N, N), load_matrices(b_ptr, 0, N, N)
    total = tl.zeros((N, N), tl.float32)
    for _ in tl.range(STEPS, num_stages=2):
        total = tl.dot(a, b, total)
        a = tl.trans(a)
    squared = tl.dot(total.to(tl.float16), b.T)
    tl.store(out_ptr + tl.arange(0, squared.numel), tl.ravel(squared))


def test_products_chain_through_loops_and_casts(ran: Any) -> None:
    x, y = matrices(np.float16, (16, 16), 1), matrices(np.float16, (16, 16), 2)
    wide, other = x.astype(np.float64), y.astype(np.float64)
    total = 2 * wide @ other + wide.T @ other
    found = ran(chained, (x, y), (16, 16), np.float32, N=16, STEPS=3)
    # The sum is rounded to float16 once; all else is of float32: 3 x 16 products and sums, then 16.
    magnitude = (2 * np.abs(wide) + np.abs(wide.T)) @ np.abs(other)
    bound = (2.0**-11 * np.abs(total) + (3 * 16 + 16 + 3) * 2.0**-24 * magnitude) @ np.abs(other.T)
    assert (np.abs(found - total @ other.T) <= bound).all()


@tilefw.jit
def four_axes(a_ptr, b_ptr, out_ptr):
    a = tl.reshape(load_matrices(a_ptr, 4, 8, 16), (2, 2, 8, 16))
    b = tl.reshape(load_matrices(b_ptr, 4, 16, 4), (2, 2, 16, 4))
    y = tl.dot(a, b)
    tl.static_assert(y.shape == (2, 2, 8, 4))
    tl.store(out_ptr + tl.arange(0, y.numel), tl.ravel(y))


def test_all_leading_axes_are_a_batch(ran: Any) -> None:
    x, y = matrices(np.float16, (4, 8, 16), 1), matrices(np.float16, (4, 16, 4), 2)
    within(ran(four_axes, (x, y), (4, 8, 4), np.float32), x, y, 2.0**-24)
