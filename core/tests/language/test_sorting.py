"""Sorts, merges and largest elements, of every type along any axis, are NumPy's; NaN go the ways of Triton's network."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from whole_tiles import FLOATS, INTEGERS, host_type, load_tile, numbers, store_all

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError

Ran = Callable[..., np.ndarray]


@tilefw.jit
def sorted_tile(x_ptr, out_ptr, SHAPE: tl.constexpr, DIM: tl.constexpr, DESCENDING: tl.constexpr):
    x = load_tile(x_ptr, SHAPE)
    y = x.sort(DIM, descending=DESCENDING)
    tl.static_assert(y.dtype == x.dtype and y.shape == x.shape)
    store_all(out_ptr, y)


@tilefw.jit
def largest(x_ptr, out_ptr, SHAPE: tl.constexpr, K: tl.constexpr, DIM: tl.constexpr, DESCENDING: tl.constexpr, TYPE: tl.constexpr):
    y = tl.topk(load_tile(x_ptr, SHAPE), K, DIM, DESCENDING)
    tl.static_assert(y.dtype == TYPE, f"{y.dtype}")
    store_all(out_ptr, y)


@tilefw.jit
def merged(x_ptr, out_ptr, SHAPE: tl.constexpr, DIM: tl.constexpr, DESCENDING: tl.constexpr):
    store_all(out_ptr, tl.bitonic_merge(load_tile(x_ptr, SHAPE), DIM, DESCENDING))


def ordered(x: np.ndarray, dim: int | None, descending: bool) -> np.ndarray:
    axis = -1 if dim is None else dim
    rising = np.sort(x, axis=axis)
    return np.flip(rising, axis) if descending else rising


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_every_type_is_sorted(dtype: str, descending: bool, ran: Ran) -> None:
    x = numbers(dtype, (2, 16))
    found = ran(sorted_tile, x, x.shape, x.dtype, SHAPE=x.shape, DIM=None, DESCENDING=descending)
    np.testing.assert_array_equal(found, ordered(x, None, descending))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("shape", [(4, 8, 2), (1, 16, 4)])
def test_every_axis_is_sorted(dim: int, shape: tuple[int, ...], ran: Ran) -> None:
    x = numbers("int32", shape)
    found = ran(sorted_tile, x, shape, x.dtype, SHAPE=shape, DIM=dim, DESCENDING=False)
    np.testing.assert_array_equal(found, ordered(x, dim, False))


@pytest.mark.parametrize(("dtype", "k", "result"), [
    ("float32", 4, "float32"), ("float16", 4, "float32"), ("bfloat16", 16, "bfloat16"), ("int8", 1, "int32"), ("uint8", 8, "int32"),
    ("uint16", 16, "uint16"), ("uint32", 2, "uint32"), ("int64", 1, "int64"), ("float64", 8, "float64"),
])
@pytest.mark.parametrize("descending", [True, False])
def test_the_largest_are_the_first_of_a_sort(dtype: str, k: int, result: str, descending: bool, ran: Ran) -> None:
    x = numbers(dtype, (4, 16))
    for dim, y in ((None, x), (0, np.ascontiguousarray(x.T))):
        wanted = np.take(ordered(y, dim, descending), np.arange(k), -1 if dim is None else dim).astype(host_type(result))
        constexprs = {"SHAPE": y.shape, "K": k, "DIM": dim, "DESCENDING": descending, "TYPE": getattr(tl, result)}
        found = ran(largest, y, wanted.shape, wanted.dtype, **constexprs)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("descending", [False, True])
def test_two_sorted_halves_are_merged(descending: bool, ran: Ran) -> None:
    halves = np.sort(numbers("float32", (4, 2, 8)), axis=-1)
    for turned in (1, 0):
        parts = [np.flip(halves[:, i], 1) if i == turned else halves[:, i] for i in (0, 1)]
        x = np.concatenate(parts, axis=1)
        for dim, y in ((None, x), (0, np.ascontiguousarray(x.T))):
            found = ran(merged, y, y.shape, y.dtype, SHAPE=y.shape, DIM=dim, DESCENDING=descending)
            np.testing.assert_array_equal(found, ordered(y, dim, descending))


def network(x: np.ndarray, descending: bool) -> np.ndarray:
    """Triton's steps on a vector: a place takes its partner's element where `x > y` differs from (falls != right)."""
    place = np.arange(x.size)
    for stage in range(1, x.size.bit_length()):
        last = 2**stage == x.size
        falls = np.full(x.size, descending) if last else (place >> stage & 1).astype(bool)
        for bit in reversed(range(stage)):
            y = x[place ^ (1 << bit)]
            x = np.where((x > y) != (falls ^ (place >> bit & 1).astype(bool)), y, x)
    return x


@pytest.mark.parametrize("descending", [False, True])
def test_nan_and_zeros_of_both_signs_go_the_ways_of_the_network(descending: bool, ran: Ran) -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        x = rng.choice(np.array([np.nan, 0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 2.5], np.float32), 16)
        found = ran(sorted_tile, x, x.shape, x.dtype, SHAPE=x.shape, DIM=None, DESCENDING=descending)
        np.testing.assert_array_equal(found.view(np.int32), network(x, descending).view(np.int32))


@tilefw.jit
def mistaken(out_ptr, k, MISTAKE: tl.constexpr):
    x = tl.arange(0, 8)
    if MISTAKE == "scalar":
        tl.store(out_ptr, tl.sort(k))
    elif MISTAKE == "axis":
        tl.store(out_ptr, tl.sort(x, 1))
    elif MISTAKE == "narrow":
        tl.store(out_ptr, tl.sort(x.to(tl.float32).to(tl.float8e5)))
    elif MISTAKE == "pointers":
        tl.store(out_ptr, tl.sort(out_ptr + x))
    elif MISTAKE == "too many":
        tl.store(out_ptr, tl.topk(x, 16))
    elif MISTAKE == "no power":
        tl.store(out_ptr, tl.topk(x, 3))
    elif MISTAKE == "direction":
        tl.store(out_ptr, tl.bitonic_merge(x, 0, k > 1))
    else:
        tl.store(out_ptr, tl.topk(x, k))


@pytest.mark.parametrize(("mistake", "code", "message"), [
    ("scalar", "TFW0201", "tl.sort sorts tiles, not an int32 scalar"), ("axis", "TFW0212", "there is no axis 1"),
    ("narrow", "TFW0210", "no arithmetic on fp8e5"), ("pointers", "TFW0201", "sorts numbers, not pointers"),
    ("too many", "TFW0212", "a power of two of at most 8 elements, not constexpr 16"), ("no power", "TFW0212", "not constexpr 3"),
    ("direction", "TFW0106", "descending must be known at compile time"), ("count", "TFW0106", "k must be known at compile time"),
])
def test_mistakes_are_told(mistake: str, code: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        mistaken[(1,)](np.zeros(8, np.int32), 3, MISTAKE=mistake)
    assert caught.value.code == code and caught.value.place is not None
