"""What loads of fragments give: which lane receives which bytes of the rows that lanes point at in shared memory."""

from __future__ import annotations

import numpy as np

from tilefw.simt.description import FragmentLoad, TransposedLoad
from tilefw.tile.reference.value import Array


def fragments(rows: Array, load: FragmentLoad, transposed: bool) -> Array:
    """Of the rows of each wave's matrices, (waves, matrices, rows, bytes), the bytes of each thread."""
    waves, count = rows.shape[:2]
    if transposed:
        cell = load.cell_bits // 8
        rows = rows.reshape(*rows.shape[:3], -1, cell).transpose(0, 1, 3, 2, 4)
    words = np.ascontiguousarray(rows).reshape(waves, count, -1, 4)
    return words.transpose(0, 2, 1, 3).reshape(-1, count * 4)


def rows_of(words: Array, store: FragmentLoad, transposed: bool) -> Array:
    """Of the words of each thread, (waves, lanes, bytes), the rows of each wave's matrices: (waves, matrices, rows, bytes)."""
    waves, lanes, size = words.shape
    matrices = words.reshape(waves, lanes, size // 4, 4).transpose(0, 2, 1, 3)
    matrices = matrices.reshape(waves, size // 4, store.rows, store.row_bytes)
    if transposed:
        cell = store.cell_bits // 8
        matrices = matrices.reshape(*matrices.shape[:3], -1, cell).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(matrices).reshape(waves, size // 4, store.rows, store.row_bytes)


def columns(rows: Array, load: TransposedLoad) -> Array:
    """Of a row a thread, (threads, bytes), the bytes of each thread: cell j mod c of the rows of the lanes i of its group with
    i mod (group / c) = j div c, c being a row's cells."""
    size, group = load.cell_bits // 8, 1 << load.group
    cells = load.bytes // size
    rows = rows.reshape(len(rows) // group, cells, group // cells, cells, size)
    return rows.transpose(0, 2, 3, 1, 4).reshape(-1, load.bytes)
