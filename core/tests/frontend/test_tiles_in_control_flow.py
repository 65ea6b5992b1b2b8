"""Loops, branches and helpers carry tiles, tuples of tiles and named tuples, and give what Python gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import tilefw
import tilefw.language as tl


@pytest.fixture(autouse=True)
def _on_the_reference() -> Any:
    with tilefw.target("reference"):
        yield


class Running(NamedTuple):
    """Sums of several shapes on their way through a loop."""

    rows: Any
    columns: Any
    count: Any


@tilefw.jit
def added(state, x):
    return Running(state.rows + tl.sum(x, 1), state.columns + tl.sum(x, 0), state.count + 1)


@tilefw.jit
def sums(x_ptr, rows_ptr, columns_ptr, count_ptr, n, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    state = Running(tl.zeros((M,), tl.float32), tl.zeros((N,), tl.float32), 0)
    for i in range(n):
        state = added(state, tl.load(x_ptr + i * (M * N) + offsets))
    tl.store(rows_ptr + tl.arange(0, M), state.rows)
    tl.store(columns_ptr + tl.arange(0, N), state.columns)
    tl.store(count_ptr, state.count)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_loop_carries_a_named_tuple_of_tiles(n: int) -> None:
    x = np.random.default_rng(0).integers(0, 9, (4, 8, 16)).astype(np.float32)
    rows, columns, count = np.ones(8, np.float32), np.ones(16, np.float32), np.ones(1, np.int32)
    sums[(1,)](x, rows, columns, count, n, M=8, N=16)
    assert np.array_equal(rows, x[:n].sum(axis=(0, 2))) and np.array_equal(columns, x[:n].sum(axis=(0, 1))) and count[0] == n


@tilefw.jit
def halved(x, limit):
    """How often a tile must be halved until its sum is below the limit, and the tile then."""
    steps = 0
    while tl.sum(x, 0) >= limit:
        x = x * 0.5
        steps += 1
    return steps, x


@tilefw.jit
def until_small(x_ptr, out_ptr, steps_ptr, limit, N: tl.constexpr):
    steps, x = halved(tl.load(x_ptr + tl.arange(0, N)), limit)
    tl.store(steps_ptr, steps)
    tl.store(out_ptr + tl.arange(0, N), x)


def test_a_while_loop_tests_a_reduction_of_what_it_carries() -> None:
    x, out, steps = np.full(8, 4.0, np.float32), np.zeros(8, np.float32), np.zeros(1, np.int32)
    for limit, wanted in ((5.0, 3), (100.0, 0)):
        until_small[(1,)](x, out, steps, limit, N=8)
        assert steps[0] == wanted and (out == 4.0 / 2**wanted).all()


@tilefw.jit
def larger_first(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    index = tl.arange(0, N)
    a, b = tl.load(a_ptr + index), tl.load(b_ptr + index)
    if tl.max(a, 0) > tl.max(b, 0):
        first, (second, flipped) = a, (b, tl.flip(b))
    else:
        first, (second, flipped) = b, (a, tl.flip(a))
    left, right = tl.split(tl.join(first, second)) if tl.sum(a, 0) > 0 else (second, first)
    tl.store(out_ptr + index, left)
    tl.store(out_ptr + N + index, right)
    tl.store(out_ptr + 2 * N + index, flipped)


def test_branches_join_tiles_and_nested_tuples() -> None:
    rng = np.random.default_rng(1)
    for _ in range(6):
        a, b = rng.standard_normal((2, 8)).astype(np.float32)
        out = np.zeros((3, 8), np.float32)
        larger_first[(1,)](a, b, out, N=8)
        first, second = (a, b) if a.max() > b.max() else (b, a)
        wanted = [first, second] if a.sum() > 0 else [second, first]
        assert np.array_equal(out, [*wanted, second[::-1]])


@tilefw.jit
def powers(x_ptr, out_ptr, n, m, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])
    total = tl.zeros((N, N), tl.float32)
    for i in range(n):
        power = x
        for _ in tl.range(1, i + m, num_stages=2, loop_unroll_factor=2):
            power = tl.dot(power, x, input_precision="ieee")
            if tl.max(power) > 1e3:
                power = power * 0.5
        total += power
    tl.store(out_ptr + tl.arange(0, N * N), tl.ravel(total))


def test_loops_in_loops_carry_products() -> None:
    x = np.random.default_rng(2).integers(0, 3, (4, 4)).astype(np.float32)
    out, wanted = np.zeros((4, 4), np.float32), np.zeros((4, 4))
    powers[(1,)](x, out, 3, 2, N=4)
    for i in range(3):
        power = x.astype(np.float64)
        for _ in range(1, i + 2):
            power = power @ x
            if power.max() > 1e3:
                power = power * 0.5
        wanted += power
    np.testing.assert_array_equal(out, wanted)  # integers below 2^24, and halves of them
