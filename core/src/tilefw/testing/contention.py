"""Kernels whose atomics meet at few addresses, with results that no order of programs, waves or lanes may change.

Numbers are small integers, so that sums of every float format are exact. What a kernel finds is judged as well: old values of sums
of ones are all numbers below their count, each once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype

CELLS, BLOCK, PROGRAMS = 6, 64, 5
FORMATS = ("int32", "int64", "fp16", "bf16", "fp32", "fp64")


@tilefw.jit
def pile(x_ptr, cell_ptr, sum_ptr, most_ptr, BLOCK: tl.constexpr, ORDER: tl.constexpr, MOST: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cell = tl.load(cell_ptr + index)
    x = tl.load(x_ptr + index)
    tl.atomic_add(sum_ptr + cell, x, mask=index % 3 != 0, sem=ORDER)
    if MOST:
        tl.atomic_max(most_ptr + cell, x, sem=ORDER)


@tilefw.jit
def row(x_ptr, sum_ptr, start, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    tl.atomic_add(sum_ptr + start + index, tl.load(x_ptr + tl.program_id(0) * BLOCK + index), sem="relaxed")


@tilefw.jit
def tickets(count_ptr, tile_count_ptr, scalar_ptr, tile_ptr, BLOCK: tl.constexpr):
    mine = tl.atomic_add(count_ptr, 1)
    tl.store(scalar_ptr + mine, tl.program_id(0))
    first = tl.program_id(0) * BLOCK
    found = tl.atomic_add(tile_count_ptr + tl.zeros((BLOCK,), tl.int32), 1)
    tl.store(tile_ptr + first + tl.arange(0, BLOCK), found)


@tilefw.jit
def swapped(memory_ptr, wins_ptr, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    expected = (tl.program_id(0) + tl.zeros((BLOCK,), tl.int32)).to(memory_ptr.dtype.element_ty)
    old = tl.atomic_cas(memory_ptr + index, expected, expected + 1)
    tl.atomic_add(wins_ptr + index, (old == expected).to(tl.int32), sem="relaxed")


def check_sums(name: str, order: str, warps: int) -> None:
    """Sums and maxima of all programs at a few cells."""
    rng = np.random.default_rng(3)
    element = dtype(name)
    count = BLOCK * PROGRAMS
    x, cell = rng.integers(-4, 5, count).astype(element.numpy), rng.integers(0, CELLS, count).astype(np.int32)
    sums, most = np.zeros(CELLS, x.dtype), np.full(CELLS, -9, x.dtype)
    chosen, known = np.arange(count) % 3 != 0, element.bits >= 32
    pile[(PROGRAMS,)](x, cell, sums, most, BLOCK, order, known, num_warps=warps)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(sums.astype(np.float64), [wide[chosen & (cell == c)].sum() for c in range(CELLS)])
    if known:
        np.testing.assert_array_equal(most.astype(np.float64), [wide[cell == c].max() for c in range(CELLS)])


def check_rows(name: str, start: int, size: int = 256) -> None:
    """Neighbours, of which two may be one access; none beside them changes, not even minus zero."""
    x = np.random.default_rng(4).integers(-4, 5, (PROGRAMS, size)).astype(dtype(name).numpy)
    sums = np.full(start + size + 1, -0.0, x.dtype)
    row[(PROGRAMS,)](x, sums, start, size, num_warps=1)
    np.testing.assert_array_equal(sums[start : start + size].astype(np.float64), x.astype(np.float64).sum(0))
    beside = np.concatenate([sums[:start], sums[start + size :]]).astype(np.float64)
    assert not beside.any() and (np.signbit(beside).all() or not dtype(name).is_float)


def check_tickets(warps: int) -> None:
    """Each number is drawn once, by a program as by an element, and whoever drew it says so."""
    counts: list[Any] = [np.zeros(1, np.int32) for _ in range(2)]
    scalar, tile = np.full(PROGRAMS, -1, np.int32), np.full(PROGRAMS * BLOCK, -1, np.int32)
    tickets[(PROGRAMS,)](*counts, scalar, tile, BLOCK, num_warps=warps)
    assert (counts[0][0], counts[1][0]) == (PROGRAMS, PROGRAMS * BLOCK)
    assert sorted(scalar) == list(range(PROGRAMS)) and sorted(tile) == list(range(PROGRAMS * BLOCK))


def check_swaps(name: str) -> None:
    """Every program swaps its own number for the next: what stands in memory is how often somebody did."""
    memory, wins = np.zeros(BLOCK, dtype(name).numpy), np.zeros(BLOCK, np.int32)
    swapped[(PROGRAMS,)](memory, wins, BLOCK, num_warps=4)
    np.testing.assert_array_equal(memory.astype(np.float64), wins)
    assert wins.min() >= 1


# Name, the seed of the schedule, and the check: for a target that has all formats.
CHECKS: dict[str, tuple[int, Callable[[], None]]] = {
    **{
        f"sums of {name} {order} {seed}": (seed, partial(check_sums, name, order, 2))
        for name in FORMATS for seed, order in ((0, "relaxed"), (1, "acq_rel"), (7, "acq_rel"))
    },
    **{f"rows of {name} from {start}": (2, partial(check_rows, name, start)) for name in ("fp16", "bf16") for start in (0, 1, 16)},
    **{f"tickets of {warps} warps": (5, partial(check_tickets, warps)) for warps in (1, 4)},
    **{f"swaps of {name}": (3, partial(check_swaps, name)) for name in ("int16", "bf16", "fp32", "int64")},
}
