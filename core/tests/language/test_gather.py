"""`tl.gather` is NumPy's take_along_axis, with indices modulo the extent, for every element type and type of indices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from whole_tiles import FLOATS, INTEGERS, load_tile, numbers, store_all

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError

Ran = Callable[..., np.ndarray]


@tilefw.jit
def picked(x_ptr, index_ptr, out_ptr, SHAPE: tl.constexpr, PICKED: tl.constexpr, AXIS: tl.constexpr):
    x = load_tile(x_ptr, SHAPE)
    y = x.gather(load_tile(index_ptr, PICKED), AXIS)
    tl.static_assert(y.dtype == x.dtype and y.shape == PICKED)
    store_all(out_ptr, y)


def check(ran: Ran, x: np.ndarray, index: np.ndarray, axis: int) -> None:
    found = ran(picked, (x, index), index.shape, x.dtype, SHAPE=x.shape, PICKED=index.shape, AXIS=axis)
    wanted = np.take_along_axis(x, (index.astype(object) % x.shape[axis]).astype(np.int64), axis)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_every_type_is_gathered_along_every_axis(dtype: str, ran: Ran) -> None:
    x, rng = numbers(dtype, (4, 8, 2)), np.random.default_rng(1)
    for axis, shape in ((0, (16, 8, 2)), (1, (4, 1, 2)), (2, (4, 8, 2)), (-2, (4, 4, 2))):
        check(ran, x, rng.integers(0, x.shape[axis], shape, np.int32), axis)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_of_every_type_count_modulo_the_extent(dtype: str, ran: Ran) -> None:
    check(ran, numbers("int32", (512,)), numbers(dtype, (64,)), 0)


@tilefw.jit
def both_sides(x_ptr, out_ptr, SIZE: tl.constexpr):
    places = tl.arange(0, SIZE)
    there = tl.gather(tl.load(x_ptr + places) > 0, SIZE - 1 - places, 0)
    tl.static_assert(there.dtype == tl.int1)
    tl.store(out_ptr + places, there)


def test_booleans_are_gathered(ran: Ran) -> None:
    x = numbers("float32", (64,))
    np.testing.assert_array_equal(ran(both_sides, x, (64,), np.int8, SIZE=64), x[::-1] > 0)


@tilefw.jit
def mistaken(out_ptr, MISTAKE: tl.constexpr):
    x = tl.arange(0, 8)
    if MISTAKE == "scalar":
        tl.store(out_ptr, tl.gather(x, 3, 0))  # pyright: ignore[reportArgumentType]
    elif MISTAKE == "floats":
        tl.store(out_ptr, tl.gather(x, x.to(tl.float32), 0))
    elif MISTAKE == "pointers":
        tl.store(out_ptr, tl.gather(out_ptr + x, x, 0))
    elif MISTAKE == "axis":
        tl.store(out_ptr, tl.gather(x, x, 1))
    elif MISTAKE == "rank":
        tl.store(out_ptr, tl.gather(x, x[:, None], 0))
    else:
        tl.store(out_ptr, tl.gather(x[:, None], tl.arange(0, 4)[None, :], 0))


@pytest.mark.parametrize(("mistake", "code", "message"), [
    ("scalar", "TFW0201", "tl.gather takes a tile, not a constexpr 3"), ("floats", "TFW0209", "are integers, not fp32"),
    ("pointers", "TFW0201", "takes numbers, not pointers"), ("axis", "TFW0212", "there is no axis 1"),
    ("rank", "TFW0202", r"differ along axis 0 alone, not \[8\] and \[8, 1\]"), ("shape", "TFW0202", r"\[8, 1\] and \[1, 4\]"),
])
def test_mistakes_are_told(mistake: str, code: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        mistaken[(1,)](np.zeros(8, np.int32), MISTAKE=mistake)
    assert caught.value.code == code and caught.value.place is not None
