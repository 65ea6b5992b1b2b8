"""A two-dimensional copy between arrays of any strides: transposed, padded, reversed (negative), repeated (zero)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def strided_copy(
    x_ptr, out_ptr, rows, columns, x_row_stride, x_column_stride, out_row_stride, out_column_stride,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    row = (tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
    column = (tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS))[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * x_row_stride + column * x_column_stride, mask=inside)
    tl.store(out_ptr + row * out_row_stride + column * out_column_stride, x, mask=inside)


def _strided(p: Parameters, layout: str, storage: Buffer) -> Buffer:
    """A rows × columns view of `storage` (which is large enough for every layout) in the memory order `layout`."""
    rows, columns = p["rows"], p["columns"]
    flat = storage.array
    full = flat[: rows * columns].reshape(rows, columns)
    views = {
        "contiguous": lambda: full,
        "transposed": lambda: flat[: rows * columns].reshape(columns, rows).T,
        "padded": lambda: flat[: rows * (columns + 5)].reshape(rows, columns + 5)[:, :columns],
        "every_third_column": lambda: flat[: rows * 3 * columns].reshape(rows, 3 * columns)[:, ::3],
        "reversed_rows": lambda: full[::-1],
        "reversed": lambda: full[::-1, ::-1],
        "repeated_row": lambda: np.broadcast_to(flat[:columns], (rows, columns)),
        "repeated_column": lambda: np.broadcast_to(flat[:rows, None], (rows, columns)),
    }
    return Buffer(views[layout](), storage.dtype)


def _stride(buffer: Buffer, axis: int) -> int:
    """The stride in elements."""
    return buffer.array.strides[axis] // buffer.array.itemsize


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    elements = p["rows"] * 3 * (p["columns"] + 5) + p["columns"]
    x = _strided(p, p["source_layout"], inputs.draw(rng, p["inputs"], (elements,), p["dtype"]))
    out = _strided(p, p["result_layout"], inputs.empty((elements,), p["dtype"]))
    arguments = {
        "x_ptr": x, "out_ptr": out, "rows": p["rows"], "columns": p["columns"],
        "x_row_stride": _stride(x, 0), "x_column_stride": _stride(x, 1),
        "out_row_stride": _stride(out, 0), "out_column_stride": _stride(out, 1),
    }
    grid = (max(1, ceil_div(p["rows"], p["block_rows"])), max(1, ceil_div(p["columns"], p["block_columns"])), 1)
    constexprs = {"BLOCK_ROWS": p["block_rows"], "BLOCK_COLUMNS": p["block_columns"]}
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    return {"out_ptr": formats.decode(launch.buffer("x_ptr").array, p["dtype"])}


SPEC = KernelSpec("strided_copy", strided_copy, _prepare, _expected)
