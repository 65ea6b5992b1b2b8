"""out = gelu(x + bias) + residual: the epilogue of a transformer's first feed-forward layer, one tile of one row a program."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters

SQRT_HALF = tl.constexpr(0.7071067811865476)
SQRT_2_OVER_PI = tl.constexpr(0.7978845608028654)


@tilefw.jit
def gelu(x, APPROXIMATION: tl.constexpr):
    """Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016: x·Φ(x), or its tanh form."""
    if APPROXIMATION == "erf":
        return 0.5 * x * (1.0 + tl.erf(x * SQRT_HALF))
    # (1 + tanh(u)) / 2 is sigmoid(2u), which needs no tanh.
    return x * tl.sigmoid(2.0 * SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))


@tilefw.jit
def gelu_bias_residual(
    x_ptr, bias_ptr, residual_ptr, out_ptr, columns, row_stride,
    APPROXIMATION: tl.constexpr, COMPUTE: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    offsets = row * row_stride + column
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(COMPUTE)
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(COMPUTE)
    residual = tl.load(residual_ptr + offsets, mask=inside, other=0.0).to(COMPUTE)
    result = gelu(x + bias, APPROXIMATION) + residual
    tl.store(out_ptr + offsets, result.to(out_ptr.dtype.element_ty), mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, name = (p["rows"], p["columns"]), p["dtype"]
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "bias_ptr": inputs.draw(rng, p["inputs"], shape[1:], name),
        "residual_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "out_ptr": inputs.empty(shape, name),
        "columns": p["columns"],
        "row_stride": p["columns"],
    }
    constexprs = {
        "APPROXIMATION": p["approximation"],
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "BLOCK": p["block"],
    }
    grid = (max(1, p["rows"]), max(1, -(-p["columns"] // p["block"])), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x, bias, residual = (
        formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("x_ptr", "bias_ptr", "residual_ptr")
    )
    with np.errstate(all="ignore"):
        z = x + bias[None, :]
        if p["approximation"] == "erf":
            activated = z * 0.5 * (1 + np.frompyfunc(math.erf, 1, 1)(z / math.sqrt(2)).astype(np.float64))
        else:
            activated = z * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
        return {"out_ptr": activated + residual}


SPEC = KernelSpec("gelu_bias_residual", gelu_bias_residual, _prepare, _expected)
