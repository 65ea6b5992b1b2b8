"""out = x / (1 + y²), in programs that assert what they rely on and print what they find: neither changes what is stored.

Assertions are part of the code without a debug launch; values are printed where a condition that only data decides holds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit(debug=True)
def reported_ratio(x_ptr, y_ptr, out_ptr, n, REPORTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    y = tl.load(y_ptr + offsets, mask=inside, other=0)
    below = 1 + y * y
    if REPORTS != "print":
        tl.device_assert(below >= 1, "a divisor is below 1", mask=inside)
        tl.device_assert(tl.max(offsets, axis=0) >= 0, "an index is negative")
    ratio = tl.load(x_ptr + offsets, mask=inside, other=0) / below
    if REPORTS != "assert":
        least = tl.min(ratio, axis=0)
        if least < 0:
            tl.device_print("least ratio", least)
    tl.store(out_ptr + offsets, ratio, mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"]),
        "y_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"]),
        "out_ptr": inputs.empty((p["n"],), p["dtype"]),
        "n": p["n"],
    }
    constexprs = {"REPORTS": p["reports"], "BLOCK": p["block"]}
    return Launch(arguments, constexprs, (ceil_div(p["n"], p["block"]), 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x, y = (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("x_ptr", "y_ptr"))
    return {"out_ptr": x / (1 + y * y)}


SPEC = KernelSpec("reported_ratio", reported_ratio, _prepare, _expected)
