"""A copy of rows that lie gigabytes apart: offsets in bytes, and in elements, that 32 bits do not hold.

The arrays are virtual memory that nobody has touched but for the rows: they take little room.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def far_rows(x_ptr, out_ptr, columns, x_stride, out_stride, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    if STRIDE == "int64":
        x = tl.load(x_ptr + row.to(tl.int64) * x_stride + column, mask=inside)
        tl.store(out_ptr + row.to(tl.int64) * out_stride + column, x, mask=inside)
    else:  # `pointer`: no product is larger than a stride
        for _ in range(0, row):
            x_ptr += x_stride
            out_ptr += out_stride
        tl.store(out_ptr + column, tl.load(x_ptr + column, mask=inside), mask=inside)


def _far_apart(rows: Buffer, reach: int) -> Buffer:
    """The same rows, `reach` GiB between the first and the last, in memory that is otherwise zero and untouched."""
    count, columns = rows.array.shape
    stride = (reach << 30) // rows.array.itemsize // (count - 1)
    whole = np.zeros((count - 1) * stride + columns, rows.array.dtype)
    far = np.lib.stride_tricks.as_strided(whole, rows.array.shape, (stride * whole.itemsize, whole.itemsize))
    far[...] = rows.array
    return Buffer(far, rows.dtype)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape = (p["rows"], p["columns"])
    x, out = inputs.draw(rng, "specials", shape, p["dtype"]), inputs.empty(shape, p["dtype"])
    x, out = (_far_apart(x, p["reach"]), out) if p["far"] == "x" else (x, _far_apart(out, p["reach"]))
    arguments = {
        "x_ptr": x, "out_ptr": out, "columns": p["columns"],
        **{f"{name}_stride": b.array.strides[0] // b.array.itemsize for name, b in (("x", x), ("out", out))},
    }
    grid = (p["rows"], ceil_div(p["columns"], p["block"]), 1)
    return Launch(arguments, {"STRIDE": p["stride"], "BLOCK": p["block"]}, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    return {"out_ptr": formats.decode(launch.buffer("x_ptr").array, p["dtype"])}


SPEC = KernelSpec("far_rows", far_rows, _prepare, _expected)
