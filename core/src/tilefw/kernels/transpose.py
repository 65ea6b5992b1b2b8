"""out = x transposed: a tile is read along x's rows and written along out's, so that both sides move whole lines of memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def transpose(
    x_ptr, out_ptr, rows, columns, x_stride, out_stride, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    column = tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    x = tl.load(x_ptr + row[:, None] * x_stride + column[None, :], mask=inside)
    turned = (column[:, None] < columns) & (row[None, :] < rows)
    tl.store(out_ptr + column[:, None] * out_stride + row[None, :], tl.trans(x), mask=turned)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    rows, columns = p["rows"], p["columns"]
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (rows, columns), p["dtype"]),
        "out_ptr": inputs.empty((columns, rows), p["dtype"]),
        "rows": rows, "columns": columns, "x_stride": columns, "out_stride": rows,
    }
    constexprs = {"BLOCK_ROWS": p["block_rows"], "BLOCK_COLUMNS": p["block_columns"]}
    grid = (max(1, ceil_div(rows, p["block_rows"])), max(1, ceil_div(columns, p["block_columns"])), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    return {"out_ptr": formats.decode(launch.buffer("x_ptr").array, p["dtype"]).T}


SPEC = KernelSpec("transpose", transpose, _prepare, _expected)
