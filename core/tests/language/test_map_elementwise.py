"""`tl.map_elementwise` gives for every element what the function gives for it, on every kind of target."""

from __future__ import annotations

import numpy as np
import pytest

import tilefw
import tilefw.language as tl
from tilefw.api.errors import CompileError


@tilefw.jit
def sign(x, y):
    if x < y:
        return -1
    elif x == y:
        return 0
    else:
        return 1


@tilefw.jit
def quotient(a, b):
    if b == 0:
        return a * 0 - 1, a
    return a // b, a % b


@tilefw.jit
def crossed(a0, a1, a2, a3, b0, b1, b2, b3):
    return a0 - b3, a1 - b2, a2 - b1, a3 - b0, a0 > b0, a1 > b1, a2 > b2, a3 > b3


@tilefw.jit
def turned(a0, a1):
    swapped = (a1, a0)
    return swapped


@tilefw.jit
def compared(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.map_elementwise(sign, tl.load(x_ptr + at), tl.load(y_ptr + at)))


@tilefw.jit
def divided(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    q, r = tl.map_elementwise(quotient, tl.load(x_ptr + at), tl.load(y_ptr + at))
    tl.store(out_ptr + at, q)
    tl.store(out_ptr + N + at, r)


@tilefw.jit
def table(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    signs = tl.map_elementwise(sign, tl.load(x_ptr + at)[:, None], tl.load(y_ptr + at)[None, :])
    tl.static_assert(signs.shape == (N, N) and signs.dtype == tl.int32)
    tl.store(out_ptr + at[:, None] * N + at[None, :], signs)


@tilefw.jit
def by_fours(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    differences, larger = tl.map_elementwise(crossed, tl.load(x_ptr + at), tl.load(y_ptr + at), pack=4)
    tl.store(out_ptr + at, differences)
    tl.store(out_ptr + N + at, larger.to(tl.int32))


@tilefw.jit
def one_pair(x_ptr, out_ptr):
    at = tl.arange(0, 2)
    (swapped,) = tl.map_elementwise(turned, tl.load(x_ptr + at), pack=2)
    tl.store(out_ptr + at, swapped)


def pairs(size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(size)
    return rng.integers(0, 50, size).astype(np.int32), rng.integers(0, 9, size).astype(np.int32)


def test_branches_choose_for_each_element(everywhere: str) -> None:
    x, y = pairs(128)
    found = np.zeros(128, np.int32)
    compared[(1,)](x, y, found, N=128)
    np.testing.assert_array_equal(found, np.sign(x - y))


def test_a_branch_guards_a_division(target: str) -> None:
    x, y = pairs(128)
    found = np.zeros(256, np.int32)
    divided[(1,)](x, y, found, N=128)
    safe = np.where(y == 0, 1, y)
    np.testing.assert_array_equal(found, np.concatenate([np.where(y == 0, -1, x // safe), np.where(y == 0, x, x % safe)]))


def test_arguments_are_broadcast() -> None:
    x, y = pairs(16)
    found = np.zeros((16, 16), np.int32)
    table[(1,)](x, y, found, N=16)
    np.testing.assert_array_equal(found, np.sign(x[:, None] - y[None, :]))


def test_pack_hands_neighbours_to_one_call(target: str) -> None:
    x, y = pairs(64)
    found = np.zeros(128, np.int32)
    by_fours[(1,)](x, y, found, N=64)
    crossed = y.reshape(-1, 4)[:, ::-1].ravel()
    np.testing.assert_array_equal(found, np.concatenate([x - crossed, x > y]))


def test_a_tile_of_one_pack() -> None:
    found = np.zeros(2, np.int32)
    one_pair[(1,)](np.array([3, 5], np.int32), found)
    np.testing.assert_array_equal(found, [5, 3])


@tilefw.jit
def reading(x):
    return tl.load(x)


@tilefw.jit
def looping(x):
    while x > 3:
        x = x // 2
    return x


@tilefw.jit
def silent(x):
    x += 1


@tilefw.jit
def mistaken(x_ptr, MISTAKE: tl.constexpr):
    x = tl.arange(0, 8)
    if MISTAKE == "builtin":
        tl.map_elementwise(tl.exp, x)
    elif MISTAKE == "none":
        tl.map_elementwise(silent)
    elif MISTAKE == "memory":
        tl.map_elementwise(reading, x_ptr + x)
    elif MISTAKE == "loop":
        tl.map_elementwise(looping, x)
    elif MISTAKE == "nothing":
        tl.map_elementwise(silent, x)
    elif MISTAKE == "three":
        tl.map_elementwise(sign, x, x, pack=3)
    elif MISTAKE == "extent":
        tl.map_elementwise(sign, x, x, pack=16)
    elif MISTAKE == "results":
        tl.map_elementwise(sign, x, pack=2)
    else:
        tl.map_elementwise(sign, x)


@pytest.mark.parametrize(("mistake", "code", "message"), [
    ("builtin", "TFW0214", "scalar_fn is a jit function, not `exp`"), ("none", "TFW0107", "takes one tile or more"),
    ("memory", "TFW0215", "the function of tl.map_elementwise cannot read memory"), ("loop", "TFW0215", "cannot loop at run time"),
    ("nothing", "TFW0214", "`silent` returns nothing"), ("three", "TFW0203", "pack is a power of two, not constexpr 3"),
    ("extent", "TFW0202", r"pack=16 .* the shape is \[8\]"), ("results", "TFW0214", "returns 1 values, which is no multiple of"),
    ("arguments", "TFW0107", "sign needs the argument `y`"),
])
def test_mistakes_are_told(mistake: str, code: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        mistaken[(1,)](np.zeros(8, np.int32), MISTAKE=mistake)
    assert caught.value.code == code and caught.value.place is not None
