"""Programs whose order is easily lost by a machine without lanes compute here what they compute on the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilefw
import tilefw.language as tl


@tilefw.jit
def powers(h, w, out, n, N: tl.constexpr, ADDED: tl.constexpr):
    rows = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    state, factor = tl.load(h + rows), tl.load(w + rows)
    for _ in range(n):
        if ADDED:
            state = tl.dot(state, factor, state, input_precision="ieee")
        else:
            state = tl.dot(state, factor, input_precision="ieee")
    tl.store(out + rows, state)


@tilefw.jit
def one_place(x, index, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + tl.zeros([N], tl.int32), at + 100, mask=at == 3)
    place = tl.load(index + at)
    both = tl.load(x + place[:, None], mask=(at[:, None] + at[None, :]) % 3 == 0, other=-1)
    tl.store(out + N + at[:, None] * N + at[None, :], both)


@tilefw.jit
def halves(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    both = tl.arange(0, 2 * N)
    a, b = tl.split(tl.reshape(tl.load(x + both), (N, 2)))
    picked = tl.gather(a, N - 1 - at, 0)
    tl.store(x + both, tl.zeros([2 * N], tl.int32))
    tl.store(out + at, picked + b)


@tilefw.jit
def branches(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.zeros([N], tl.float32)
    b = tl.zeros([N], tl.float32)
    if n > 0:
        b = tl.sqrt(tl.load(x + at)) + tl.sum(tl.load(x + at), axis=0)
        a = b * 2
    tl.store(out + at, b)
    tl.store(out + N + at, tl.where(n > 5, a, 0.0))


@tilefw.jit
def grown(x, out, n, c, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    for _ in range(n):
        for _ in tl.static_range(28):
            value = value * value + c
    for _ in tl.static_range(150):
        value = value * 3 + c
    tl.store(out + at, value)


@tilefw.jit
def moved(x, out, N: tl.constexpr, K: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    steps, places = value.to(tl.int32), x + at
    for _ in tl.static_range(K):
        value = tl.flip(tl.reshape(tl.flip(tl.reshape(value, (2, N // 2)), 1), (N,)), 0)
        places = places + steps - steps
    tl.store(out + at, value)
    tl.store(out + N + at, tl.load(places))


@tilefw.jit
def across(x, out, scale, N: tl.constexpr, M: tl.constexpr):
    rows, columns = tl.arange(0, N), tl.arange(0, M)
    turned = tl.load(x + columns[None, :] * N + rows[:, None]) * scale
    total = tl.sum(turned, axis=1)
    tl.store(out + rows[:, None] * M + columns[None, :], turned + total[:, None])


@tilefw.jit
def short_rows(x, out, ROWS: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * N + tl.arange(0, N)[None, :]
    values = tl.load(x + at)
    tl.store(out + at, tl.sort(values))
    fours = tl.sort(tl.reshape(values, (ROWS * N // 4, 4)), descending=True)
    tl.store(out + ROWS * N + at, tl.reshape(tl.flip(fours, 0), (ROWS, N)))
    pairs = tl.sort(tl.reshape(values, (ROWS * N // 2, 2)))
    least, most = tl.split(pairs)
    tl.store(out + 2 * ROWS * N + at, tl.reshape(tl.join(most, least), (ROWS, N)))


@tilefw.jit
def every_other(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    at = tl.reshape(tl.arange(0, A * B * C), (A, B, C))
    values = tl.load(x + at)
    total = values
    for _ in range(2):
        total = tl.flip(total, 2) + values
    first, second = tl.split(tl.reshape(tl.flip(total, 1), (A * B * C // 2, 2)))
    tl.store(out + tl.arange(0, A * B * C // 2), tl.flip(second, 0) - first)


@tilefw.jit
def ends(out, begin, end, step, N: tl.constexpr):
    at = tl.arange(0, N)
    count = tl.zeros([N], tl.int32)
    for i in range(begin, end, step):
        count += i // 1000000 + 1
    tl.store(out + at, count)


def agree(kernel: Any, arrays: list[np.ndarray[Any, Any]], *args: Any, **constants: Any) -> None:
    """The arrays are equal after a run on the processor and one on the reference."""
    expected = [array.copy() for array in arrays]
    kernel[(1,)](*expected, *args, **constants, target="reference")
    kernel[(1,)](*arrays, *args, **constants, target="cpu")
    for found, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def _numbers(*shape: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) % 17).reshape(shape).astype(dtype)


@pytest.mark.parametrize("added", [False, True])
def test_a_carried_factor_is_read_until_the_last_sum_is_there(added: bool) -> None:
    h, w = _numbers(32, 32, dtype=np.float32), _numbers(32, 32, dtype=np.float32) / 100
    agree(powers, [h, w, np.zeros((32, 32), np.float32)], 3, N=32, ADDED=added)


def test_lanes_of_one_address_under_unlike_masks_read_and_write_that_address() -> None:
    agree(one_place, [_numbers(64), _numbers(16)[::-1].copy(), np.zeros(16 * 17, np.int32)], N=16)


def test_a_load_behind_a_split_is_read_before_what_overwrites_it() -> None:
    agree(halves, [_numbers(64), _numbers(64), np.zeros(32, np.int32)], N=32)


@pytest.mark.parametrize("n", [0, 3, 9])
def test_what_a_branch_hands_on_unread_takes_no_living_memory(n: int) -> None:
    agree(branches, [_numbers(64, dtype=np.float32), np.zeros(128, np.float32)], n, N=64)


def test_long_chains_end_and_are_right() -> None:
    agree(grown, [_numbers(32), np.zeros(32, np.int32)], 2, 5, N=32)


def test_long_chains_of_moves_and_of_pointers_end_and_are_right() -> None:
    agree(moved, [_numbers(16, dtype=np.float32), np.zeros(32, np.float32)], N=16, K=190)


@pytest.mark.parametrize("shape", [(32, 64), (16, 16), (8, 32)])
def test_a_tile_across_the_vectors_is_turned(shape: tuple[int, int]) -> None:
    n, m = shape
    agree(across, [_numbers(m, n, dtype=np.float32), np.zeros((n, m), np.float32)], 0.5, N=n, M=m)


def test_a_tile_across_the_vectors_is_read_whole_vectors_at_a_time() -> None:
    signature = {"x": "*fp32", "out": "*fp32", "scale": "fp32"}
    code = tilefw.compile(across, target="cpu", signature=signature, constexprs={"N": 32, "M": 64})
    assert "shufflevector" in code.text and "gather" not in code.text


@pytest.mark.parametrize(("rows", "n", "dtype"), [(1, 64, np.float32), (4, 8, np.float64), (2, 4, np.int8), (16, 16, np.int32)])
def test_several_short_rows_make_a_vector(rows: int, n: int, dtype: Any) -> None:
    numbers = np.random.default_rng(n).integers(-100, 100, rows * n)
    agree(short_rows, [numbers.astype(dtype), np.zeros(3 * rows * n, dtype)], ROWS=rows, N=n)


@pytest.mark.parametrize(("shape", "dtype"), [((4, 2, 2), np.uint32), ((16, 2, 2), np.float64)])
def test_what_stands_in_more_than_one_vector_is_read_from_all(shape: tuple[int, int, int], dtype: Any) -> None:
    numbers = np.arange(int(np.prod(shape))).astype(dtype) ** 2
    agree(every_other, [numbers, np.zeros(numbers.size // 2, dtype)], **dict(zip("ABC", shape, strict=True)))


def test_sorting_permutes_vectors_and_picks_no_single_elements() -> None:
    code = tilefw.compile(short_rows, target="cpu", signature={"x": "*fp32", "out": "*fp32"}, constexprs={"ROWS": 1, "N": 64})
    assert "shufflevector" in code.text and "gather" not in code.text and "scatter" not in code.text


@pytest.mark.parametrize("bounds", [(2**31 - 1000, 2**31 - 1, 1024), (0, 10, 3), (5, 5, 1), (-7, 3, 2)])
def test_loops_end_where_their_counter_would_wrap(bounds: tuple[int, int, int]) -> None:
    agree(ends, [np.zeros(16, np.int32)], *bounds, N=16)


@tilefw.jit
def eightfold(x, N: tl.constexpr):
    at = tl.arange(0, N)
    shifted = tl.inline_asm_elementwise("shl.b32 $0, $1, 3;", "=r,r", [tl.load(x + at)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x + at, shifted)


def test_inline_assembly_is_refused_by_name_at_its_line() -> None:
    with pytest.raises(tilefw.KernelError, match=r"no inline assembly; this begins with 'shl\.b32") as told:
        eightfold[(1,)](np.zeros(16, np.int32), N=16)
    assert told.value.code == "TFW0619" and told.value.place is not None and "inline_asm_elementwise" in told.value.place.text
    assert "tl.target_info" in (told.value.help or "")
