"""Matrices in tiles, row-major and numbered along rows: where a tile is, and a tile of a product."""

from __future__ import annotations

import tilefw
import tilefw.language as tl


@tilefw.jit
def tiles_of(m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """How many tiles a matrix of m rows and n columns has."""
    return tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)


@tilefw.jit
def tile_at(tile, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """(rows, columns, offsets of the tile's elements, which of them there are)."""
    blocks_n = tl.cdiv(n, BLOCK_N)
    rows = tile // blocks_n * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile % blocks_n * BLOCK_N + tl.arange(0, BLOCK_N)
    return rows, columns, rows[:, None] * n + columns[None, :], (rows[:, None] < m) & (columns[None, :] < n)


@tilefw.jit
def product_tile(a_ptr, b_ptr, rows, columns, m, n, k, BLOCK_K: tl.constexpr):
    """These rows of A, which has m, times these columns of B, which has n, in float32."""
    total = tl.zeros((rows.shape[0], columns.shape[0]), tl.float32)
    for begin in range(0, k, BLOCK_K):
        inner = begin + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0)
        b = tl.load(b_ptr + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0)
        total = tl.dot(a, b, total, input_precision="ieee")
    return total
