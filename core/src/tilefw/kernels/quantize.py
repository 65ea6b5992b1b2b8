"""Quantisation by given scales per row: x / scale rounded to nearest even and clamped, to int8 or to fp8."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters
from tilefw.language.extra import libdevice

# The largest quantised magnitude; int8 is used symmetrically, so that no scale maps a value to -128.
_LIMITS = {"int8": 127.0, "fp8e4nv": 448.0, "fp8e5": 57344.0}


@tilefw.jit
def quantize(x_ptr, scale_ptr, out_ptr, columns, LIMIT: tl.constexpr, TO_INTEGER: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    scale = tl.load(scale_ptr + row)
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    # The division is correctly rounded: a reciprocal would move values across a rounding boundary.
    scaled = tl.clamp(tl.div_rn(x, scale), -LIMIT, LIMIT)
    if TO_INTEGER:
        scaled = libdevice.rint(scaled)
    tl.store(out_ptr + row * columns + column, scaled.to(out_ptr.dtype.element_ty), mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, limit = (p["rows"], p["columns"]), _LIMITS[p["result"]]
    x = inputs.draw(rng, p["inputs"], shape, p["dtype"])
    # Scales below the row's exact one, so that the clamp works; powers of two among them make exact ties.
    largest = np.abs(formats.decode(x.array, x.dtype)).max(axis=1, initial=1e-3)
    scale = np.where(np.arange(p["rows"]) % 3 == 0, 2.0 ** np.ceil(np.log2(largest / limit)), 0.75 * largest / limit)
    arguments = {
        "x_ptr": x,
        "scale_ptr": inputs.Buffer(scale.astype(np.float32), "fp32"),
        "out_ptr": inputs.empty(shape, p["result"]),
        "columns": p["columns"],
    }
    constexprs = {"LIMIT": limit, "TO_INTEGER": p["result"] == "int8", "BLOCK": p["block"]}
    grid = (p["rows"], max(1, ceil_div(p["columns"], p["block"])), 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = formats.decode(launch.buffer("x_ptr").array, p["dtype"]).astype(np.float32)
    limit = np.float32(_LIMITS[p["result"]])
    scaled = np.clip(x / launch.buffer("scale_ptr").array[:, None], -limit, limit)
    if p["result"] == "int8":
        return {"out_ptr": np.rint(scaled).astype(np.int64)}
    return {"out_ptr": formats.decode(formats.encode(scaled.astype(np.float64), p["result"]), p["result"])}


SPEC = KernelSpec("quantize", quantize, _prepare, _expected)
