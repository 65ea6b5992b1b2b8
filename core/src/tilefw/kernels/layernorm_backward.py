"""The gradients of layer normalisation: dx of every row, and dweight and dbias summed over each program's rows.

The sums over programs are left to `column_sum`: so no program waits for another, and the order of the additions is fixed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def layernorm_backward(
    dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, dweight_ptr, dbias_ptr, stride, rows, columns, rows_per_program,
    COMPUTE: tl.constexpr, BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(COMPUTE)
    dweight = tl.zeros([BLOCK], dtype=COMPUTE)
    dbias = tl.zeros([BLOCK], dtype=COMPUTE)
    first = program * rows_per_program
    for row in range(first, tl.minimum(first + rows_per_program, rows)):
        x = tl.load(x_ptr + row * stride + column, mask=inside, other=0.0).to(COMPUTE)
        dy = tl.load(dy_ptr + row * stride + column, mask=inside, other=0.0).to(COMPUTE)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        normal = tl.where(inside, (x - mean) * rstd, 0.0)
        weighted = weight * dy
        along = tl.sum(normal * weighted, axis=0) / columns
        level = tl.sum(weighted, axis=0) / columns
        dx = (weighted - (normal * along + level)) * rstd
        tl.store(dx_ptr + row * stride + column, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dweight += dy * normal
        dbias += dy
    tl.store(dweight_ptr + program * columns + column, dweight, mask=inside)
    tl.store(dbias_ptr + program * columns + column, dbias, mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, name = (p["rows"], p["columns"]), p["dtype"]
    computed = "fp64" if name == "fp64" else "fp32"
    programs = max(1, ceil_div(p["rows"], p["rows_per_program"]))
    x = inputs.draw(rng, p["inputs"], shape, name)
    exact = formats.decode(x.array, name)
    with np.errstate(invalid="ignore"):  # rows with an infinity
        mean, variance = exact.mean(axis=1), exact.var(axis=1)
    arguments = {
        "dy_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "x_ptr": x,
        "weight_ptr": inputs.draw(rng, p["inputs"], shape[1:], name),
        "mean_ptr": Buffer(formats.encode(mean, computed), computed),
        "rstd_ptr": Buffer(formats.encode(1 / np.sqrt(variance + 1e-5), computed), computed),
        "dx_ptr": inputs.empty(shape, name),
        "dweight_ptr": inputs.empty((programs, p["columns"]), computed),
        "dbias_ptr": inputs.empty((programs, p["columns"]), computed),
        "stride": p["columns"],
        "rows": p["rows"],
        "columns": p["columns"],
        "rows_per_program": p["rows_per_program"],
    }
    constexprs = {
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "BLOCK": tilefw.next_power_of_2(p["columns"]),
    }
    outputs = ("dx_ptr", "dweight_ptr", "dbias_ptr")
    return Launch(arguments, constexprs, (programs, 1, 1), outputs, {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x, dy, weight, mean, rstd = (
        operands.values(launch.buffer(name)) for name in ("x_ptr", "dy_ptr", "weight_ptr", "mean_ptr", "rstd_ptr")
    )
    # What comes before the sums over a row is correctly rounded in the kernel's own precision, and so are those over rows.
    normal = (x - mean[:, None]) * rstd[:, None]
    weighted = weight * dy
    wide = (normal * weighted).astype(np.float64)
    along = wide.mean(axis=1, keepdims=True)
    level = weighted.astype(np.float64).mean(axis=1, keepdims=True)
    programs, step = launch.grid[0], p["rows_per_program"]
    dweight, dbias = np.zeros((2, programs, p["columns"]), x.dtype)
    for row in range(p["rows"]):
        dweight[row // step] += dy[row] * normal[row]
        dbias[row // step] += dy[row]
    return {
        "dx_ptr": (weighted - (normal * along + level)) * rstd[:, None].astype(np.float64),
        "dweight_ptr": dweight.astype(np.float64), "dbias_ptr": dbias.astype(np.float64),
    }


SPEC = KernelSpec("layernorm_backward", layernorm_backward, _prepare, _expected)
