"""out = x + y: the first kernel of every tutorial, one contiguous tile a program with a masked tail."""

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
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"]),
        "y_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"]),
        "out_ptr": inputs.empty((p["n"],), p["dtype"]),
        "n": p["n"],
    }
    grid = (max(1, ceil_div(p["n"], p["block"])), 1, 1)
    return Launch(arguments, {"BLOCK": p["block"]}, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x, y = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("x_ptr", "y_ptr"))
    if dtype(p["dtype"]).is_int:
        return {"out_ptr": formats.wrap(x + y, p["dtype"])}
    with np.errstate(invalid="ignore", over="ignore"):
        # Rounding the float64 sum again is as rounding once: 53 >= 2·24 + 2 bits (Figueroa, "When is double rounding innocuous?").
        return {"out_ptr": formats.decode(formats.encode(x + y, p["dtype"]), p["dtype"])}


SPEC = KernelSpec("vector_add", vector_add, _prepare, _expected)
