"""Root-mean-square normalisation along rows (Zhang and Sennrich, 2019): x · rsqrt(mean(x²) + eps) · weight."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def rmsnorm(
    x_ptr, weight_ptr, out_ptr, rstd_ptr, stride, columns, eps,
    COMPUTE: tl.constexpr, ONE_TILE: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    x_row = x_ptr + row * stride
    out_row = out_ptr + row * stride
    lane = tl.arange(0, BLOCK)
    if ONE_TILE:
        inside = lane < columns
        x = tl.load(x_row + lane, mask=inside, other=0.0).to(COMPUTE)
        weight = tl.load(weight_ptr + lane, mask=inside, other=0.0).to(COMPUTE)
        rstd = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
        tl.store(out_row + lane, (x * rstd * weight).to(out_ptr.dtype.element_ty), mask=inside)
    else:
        squares = tl.zeros([BLOCK], dtype=COMPUTE)
        for start in range(0, columns, BLOCK):
            x = tl.load(x_row + start + lane, mask=start + lane < columns, other=0.0).to(COMPUTE)
            squares += x * x
        rstd = tl.rsqrt(tl.sum(squares, axis=0) / columns + eps)
        for start in range(0, columns, BLOCK):
            inside = start + lane < columns
            x = tl.load(x_row + start + lane, mask=inside, other=0.0).to(COMPUTE)
            weight = tl.load(weight_ptr + start + lane, mask=inside, other=0.0).to(COMPUTE)
            tl.store(out_row + start + lane, (x * rstd * weight).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(rstd_ptr + row, rstd)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, name = (p["rows"], p["columns"]), p["dtype"]
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "weight_ptr": inputs.draw(rng, p["inputs"], shape[1:], name),
        "out_ptr": inputs.empty(shape, name),
        "rstd_ptr": inputs.empty(shape[:1], "fp64" if name == "fp64" else "fp32"),
        "stride": p["columns"],
        "columns": p["columns"],
        "eps": p["eps"],
    }
    constexprs = {
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "ONE_TILE": p["columns"] <= p["block"],
        "BLOCK": min(p["block"], tilefw.next_power_of_2(p["columns"])),
    }
    return Launch(arguments, constexprs, (p["rows"], 1, 1), ("out_ptr", "rstd_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x, weight = (operands.values(launch.buffer(name)) for name in ("x_ptr", "weight_ptr"))
    squares = operands.lanewise_sum(x * x, launch.constexprs["BLOCK"])
    rstd = 1 / np.sqrt(squares / p["columns"] + float(np.float32(p["eps"])))  # a float argument is passed as fp32
    return {"out_ptr": x * rstd[:, None] * weight, "rstd_ptr": rstd}


SPEC = KernelSpec("rmsnorm", rmsnorm, _prepare, _expected)
