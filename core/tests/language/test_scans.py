"""Scans give what NumPy gives, in the types that Triton gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from whole_tiles import FLOATS, INTEGERS, host_type, load_tile, numbers, store_all, sum_type

import tilefw
import tilefw.language as tl


@tilefw.jit
def cumulate(
    x_ptr, out_ptr, SHAPE: tl.constexpr, OP: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr, TYPE: tl.constexpr
):
    y = getattr(tl, OP)(load_tile(x_ptr, SHAPE), AXIS, REVERSE)
    tl.static_assert(y.dtype == TYPE and y.shape == SHAPE, f"{y.dtype}")
    store_all(out_ptr, y)


def check(ran: Any, op: str, x: np.ndarray, type: str, axis: int, reverse: bool) -> None:
    host = host_type(type)
    turned = np.flip(x, axis) if reverse else x
    wanted = (np.add if op == "cumsum" else np.multiply).accumulate(turned.astype(host), axis=axis, dtype=host)
    wanted = np.flip(wanted, axis) if reverse else wanted
    found = ran(
        cumulate, x, x.shape, host, SHAPE=x.shape, OP=op, AXIS=axis, REVERSE=reverse, TYPE=getattr(tl, type),
    )
    if type in FLOATS:
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=0.1 if "16" in type else 1e-5)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS))
def test_running_sums_and_products_have_the_type_of_a_sum(dtype: str, op: str, ran: Any) -> None:
    x = numbers(dtype, (4, 8)) if dtype in INTEGERS else np.linspace(0.5, 1.5, 32).reshape(4, 8).astype(host_type(dtype))
    check(ran, op, x, sum_type(dtype), 0, reverse=False)
    check(ran, op, x, sum_type(dtype), -1, reverse=True)


def test_prefixes_of_bf16_are_rounded_once() -> None:
    x = np.linspace(-1.5, 1.5, 128).reshape(2, 64).astype(host_type("bfloat16"))
    found = np.zeros_like(x)
    with tilefw.target("nvidia-sm80"):
        cumulate[(1,)](x, found, SHAPE=x.shape, OP="cumsum", AXIS=1, REVERSE=False, TYPE=tl.bfloat16)
    np.testing.assert_allclose(found.astype(np.float32), x.astype(np.float32).cumsum(axis=1), rtol=2.0**-8, atol=1e-6)


@tilefw.jit
def latest(a, b):
    return tl.where(b == 0, a, b)


@tilefw.jit
def two_maps(scale_a, offset_a, scale_b, offset_b):
    return scale_a * scale_b, offset_a * scale_b + offset_b


@tilefw.jit
def scan_by_functions(x_ptr, scale_ptr, out_ptr, N: tl.constexpr):
    x, scale = tl.load(x_ptr + tl.arange(0, N)), tl.load(scale_ptr + tl.arange(0, N))
    store_all(out_ptr, x.associative_scan(0, latest, reverse=True))
    scales, offsets = tl.associative_scan((scale, x), axis=0, combine_fn=two_maps)
    store_all(out_ptr + N, offsets)
    store_all(out_ptr + 2 * N, scales)
    store_all(out_ptr + 3 * N, (x > 0).cumsum().to(tl.int32))
    store_all(out_ptr + 4 * N, x.cumsum(dtype=tl.int8).to(tl.int32))


def test_functions_of_the_authors_own_keep_the_order(ran: Any) -> None:
    rng, n = np.random.default_rng(5), 32
    x, scale = rng.integers(-2, 3, n).astype(np.int32), rng.integers(-3, 4, n).astype(np.int32)
    found = ran(scan_by_functions, (x, scale), (5, n), np.int32, N=n)
    next_one, recurrence = x.copy(), x.copy()
    for i in range(1, n):
        recurrence[i] += scale[i] * recurrence[i - 1]
        at = n - 1 - i
        next_one[at] = next_one[at] or next_one[at + 1]
    with np.errstate(over="ignore"):
        wanted = [next_one, recurrence, np.cumprod(scale, dtype=np.int32), np.cumsum(x > 0), np.cumsum(x)]
    np.testing.assert_array_equal(found, np.stack(wanted))
