"""Dropout that remembers nothing: out = x / (1 - p) where a number of the seed and the element's place is above p, else 0.

The gradient is the same kernel on dout with the same seed. Philox makes four numbers of one counter, which four neighbours take.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.philox import rand4x
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    counter = tl.program_id(0) * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
    a, b, c, d = tl.rand4x(seed, counter)
    numbers = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), (BLOCK,))  # a, b, c, d of each counter side by side
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < n, other=0.0).to(tl.float32)
    out = tl.where(numbers > p, x / (1 - p), 0.0)
    tl.store(out_ptr + place, out.to(out_ptr.dtype.element_ty), mask=place < n)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"]), "out_ptr": inputs.empty((p["n"],), p["dtype"]),
        "n": p["n"], "p": p["p"], "seed": int(rng.integers(2, 2**31)),
    }
    grid = (max(1, ceil_div(p["n"], p["block"])), 1, 1)
    return Launch(arguments, {"BLOCK": p["block"]}, grid, ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    seed = launch.arguments["seed"]
    assert isinstance(seed, int)
    numbers = rand4x(seed, np.arange(ceil_div(p["n"], 4))).T.reshape(-1)[: p["n"]]
    x = formats.decode(launch.buffer("x_ptr").array, p["dtype"])
    drop = np.float32(p["p"])
    return {"out_ptr": np.where(numbers > drop, x / float(np.float32(1) - drop), 0.0)}


SPEC = KernelSpec("dropout", dropout, _prepare, _expected)
