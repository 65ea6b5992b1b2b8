"""Blocks through tensor descriptors, made by kernels and by the host, are NumPy's slices; Triton's limits hold, in our words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from blocks import block_of, launched

import tilefw
import tilefw.language as tl
from tilefw.tools.tensor_descriptor import TensorDescriptor


@tilefw.jit
def copy_block(x_ptr, out_ptr, shape, strides, offsets, BLOCK: tl.constexpr, PADDING: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, shape, strides, BLOCK, padding_option=PADDING)
    x = desc.load(offsets)
    tl.store(out_ptr + tl.arange(0, x.numel), tl.reshape(x, (x.numel,)))


@pytest.mark.parametrize(("shape", "block", "offsets"), [
    ((40,), (16,), (32,)), ((40,), (16,), (-8,)), ((9, 20), (8, 16), (4, 12)), ((3, 4, 8), (2, 4, 8), (2, -1, 4)),
    ((3, 4, 5, 8), (2, 2, 4, 4), (-1, 3, 2, 4)), ((2, 3, 2, 3, 8), (2, 2, 1, 2, 8), (1, -1, 1, 2, 0)),
])
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_a_load_is_a_padded_slice(shape: tuple[int, ...], block: tuple[int, ...], offsets: tuple[int, ...], padding: str) -> None:
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    strides = (*(step // 4 for step in x.strides[:-1]), 1)
    out = np.zeros(block, np.float32)
    launched(copy_block, x, out, shape, strides, offsets, BLOCK=block, PADDING=padding)
    np.testing.assert_array_equal(out, block_of(x, offsets, block, np.nan if padding == "nan" else 0))
    made = TensorDescriptor.from_tensor(x, list(block), padding)
    out = np.zeros(block, np.float32)
    launched(copy_of_host, (made, offsets), out)
    np.testing.assert_array_equal(out, block_of(x, offsets, block, np.nan if padding == "nan" else 0))


@tilefw.jit
def loaded(desc, offsets):
    return tl.load_tensor_descriptor(desc, offsets)


@tilefw.jit
def copy_of_host(pair, out_ptr):
    x = loaded(pair[0], pair[1])
    tl.store(out_ptr + tl.arange(0, x.numel), tl.reshape(x, (x.numel,)))


@tilefw.jit
def facts(desc, x_ptr, out_ptr, M, N):
    """What a descriptor says of itself, and what loops and branches make of two of them."""
    mine = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [4, 8])
    tl.static_assert(isinstance(desc, tl.tensor_descriptor) and isinstance(mine, tl.tensor_descriptor))
    tl.static_assert(mine.block_shape == [4, 8] and mine.dtype == tl.int32 and mine.strides[1] == 1)
    tl.static_assert(mine.block_type == desc.block_type and str(mine.type) == "tensor_descriptor<int32[4, 8]>")
    tl.static_assert(mine.strides[0].dtype == tl.int64 and mine.shape[0].dtype == tl.int32)
    acc = tl.zeros((4, 8), tl.int32)
    which = mine
    for row in range(0, desc.shape[0], 4):
        acc += which.load([row, 0])
        which = desc if row > 3 else mine
    tl.store(out_ptr + tl.arange(0, 32), tl.reshape(acc, (32,)))
    tl.store(out_ptr + 32, mine.strides[0] + desc.strides[0])


def test_descriptors_tell_their_parts_and_are_handed_on() -> None:
    x, out = np.arange(16 * 12, dtype=np.int32).reshape(16, 12), np.zeros(33, np.int32)
    y = 1000 + x
    launched(facts, TensorDescriptor.from_tensor(y, [4, 8]), x, out, 16, 12)
    wanted = x[0:4, :8] + x[4:8, :8] + y[8:12, :8] + y[12:16, :8]
    np.testing.assert_array_equal(out[:32].reshape(4, 8), wanted)
    assert out[32] == 24


@tilefw.jit
def change(desc, offset, value, HOW: tl.constexpr):
    tile = tl.full((4, 8), value, desc.dtype)
    at = [offset, offset * 4]
    if HOW == "store":
        desc.store(at, tile)
    elif HOW == "function":
        tl.store_tensor_descriptor(desc, at, tile.to(tl.float32))
    elif HOW == "add":
        desc.atomic_add(at, tile)
    elif HOW == "min":
        desc.atomic_min(at, tile)
    elif HOW == "max":
        desc.atomic_max(at, tile)
    elif HOW == "and":
        desc.atomic_and(at, tile)
    elif HOW == "or":
        desc.atomic_or(at, tile)
    else:
        desc.atomic_xor(at, tile)


_CHANGES = {
    "store": lambda x, v: np.full_like(x, v), "function": lambda x, v: np.full_like(x, v), "add": np.add, "min": np.minimum,
    "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}


@pytest.mark.parametrize(("how", "dtype"), [
    (how, dtype) for how in _CHANGES for dtype in (np.int32, np.uint32, np.int64, np.uint64)
    if (how, dtype) != ("add", np.int64)  # which Triton has not
])
def test_stores_and_atomics_change_what_is_in_bounds(how: str, dtype: Any) -> None:
    for offset in (-1, 0, 4):
        x = np.arange(6 * 12, dtype=dtype).reshape(6, 12)
        wanted = x.copy()
        rows, columns = slice(max(offset, 0), offset + 4), slice(max(offset * 4, 0), max(offset * 4 + 8, 0))
        wanted[rows, columns] = _CHANGES[how](wanted[rows, columns], dtype(21))
        launched(change, TensorDescriptor.from_tensor(x, [4, 8]), offset, 21, HOW=how)
        np.testing.assert_array_equal(x, wanted)


@tilefw.jit
def move_rows(x, out, from_ptr, to_ptr, column):
    rows = tl.arange(0, 8)
    out.scatter(x.gather(tl.load(from_ptr + rows), column), tl.load(to_ptr + rows), column)


@pytest.mark.parametrize("rows", [np.int16, np.int32])
@pytest.mark.parametrize("column", [0, 4, -4, 16])
def test_gather_and_scatter_move_rows(rows: Any, column: int) -> None:
    x, out = np.arange(10 * 20, dtype=np.float32).reshape(10, 20), np.full((10, 20), -1, np.float32)
    source, target = np.array([3, -1, 9, 0, 10, 3, 5, 6], rows), np.array([0, 1, 2, 3, 9, -1, 10, 4], rows)
    made, to = (TensorDescriptor.from_tensor(array, [1, 16]) for array in (x, out))
    launched(move_rows, made, to, source, target, column)
    wanted = np.full((10, 20), -1, np.float32)
    columns = range(max(column, 0), min(column + 16, 20))
    for s, t in zip(source, target, strict=True):
        if 0 <= t < 10:
            wanted[t, columns] = x[s, columns] if 0 <= s < 10 else 0
    np.testing.assert_array_equal(out, wanted)


def test_loads_round_float32_where_the_host_asks_for_it() -> None:
    x = np.array([[1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-12, np.inf, -np.nan, 3.0, -1 - 2**-11 - 2**-20, 0]], np.float32)
    out = np.zeros(8, np.float32)
    launched(copy_of_host, (TensorDescriptor.from_tensor(x, [1, 8], round_f32_to_tf32=True), (0, 0)), out)
    np.testing.assert_array_equal(out, np.array([1, 1 + 2**-9, 1, np.inf, np.nan, 3, -1 - 2**-10, 0], np.float32))


@tilefw.jit
def mistaken(x_ptr, n, HOW: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [4, 8])
    row = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [1, 8])
    value = tl.zeros((4, 8), tl.float32)
    if HOW == "axes":
        tl.make_tensor_descriptor(x_ptr, [n] * 6, [1] * 6, [8] * 6)
    elif HOW == "strides":
        tl.make_tensor_descriptor(x_ptr, [n, n], [1], [4, 8])
    elif HOW == "narrow block":
        tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [4, 2])
    elif HOW == "last stride":
        tl.make_tensor_descriptor(x_ptr, [n, n], [1, n], [4, 8])
    elif HOW == "odd stride":
        tl.make_tensor_descriptor(x_ptr, [n, n], [7, 1], [4, 8])
    elif HOW == "padding":
        tl.make_tensor_descriptor(x_ptr.to(tl.pointer_type(tl.int32)), [n], [1], [8], "nan")
    elif HOW == "base":
        tl.make_tensor_descriptor(n, [n], [1], [8])
    elif HOW == "long shape":
        tl.make_tensor_descriptor(x_ptr, [n.to(tl.int64)], [1], [8])
    elif HOW == "offsets":
        desc.load([0])
    elif HOW == "value":
        desc.store([0, 0], tl.zeros((8, 4), tl.float32))
    elif HOW == "scalar":
        desc.store([0, 0], 1.0)
    elif HOW == "atomic type":
        desc.atomic_max([0, 0], value)
    elif HOW == "rows":
        desc.gather(tl.arange(0, 8), 0)
    elif HOW == "few rows":
        row.gather(tl.arange(0, 4), 0)
    elif HOW == "row numbers":
        row.gather(tl.arange(0, 8).to(tl.int64), 0)
    elif HOW == "pointer":
        tl.load_tensor_descriptor(x_ptr, [0])


@pytest.mark.parametrize(("how", "said"), [
    ("axes", "1 to 5 axes, not 6"), ("strides", "2 axes and strides of 1"), ("narrow block", "fewer than 16 bytes"),
    ("last stride", "compile-time number 1"), ("odd stride", "28 bytes, and not a multiple of 16"), ("padding", "int32 has no NaN"),
    ("base", "a pointer to the first element"), ("long shape", r"shape\[0\] is an int64 scalar"),
    ("offsets", "as many offsets, not 1"), ("value", "a tile of shape"), ("scalar", "a tile of shape"),
    ("atomic type", "not there for fp32"), ("rows", "blocks of one row"),
    ("few rows", "8 rows or more"), ("row numbers", "int16 or int32"), ("pointer", "needs a tensor descriptor"),
])
def test_what_triton_refuses_is_refused(how: str, said: str) -> None:
    with pytest.raises(tilefw.CompileError, match=said) as caught:
        launched(mistaken, np.zeros((8, 8), np.float32), 8, HOW=how)
    assert caught.value.code == "TFW0223" and caught.value.place is not None


_FLAT = np.zeros(65, np.float32)


@pytest.mark.parametrize(("given", "said"), [
    (((), (), ()), "1 to 5 axes, not 0"), (((8, 8), (8,), (4, 8)), "strides of 1"), (((8, 8), (8, 1), (8,)), "block_shape of 1"),
    (((8, 8), (8, 1), (4, 6)), "power of two"), (((8, 8), (8, 2), (4, 8)), "last stride of a TensorDescriptor is 1"),
    (((8, 8), (7, 1), (4, 8)), "not a multiple of 16"), (((8, 0), (8, 1), (4, 8)), "1 or more"),
    (((8, 8), (8, 1), (1024, 2048)), "at most 1048576"), (((8, 8), (8, 1), (4, 8), "one"), "'zero' or 'nan'"),
])
def test_the_host_is_told_what_a_descriptor_cannot_be(given: Any, said: str) -> None:
    with pytest.raises(tilefw.LaunchError, match=said) as caught:
        TensorDescriptor(_FLAT, *given)
    assert caught.value.code == "TFW0223"


def test_the_host_is_told_of_unaligned_bases_and_wrong_types() -> None:
    with pytest.raises(tilefw.LaunchError, match="not aligned"):
        TensorDescriptor(_FLAT[1:], (64,), (1,), (8,))
    with pytest.raises(tilefw.LaunchError, match="has no NaN"):
        TensorDescriptor(np.zeros(8, np.int32), (8,), (1,), (8,), padding="nan")
    with pytest.raises(tilefw.LaunchError, match="for float32"):
        TensorDescriptor(np.zeros(8, np.float16), (8,), (1,), (8,), round_f32_to_tf32=True)


@tilefw.jit
def descriptor_of(x, shape, strides, block_shape):
    if isinstance(x, tl.tensor_descriptor):
        return x
    else:
        return tl.make_tensor_descriptor(x, shape, strides, block_shape)


@tilefw.jit
def copy_either(x, y, rows, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x = descriptor_of(x, shape=[rows, COLUMNS], strides=[COLUMNS, 1], block_shape=[ROWS, COLUMNS])
    y = descriptor_of(y, shape=[rows, COLUMNS], strides=[COLUMNS, 1], block_shape=[ROWS, COLUMNS])
    for row in tl.range(0, rows, ROWS, warp_specialize=True):
        y.store([row, 0], x.load([row, 0]))


@pytest.mark.parametrize("made", [False, True])
def test_a_kernel_takes_descriptors_or_pointers(made: bool) -> None:
    x, y = np.arange(40 * 16, dtype=np.float16).reshape(40, 16), np.zeros((40, 16), np.float16)
    source = TensorDescriptor(x, x.shape, [16, 1], [1, 1]) if made else x
    if isinstance(source, TensorDescriptor):
        source.block_shape = [8, 16]  # as a hook of the tuner sets it
    launched(copy_either, source, TensorDescriptor.from_tensor(y, [8, 16]) if made else y, 40, ROWS=8, COLUMNS=16)
    np.testing.assert_array_equal(x, y)


def test_tritons_own_descriptor_is_an_argument() -> None:
    triton = pytest.importorskip("triton.tools.tensor_descriptor", reason="Triton is not installed")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.arange(64, dtype=torch.float32).reshape(8, 8)
    out = np.zeros((4, 8), np.float32)
    launched(copy_of_host, (triton.TensorDescriptor.from_tensor(x, [4, 8]), (4, 0)), out)
    np.testing.assert_array_equal(out, x[4:].numpy())
