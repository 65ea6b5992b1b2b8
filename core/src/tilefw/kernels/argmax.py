"""The largest (or least) value of each row and where it first stands: ties go to the lower index, in a tile and between tiles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def argmax(
    x_ptr, value_ptr, index_ptr, rows, columns, stride,
    LEAST: tl.constexpr, WORST: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    best = tl.full((BLOCK_ROWS,), WORST, x_ptr.dtype.element_ty)
    place = tl.zeros((BLOCK_ROWS,), dtype=tl.int32)
    for start in range(0, columns, BLOCK_COLUMNS):
        column = start + tl.arange(0, BLOCK_COLUMNS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        x = tl.load(x_ptr + row[:, None] * stride + column[None, :], mask=inside, other=WORST)
        if LEAST:
            value, index = tl.min(x, axis=1, return_indices=True)
            better = value < best
        else:
            value, index = tl.max(x, axis=1, return_indices=True)
            better = value > best
        best = tl.where(better, value, best)
        place = tl.where(better, start + index, place)
    tl.store(value_ptr + row, best, mask=row < rows)
    tl.store(index_ptr + row, place, mask=row < rows)


def _worst(name: str, least: bool) -> float | int:
    """What no element of the type is beyond: where nothing is better, index 0 is right."""
    kind = dtype(name)
    if kind.is_float:
        return float("inf") if least else float("-inf")
    low = -(1 << (kind.bits - 1)) if kind.is_signed else 0
    return low + (1 << kind.bits) - 1 if least else low


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape = (p["rows"], p["columns"])
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, p["dtype"]),
        "value_ptr": inputs.empty(shape[:1], p["dtype"]),
        "index_ptr": inputs.empty(shape[:1], "int32"),
        "rows": p["rows"], "columns": p["columns"], "stride": p["columns"],
    }
    least = p["operation"] == "argmin"
    constexprs = {
        "LEAST": least, "WORST": _worst(p["dtype"], least), "BLOCK_ROWS": p["block_rows"],
        "BLOCK_COLUMNS": min(p["block_columns"], tilefw.next_power_of_2(p["columns"])),
    }
    grid = (max(1, ceil_div(p["rows"], p["block_rows"])), 1, 1)
    return Launch(arguments, constexprs, grid, ("value_ptr", "index_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = formats.decode(launch.buffer("x_ptr").array, p["dtype"])
    if p["operation"] == "argmin":
        return {"value_ptr": x.min(axis=1), "index_ptr": x.argmin(axis=1)}
    return {"value_ptr": x.max(axis=1), "index_ptr": x.argmax(axis=1)}


SPEC = KernelSpec("argmax", argmax, _prepare, _expected)
