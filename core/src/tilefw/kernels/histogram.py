"""out[x[i]] += 1: counts that many programs add to at once, spread over bins or all in one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def histogram(x_ptr, out_ptr, n, bins, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    bin = tl.load(x_ptr + index, mask=inside, other=-1)
    # What lies in no bin is counted nowhere: its address is never touched.
    tl.atomic_add(out_ptr + bin, 1, mask=inside & (bin >= 0) & (bin < bins), sem=ORDER)


def _values(p: Parameters, rng: np.random.Generator) -> np.ndarray:
    n, bins = p["n"], p["bins"]
    if p["spread"] == "one":
        return np.full(n, bins // 2, np.int32)
    if p["spread"] == "skewed":
        return np.minimum(rng.geometric(0.4, n) - 1, bins).astype(np.int32)
    return rng.integers(-2, bins + 2, n, dtype=np.int32)  # some below the first bin and above the last


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    arguments = {
        "x_ptr": Buffer(_values(p, rng), "int32"), "out_ptr": inputs.draw(rng, "ints", (p["bins"],), p["dtype"]),
        "n": p["n"], "bins": p["bins"],
    }
    grid = (max(1, ceil_div(p["n"], p["block"])), 1, 1)
    constexprs = {"ORDER": p["order"], "BLOCK": p["block"]}
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = launch.buffer("x_ptr").array
    counted = np.bincount(x[(x >= 0) & (x < p["bins"])], minlength=p["bins"])
    start = formats.decode(launch.buffer("out_ptr").array, p["dtype"])
    return {"out_ptr": formats.wrap(start + counted.astype(start.dtype), p["dtype"])}


SPEC = KernelSpec("histogram", histogram, _prepare, _expected)
