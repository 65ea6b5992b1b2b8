"""out[column] = the sum over all rows: a running tile of rows × columns, reduced across its rows once at the end."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def column_sum(
    x_ptr, out_ptr, rows, columns, stride, COMPUTE: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    column = tl.program_id(0) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    total = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=COMPUTE)
    for start in range(0, rows, BLOCK_ROWS):
        row = start + tl.arange(0, BLOCK_ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        total += tl.load(x_ptr + row[:, None] * stride + column[None, :], mask=inside, other=0).to(COMPUTE)
    tl.store(out_ptr + column, tl.sum(total, axis=0), mask=column < columns)


def _computed(name: str) -> str:
    """The type of the sums: wide enough for floats, and 32 or 64 bits that wrap for integers."""
    if dtype(name).is_float:
        return "fp64" if name == "fp64" else "fp32"
    return "int64" if dtype(name).bits == 64 else "int32"


_COMPUTE = {"fp64": tl.float64, "fp32": tl.float32, "int64": tl.int64, "int32": tl.int32}


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, computed = (p["rows"], p["columns"]), _computed(p["dtype"])
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, p["dtype"]),
        "out_ptr": inputs.empty(shape[1:], computed),
        "rows": p["rows"], "columns": p["columns"], "stride": p["columns"],
    }
    constexprs = {"COMPUTE": _COMPUTE[computed], "BLOCK_ROWS": p["block_rows"], "BLOCK_COLUMNS": p["block_columns"]}
    grid = (max(1, ceil_div(p["columns"], p["block_columns"])), 1, 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = launch.buffer("x_ptr")
    if dtype(p["dtype"]).is_float:
        return {"out_ptr": operands.lanewise_sum(operands.values(x), p["block_rows"], axis=0)}
    with np.errstate(over="ignore"):
        return {"out_ptr": formats.wrap(formats.decode(x.array, p["dtype"]).sum(axis=0), _computed(p["dtype"]))}


SPEC = KernelSpec("column_sum", column_sum, _prepare, _expected)
