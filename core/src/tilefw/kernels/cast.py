"""out = x in another element type: every pair of types that the language casts at once, floats with both roundings."""

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
def cast(x_ptr, out_ptr, n, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty, fp_downcast_rounding=ROUNDING), mask=inside)


def _narrows(p: Parameters) -> bool:
    """Whether the cast is one of a float to a narrower float, which alone takes a rounding (as in Triton)."""
    source, result = dtype(p["source"]), dtype(p["result"])
    return source.is_float and result.is_float and result.bits < source.bits


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["source"]),
        "out_ptr": inputs.empty((p["n"],), p["result"]),
        "n": p["n"],
    }
    constexprs = {"ROUNDING": p["rounding"] if _narrows(p) else None, "BLOCK": p["block"]}
    grid = (max(1, ceil_div(p["n"], p["block"])), 1, 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    source, result = dtype(p["source"]), dtype(p["result"])
    x = formats.decode(launch.buffer("x_ptr").array, p["source"])
    if result.name == "int1":
        return {"out_ptr": (x != 0).astype(np.uint64)}
    if result.is_int:
        return {"out_ptr": formats.to_integers(x, result.name) if source.is_float else formats.wrap(x, result.name)}
    rounding = p["rounding"] if _narrows(p) else "rtne"
    rounded = formats.encode(x, result.name, rounding) if source.is_float else formats.from_integers(x, result.name)
    return {"out_ptr": formats.decode(rounded, result.name)}


SPEC = KernelSpec("cast", cast, _prepare, _expected)
