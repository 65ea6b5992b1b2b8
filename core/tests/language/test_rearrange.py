"""join, split, interleave, cat, flip and the shape functions move elements as NumPy does."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from whole_tiles import store_all

import tilefw
import tilefw.language as tl

SHAPES = [(8,), (4, 2), (2, 4, 8)]


@tilefw.jit
def load_tile(ptr, SHAPE: tl.constexpr, COUNT: tl.constexpr):
    return tl.reshape(tl.load(ptr + tl.arange(0, COUNT)), SHAPE)


def elements(shape: tuple[int, ...], start: int = 0) -> np.ndarray:
    return (np.arange(np.prod(shape), dtype=np.int32) + start).reshape(shape)


@tilefw.jit
def join_tiles(a_ptr, b_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, COUNT_A: tl.constexpr, COUNT_B: tl.constexpr):
    store_all(out_ptr, tl.join(load_tile(a_ptr, A, COUNT_A), load_tile(b_ptr, B, COUNT_B)))


@pytest.mark.parametrize("shape", SHAPES)
def test_join_broadcasts_and_puts_side_by_side(shape: tuple[int, ...], ran: Any) -> None:
    for other in (shape, shape[-1:], (1,)):
        a, b = elements(shape), elements(other, 100)
        wanted = np.stack(np.broadcast_arrays(a, b), axis=-1)
        found = ran(join_tiles, (a, b), wanted.shape, np.int32, A=shape, B=other, COUNT_A=a.size, COUNT_B=b.size)
        np.testing.assert_array_equal(found, wanted)


@tilefw.jit
def split_and_interleave(x_ptr, out_ptr, SHAPE: tl.constexpr, COUNT: tl.constexpr):
    low, high = tl.split(load_tile(x_ptr, SHAPE, COUNT))
    store_all(out_ptr, low)
    store_all(out_ptr + COUNT // 2, high)
    store_all(out_ptr + COUNT, tl.interleave(low, high))


@pytest.mark.parametrize("shape", [(2,), (8, 2), (4, 4, 2)])
def test_split_undoes_join_and_interleave_takes_turns(shape: tuple[int, ...], ran: Any) -> None:
    x = elements(shape)
    found = ran(split_and_interleave, x, (2, x.size), np.int32, SHAPE=shape, COUNT=x.size)
    np.testing.assert_array_equal(found[0], np.concatenate([x[..., 0].ravel(), x[..., 1].ravel()]))
    np.testing.assert_array_equal(found[1], x.ravel())


@tilefw.jit
def concatenate(a_ptr, b_ptr, out_ptr, SHAPE: tl.constexpr, COUNT: tl.constexpr, DIM: tl.constexpr):
    store_all(out_ptr, tl.cat(load_tile(a_ptr, SHAPE, COUNT), load_tile(b_ptr, SHAPE, COUNT), dim=DIM))


@pytest.mark.parametrize("shape", SHAPES)
def test_cat_goes_along_any_axis(shape: tuple[int, ...], ran: Any) -> None:
    a, b = elements(shape), elements(shape, 100)
    for dim in range(-len(shape), len(shape)):
        wanted = np.concatenate([a, b], axis=dim)
        np.testing.assert_array_equal(ran(concatenate, (a, b), wanted.shape, np.int32, SHAPE=shape, COUNT=a.size, DIM=dim), wanted)


@tilefw.jit
def flip_tile(x_ptr, out_ptr, SHAPE: tl.constexpr, COUNT: tl.constexpr, DIM: tl.constexpr):
    store_all(out_ptr, load_tile(x_ptr, SHAPE, COUNT).flip(DIM))


@pytest.mark.parametrize("shape", SHAPES)
def test_flip_reverses_one_axis(shape: tuple[int, ...], ran: Any) -> None:
    x = elements(shape)
    for dim in (None, *range(-len(shape), len(shape))):
        found = ran(flip_tile, x, shape, np.int32, SHAPE=shape, COUNT=x.size, DIM=dim)
        np.testing.assert_array_equal(found, np.flip(x, -1 if dim is None else dim))


@tilefw.jit
def permute_tile(x_ptr, out_ptr, SHAPE: tl.constexpr, COUNT: tl.constexpr, ORDER: tl.constexpr):
    x = load_tile(x_ptr, SHAPE, COUNT)
    y = x.permute(ORDER) if ORDER is not None else tl.trans(x)
    store_all(out_ptr, y)


def test_axes_are_permuted(ran: Any) -> None:
    x = elements((2, 4, 8))
    for order in (None, *itertools.permutations(range(3))):
        wanted = x.transpose(order or (0, 2, 1))
        found = ran(permute_tile, x, wanted.shape, np.int32, SHAPE=x.shape, COUNT=x.size, ORDER=order)
        np.testing.assert_array_equal(found, wanted)


@tilefw.jit
def scalars(out_ptr, n):
    pair = tl.join(n, n + 1)
    tl.static_assert(pair.shape == (2,))
    low, high = tl.split(pair)
    tl.static_assert(low.shape == () and high.shape == ())
    tl.store(out_ptr, high * 10 + low)
    both = tl.interleave(low, high)
    store_all(out_ptr + 1, both)
    wide = tl.expand_dims(n, (0, -1))
    tl.static_assert(wide.shape == (1, 1))
    store_all(out_ptr + 3, tl.broadcast_to(wide, (2, 1)))


def test_scalars_join_split_and_grow_axes() -> None:
    out = np.zeros(5, np.int32)
    with tilefw.target("reference"):
        scalars[(1,)](out, 3)
    assert out.tolist() == [43, 3, 4, 3, 3]
