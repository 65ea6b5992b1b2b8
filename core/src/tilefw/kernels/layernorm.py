"""Layer normalisation along rows (Ba, Kiros and Hinton, 2016): (x - mean) · rstd · weight + bias, with mean and rstd kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def layernorm(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, stride, columns, eps, COMPUTE: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    x_row = x_ptr + row * stride
    out_row = out_ptr + row * stride
    total = tl.zeros([BLOCK], dtype=COMPUTE)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x_row + column, mask=column < columns, other=0.0).to(COMPUTE)
    mean = tl.sum(total, axis=0) / columns

    squares = tl.zeros([BLOCK], dtype=COMPUTE)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + column, mask=column < columns, other=0.0).to(COMPUTE)
        centred = tl.where(column < columns, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        weight = tl.load(weight_ptr + column, mask=inside).to(COMPUTE)
        bias = tl.load(bias_ptr + column, mask=inside).to(COMPUTE)
        x = tl.load(x_row + column, mask=inside, other=0.0).to(COMPUTE)
        result = (x - mean) * rstd * weight + bias
        tl.store(out_row + column, result.to(out_ptr.dtype.element_ty), mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, name = (p["rows"], p["columns"]), p["dtype"]
    computed = "fp64" if name == "fp64" else "fp32"
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "weight_ptr": inputs.draw(rng, p["inputs"], shape[1:], name),
        "bias_ptr": inputs.draw(rng, p["inputs"], shape[1:], name),
        "out_ptr": inputs.empty(shape, name),
        "mean_ptr": inputs.empty(shape[:1], computed),
        "rstd_ptr": inputs.empty(shape[:1], computed),
        "stride": p["columns"],
        "columns": p["columns"],
        "eps": p["eps"],
    }
    constexprs = {
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "BLOCK": min(p["block"], tilefw.next_power_of_2(p["columns"])),
    }
    outputs = ("out_ptr", "mean_ptr", "rstd_ptr")
    return Launch(arguments, constexprs, (p["rows"], 1, 1), outputs, {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x, weight, bias = (operands.values(launch.buffer(name)) for name in ("x_ptr", "weight_ptr", "bias_ptr"))
    mean = operands.lanewise_sum(x, launch.constexprs["BLOCK"]) / p["columns"]
    centred = x.astype(np.float64) - mean[:, None]
    rstd = 1 / np.sqrt((centred**2).mean(axis=1) + float(np.float32(p["eps"])))  # a float argument is passed as fp32
    return {"out_ptr": centred * rstd[:, None] * weight + bias, "mean_ptr": mean, "rstd_ptr": rstd}


SPEC = KernelSpec("layernorm", layernorm, _prepare, _expected)
