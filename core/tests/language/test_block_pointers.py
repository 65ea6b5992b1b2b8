"""Blocks through block pointers are NumPy's slices: any rank and offset, padding, and pointers handed on in every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blocks import block_of, launched

import tilefw
import tilefw.language as tl


@tilefw.jit
def copy_block(
    x_ptr, out_ptr, shape, strides, offsets, BLOCK: tl.constexpr, ORDER: tl.constexpr, CHECK: tl.constexpr, PADDING: tl.constexpr,
):
    """The block at `offsets` of x, to a dense block of out."""
    source = tl.make_block_ptr(x_ptr, shape, strides, offsets, BLOCK, ORDER)
    x = tl.load(source, boundary_check=CHECK, padding_option=PADDING)
    flat = tl.reshape(x, (x.numel,))
    tl.store(out_ptr + tl.arange(0, x.numel), flat)


@pytest.mark.parametrize(("shape", "block", "offsets"), [
    ((40,), (16,), (32,)), ((40,), (16,), (-5,)), ((40,), (16,), (200,)), ((40,), (16,), (-40,)),
    ((9, 21), (8, 16), (4, -3)), ((9, 21), (2, 32), (-1, 0)), ((3, 4, 5), (2, 4, 4), (2, 0, 3)),
    ((3, 4, 5, 6), (2, 2, 4, 4), (-1, 3, 2, 4)), ((2, 3, 2, 3, 5), (2, 2, 1, 2, 8), (1, -1, 1, 2, -2)),
])
@pytest.mark.parametrize("padding", ["", "zero", "nan"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_checked_load_is_a_padded_slice(
    shape: tuple[int, ...], block: tuple[int, ...], offsets: tuple[int, ...], padding: str, turned: bool
) -> None:
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape[::-1] if turned else shape)
    x = x.T if turned else x
    out = np.zeros(block, np.float32)
    strides = tuple(step // 4 for step in x.strides)
    axes = tuple(range(len(shape)))
    order = axes if turned else axes[::-1]
    launched(copy_block, x, out, shape, strides, offsets, BLOCK=block, ORDER=order, CHECK=axes, PADDING=padding)
    np.testing.assert_array_equal(out, block_of(x, offsets, block, np.nan if padding == "nan" else 0))


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int64, np.bool_])
def test_elements_of_every_kind_are_padded_with_zero(dtype: Any) -> None:
    x = np.ones(20, dtype)
    out = np.full(32, 7, np.int8 if dtype == np.bool_ else dtype)
    launched(copy_block, x, out, (20,), (1,), (-4,), BLOCK=(32,), ORDER=(0,), CHECK=(0,), PADDING="zero")
    np.testing.assert_array_equal(out, block_of(x.astype(out.dtype), (-4,), (32,), 0))


@tilefw.jit
def store_block(out_ptr, rows, columns, at_row, at_column, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(out_ptr, [rows, columns], [columns, 1], [at_row, at_column], [BLOCK, BLOCK], [1, 0])
    value = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    block.store(value.to(block.dtype.element_ty), boundary_check=[0, 1])


@pytest.mark.parametrize("at", [(0, 0), (-3, 2), (5, -7), (3, 9), (40, 40), (-8, 0)])
def test_a_checked_store_writes_nothing_out_of_bounds(at: tuple[int, int]) -> None:
    out = np.full((6, 11), -1, np.int16)
    launched(store_block, out, 6, 11, *at, BLOCK=8)
    wanted = np.full((6, 11), -1, np.int16)
    for i, j in np.ndindex(8, 8):
        if 0 <= at[0] + i < 6 and 0 <= at[1] + j < 11:
            wanted[at[0] + i, at[1] + j] = 8 * i + j
    np.testing.assert_array_equal(out, wanted)


@tilefw.jit
def first_and_step(base, rows, columns, BLOCK: tl.constexpr):
    return tl.make_block_ptr(base, (rows, columns), (columns, 1), (0, 0), (2, BLOCK), (1, 0)), (0, BLOCK)


@tilefw.jit
def row_sums(x_ptr, out_ptr, rows, columns, WAY: tl.constexpr, BLOCK: tl.constexpr):
    """Sums of two rows, which a block pointer walks along in one of several kinds of loops."""
    pair = first_and_step(x_ptr, rows, columns, BLOCK)
    block = pair[0]
    acc = tl.zeros((2, BLOCK), tl.int32)
    if WAY == "for":
        for _ in range(0, columns, BLOCK):
            acc += tl.load(block, boundary_check=(0, 1))
            block = block.advance(pair[1])
    elif WAY == "while":
        done = 0
        while done < columns:
            acc += tl.load(block, boundary_check=(0, 1))
            block = tl.advance(block, (0, BLOCK))
            done += BLOCK
    elif WAY == "unrolled":
        for _ in tl.static_range(5):
            acc += tl.load(block, boundary_check=(0, 1))
            block = tl.advance(block, (0, BLOCK))
    elif WAY == "backwards":
        block = tl.advance(block, (0, tl.cdiv(columns, BLOCK) * BLOCK))
        for _ in range(0, columns, BLOCK):
            block = tl.advance(block, (0, -BLOCK))
            acc += tl.load(block, boundary_check=(0, 1))
    else:  # a tuple is carried
        state = (block, acc)
        for _ in range(0, columns, BLOCK):
            state = (tl.advance(state[0], (0, BLOCK)), state[1] + tl.load(state[0], boundary_check=(0, 1)))
        acc = state[1]
    total = tl.make_block_ptr(out_ptr, (rows,), (1,), (0,), (2,), (0,))
    tl.store(total, tl.sum(acc, 1), boundary_check=(0,))


@pytest.mark.parametrize("way", ["for", "while", "unrolled", "backwards", "tuple"])
def test_loops_carry_block_pointers(way: str) -> None:
    x = np.arange(2 * 37, dtype=np.int32).reshape(2, 37)
    out = np.zeros(2, np.int32)
    launched(row_sums, x, out, 2, 37, WAY=way, BLOCK=8)
    np.testing.assert_array_equal(out, x.sum(1))


@tilefw.jit
def choose(x_ptr, y_ptr, swap):
    left = tl.make_block_ptr(x_ptr, (16,), (1,), (0,), (16,), (0,))
    right = tl.make_block_ptr(y_ptr, (16,), (2,), (0,), (16,), (0,))
    if swap:
        return right, left
    else:
        return left, right


@tilefw.jit
def chosen(x_ptr, y_ptr, out_ptr, swap, shift):
    first, second = choose(x_ptr, y_ptr, swap)
    if shift > 0:
        first = tl.advance(first, (shift,))
    picked = second if shift < 0 else first
    tl.store(out_ptr + tl.arange(0, 16), tl.load(picked, boundary_check=(0,)))


@pytest.mark.parametrize("swap", [0, 1])
@pytest.mark.parametrize("shift", [-1, 0, 3])
def test_branches_calls_and_returns_join_block_pointers(swap: int, shift: int) -> None:
    x, y, out = np.arange(16, dtype=np.float32), np.arange(100, 132, dtype=np.float32), np.zeros(16, np.float32)
    launched(chosen, x, y, out, swap + 2 if swap else 0, shift)
    first, second = (y[::2], x) if swap else (x, y[::2])
    picked = second if shift < 0 else first
    at = max(shift, 0)
    np.testing.assert_array_equal(out, np.concatenate([picked[at:], np.zeros(at, np.float32)]))


@tilefw.jit
def twice_far(x_ptr, out_ptr, far):
    shape = (1 << 31, 1 << 31, 16)
    block = tl.make_block_ptr(x_ptr, shape, (far, -far, 1), (1000, 1000, 8), (1, 1, 16), (2, 1, 0))
    tl.store(out_ptr + tl.arange(0, 16)[None, None, :], tl.load(block, boundary_check=(0, 1)))


def test_offset_times_stride_has_64_bits() -> None:
    """The product of two 32-bit numbers is beyond 32 bits; two such products cancel each other, so that the block is near."""
    x = np.arange(64, dtype=np.int32)
    out = np.zeros((1, 16), np.int32)
    launched(twice_far, x, out, 1 << 30)
    np.testing.assert_array_equal(out[0], x[8:24])


def test_a_block_out_of_the_array_is_found_where_nothing_is_checked() -> None:
    x, out = np.zeros(20, np.float32), np.zeros(32, np.float32)
    with pytest.raises(tilefw.CheckError):
        launched(copy_block, x, out, (20,), (1,), (0,), BLOCK=(32,), ORDER=(0,), CHECK=(), PADDING="")


@tilefw.jit
def mistaken(x_ptr, n, HOW: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (n, n), (n, 1), (0, 0), (4, 8), (1, 0))
    value = tl.zeros((4, 8), tl.float32)
    if HOW == "axis":
        tl.load(block, boundary_check=(2,))
    elif HOW == "axis twice":
        tl.load(block, boundary_check=(0, 0))
    elif HOW == "padding":
        tl.load(block, boundary_check=(0,), padding_option="one")
    elif HOW == "NaN of integers":
        tl.load(tl.make_block_ptr(x_ptr.to(tl.pointer_type(tl.int32)), (n,), (1,), (0,), (8,), (0,)), padding_option="nan")
    elif HOW == "mask":
        tl.store(block, value, mask=value > 0)
    elif HOW == "shape":
        tl.store(block, tl.zeros((8, 8), tl.float32))
    elif HOW == "type":
        tl.store(block, value.to(tl.float16))
    elif HOW == "order":
        tl.make_block_ptr(x_ptr, (n, n), (n, 1), (0, 0), (4, 8), (1, 1))
    elif HOW == "base":
        tl.make_block_ptr(block, (n, n), (n, 1), (0, 0), (4, 8), (1, 0))
    elif HOW == "float offset":
        tl.advance(block, (0, 1.5))
    elif HOW == "long offset":
        tl.advance(block, (0, 1 << 40))
    elif HOW == "offsets":
        tl.advance(block, (0,))
    elif HOW == "pointer":
        tl.advance(x_ptr, (0, 0))
    elif HOW == "no axes":
        tl.load(tl.make_block_ptr(x_ptr, (), (), (), (), ()))


@pytest.mark.parametrize(("how", "said"), [
    ("axis", "axes 0 to 1"), ("axis twice", "an axis twice"), ("padding", "padding_option is one of"),
    ("NaN of integers", "int32 has no NaN"), ("mask", "`mask` has no meaning"), ("shape", "does not fit a block of shape"),
    ("type", "cannot be stored through a block pointer to fp32"), ("order", "order names each axis once"),
    ("base", "a pointer to the first element"), ("float offset", r"offsets\[1\] is an integer scalar"),
    ("long offset", "does not fit 32 bits"), ("offsets", "1 offsets for a block of 2 axes"), ("pointer", "moves a block pointer"),
    ("no axes", "a block_shape of no axes"),
])
def test_what_triton_refuses_is_refused(how: str, said: str) -> None:
    with pytest.raises(tilefw.CompileError, match=said) as caught:
        launched(mistaken, np.zeros((8, 8), np.float32), 8, HOW=how)
    assert caught.value.code == "TFW0222" and caught.value.place is not None
