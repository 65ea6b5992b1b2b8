"""The seven-point Laplacian of a volume with zeros around it: a grid of three dimensions, and masks with ends on both sides."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters

AXES = ("depth", "rows", "columns")


@tilefw.jit
def neighbour(x_ptr, layer, row, column, depth, rows, columns, layer_stride, row_stride, column_stride):
    inside = (layer >= 0) & (layer < depth) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    return tl.load(x_ptr + layer * layer_stride + row * row_stride + column * column_stride, mask=inside, other=0).to(tl.float32)


@tilefw.jit
def stencil(
    x_ptr, out_ptr, depth, rows, columns, layer_stride, row_stride, column_stride,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    column = (tl.program_id(0) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS))[None, :]
    row = (tl.program_id(1) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
    for layer in range(tl.program_id(2), depth, tl.num_programs(2)):
        middle = neighbour(x_ptr, layer, row, column, depth, rows, columns, layer_stride, row_stride, column_stride)
        total = middle * -6.0
        for side in tl.static_range(-1, 2, 2):
            total += neighbour(x_ptr, layer + side, row, column, depth, rows, columns, layer_stride, row_stride, column_stride)
            total += neighbour(x_ptr, layer, row + side, column, depth, rows, columns, layer_stride, row_stride, column_stride)
            total += neighbour(x_ptr, layer, row, column + side, depth, rows, columns, layer_stride, row_stride, column_stride)
        places = (layer * rows + row) * columns + column
        tl.store(out_ptr + places, total, mask=(row < rows) & (column < columns))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    order = [AXES.index(word) for word in p["memory_order"].split("_")]
    drawn = inputs.draw(rng, p["inputs"], tuple(p[AXES[axis]] for axis in order), p["dtype"])
    x = Buffer(drawn.array.transpose(np.argsort(order)), p["dtype"])
    layer, row, column = operands.strides(x)
    arguments = {
        "x_ptr": x, "out_ptr": inputs.empty(x.array.shape, p["dtype"]),
        "depth": p["depth"], "rows": p["rows"], "columns": p["columns"],
        "layer_stride": layer, "row_stride": row, "column_stride": column,
    }
    grid = (ceil_div(p["columns"], p["block_columns"]), ceil_div(p["rows"], p["block_rows"]), min(p["depth"], p["programs"]))
    constexprs = {"BLOCK_ROWS": p["block_rows"], "BLOCK_COLUMNS": p["block_columns"]}
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    """In fp32 and in the kernel's own order, which leaves no choice."""
    x = np.pad(operands.values(launch.buffer("x_ptr")).astype(np.float32), 1)
    total = x * np.float32(-6)
    for side in (1, -1):
        for axis in range(3):
            total += np.roll(x, side, axis)
    return {"out_ptr": total[1:-1, 1:-1, 1:-1].astype(np.float64)}


SPEC = KernelSpec("stencil", stencil, _prepare, _expected)
