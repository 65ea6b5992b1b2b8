"""Accesses of four dwords where neither the bound nor the address is a multiple of that: the hardware checks each dword."""

from __future__ import annotations

import numpy as np
import pytest
from served import CHIPS

import tilefw
import tilefw.language as tl


@tilefw.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2.0 * tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)


@tilefw.jit
def least_of_rows(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    """With infinity in the place of what is beyond a row's end."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("inf"))
    tl.store(out_ptr + row, tl.min(x, 0))


def accesses(artifact: tilefw.Artifact) -> set[str]:
    return {line.split()[0] for line in artifact.text.splitlines() if line.strip().startswith("buffer_")}


on_each_chip = pytest.mark.parametrize("target", [chip.target for chip in CHIPS])


@on_each_chip
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 255, 1001])
def test_dwords_beyond_a_bound_are_neither_read_nor_written(n: int, first: int, target: str) -> None:
    x, out = np.arange(1100, dtype=np.float32), np.full(1100, -1.0, np.float32)
    own = slice(first, first + n)
    result = double[(2,)](x[own], out[own], n, BLOCK=512, target=target, checks="all", num_warps=2)
    inside = (np.arange(1100) >= first) & (np.arange(1100) < first + n)
    assert np.array_equal(out, np.where(inside, 2 * x, -1.0))
    assert n == 1 or accesses(result.artifact) == {"buffer_load_dwordx4", "buffer_store_dwordx4"}


@on_each_chip
@pytest.mark.parametrize("columns", [1, 129, 254])
def test_what_lies_beyond_a_bound_is_filled_by_element(columns: int, target: str) -> None:
    rng = np.random.default_rng(columns)
    x, out = rng.standard_normal((5, columns), np.float32), np.zeros(5, np.float32)
    result = least_of_rows[(5,)](x, out, 5, columns, BLOCK=256, target=target, checks="all", num_warps=1)
    assert np.array_equal(out, x.min(1))
    assert columns == 1 or "buffer_load_dwordx4" in accesses(result.artifact)
