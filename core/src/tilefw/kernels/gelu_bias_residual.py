"""out = gelu(x + bias) + residual: the epilogue of a transformer's first feed-forward layer, one tile of one row a program."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
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
    grid = (p["rows"], max(1, ceil_div(p["columns"], p["block"])), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    # In the kernel's own precision: its sums and products are correctly rounded, so they leave NumPy no choice.
    real = np.float64 if p["dtype"] == "fp64" else np.float32
    x, bias, residual = (
        formats.decode(launch.buffer(name).array, p["dtype"]).astype(real) for name in ("x_ptr", "bias_ptr", "residual_ptr")
    )
    with np.errstate(all="ignore"):
        z = x + bias[None, :]
        if p["approximation"] == "erf":
            erf = np.asarray(np.frompyfunc(math.erf, 1, 1)(z * real(math.sqrt(0.5)))).astype(real)
            activated = real(0.5) * z * (1 + erf)
        else:
            steepness = real(2 * math.sqrt(2 / math.pi))
            activated = z * (1 / (1 + np.exp(-steepness * (z + real(0.044715) * z * z * z))))
        return {"out_ptr": (activated + residual).astype(np.float64)}


SPEC = KernelSpec("gelu_bias_residual", gelu_bias_residual, _prepare, _expected)
