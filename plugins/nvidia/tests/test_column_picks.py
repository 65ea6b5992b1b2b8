"""Columns that a kernel picks out of a tile and puts back: right values, and no instruction for what cannot be picked."""

from __future__ import annotations

import re

import numpy as np

import tilefw
import tilefw.language as tl

SIZE = 32


@tilefw.jit
def orthogonal(x, out, rounds, SIZE: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    column = tl.arange(0, SIZE)[None, :]
    tile = tl.load(x + at)
    for c in tl.static_range(COLUMNS):
        this = tl.sum(tl.where(column == c, tile, 0.0), axis=1)
        for p in tl.static_range(c):
            this -= 2.0 * tl.sum(tl.where(column == p, tile, 0.0), axis=1)
        tile = tl.where((column == c) & (c < rounds), this[:, None], tile)
    tl.store(out + at, tile)


def expected(x: np.ndarray, rounds: int, columns: int) -> np.ndarray:
    made = x.copy()
    for c in range(columns):
        this = made[:, c] + np.float32(0)
        for p in range(c):
            this = this - 2 * (made[:, p] + np.float32(0))
        if c < rounds:
            made[:, c] = this
    return made


def test_picked_columns_are_what_was_put_there_bit_for_bit() -> None:
    x = np.random.default_rng(1).integers(-9, 9, (SIZE, SIZE)).astype(np.float32)
    x[3, :4], x[5, 9] = -0.0, np.nan  # a column that is not picked may be NaN
    for rounds in (0, 2, 4):
        out = np.zeros_like(x)
        orthogonal[(1,)](x, out, rounds, SIZE, COLUMNS=4, target="nvidia-sm80")
        np.testing.assert_array_equal(out.view(np.uint32), expected(x, rounds, 4).view(np.uint32))


def test_a_column_is_picked_of_the_tile_that_was_loaded_and_from_one_register_a_row() -> None:
    x = np.zeros((SIZE, SIZE), np.float32)

    def count(columns: int) -> int:
        text = orthogonal[(1,)](x, x.copy(), 9, SIZE, COLUMNS=columns, target="nvidia-sm80").artifact.text
        return len(re.findall(r"shfl\.sync", text))

    assert count(4) == 2 * count(2) > 0  # without looking through: 10 picks for 3
