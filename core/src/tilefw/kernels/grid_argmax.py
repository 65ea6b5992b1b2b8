"""The largest element of a whole array and its first index: a maximum over all programs, which the last one unpacks.

Value and index travel as one 64-bit key, in which keys of larger values are larger and, of equal values, those of lower
indices. Each program takes a ticket behind its key; who draws the last one knows that all keys are in.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def ordered(x):
    """32-bit integers that order as the floats do: a negative float's bits but the sign turn around. Its own inverse."""
    return x ^ ((x >> 31) & 0x7FFFFFFF)


@tilefw.jit
def grid_argmax(x_ptr, key_ptr, tickets_ptr, value_ptr, index_ptr, n, IS_FLOAT: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    x = tl.load(x_ptr + index, mask=inside)
    code = ordered(x.to(tl.int32, bitcast=True)) if IS_FLOAT else x
    key = (code.to(tl.int64) << 32) | (0x7FFFFFFF - index).to(tl.int64)
    key = tl.where(inside, key, -(2**63))
    tl.atomic_max(key_ptr, tl.max(key, axis=0), sem="relaxed")
    if tl.atomic_add(tickets_ptr, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        best = tl.atomic_max(key_ptr, -(2**63), sem="relaxed")
        found = (best >> 32).to(tl.int32)
        tl.store(value_ptr, ordered(found).to(tl.float32, bitcast=True) if IS_FLOAT else found)
        tl.store(index_ptr, 0x7FFFFFFF - best.to(tl.int32))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"]),
        "key_ptr": Buffer(np.full(1, np.iinfo(np.int64).min), "int64"),
        "tickets_ptr": Buffer(np.zeros(1, np.int32), "int32"),
        "value_ptr": inputs.empty((1,), p["dtype"]), "index_ptr": inputs.empty((1,), "int32"), "n": p["n"],
    }
    constexprs = {"IS_FLOAT": p["dtype"] == "fp32", "BLOCK": p["block"]}
    outputs = ("value_ptr", "index_ptr", "tickets_ptr")
    return Launch(arguments, constexprs, (ceil_div(p["n"], p["block"]), 1, 1), outputs, {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = formats.decode(launch.buffer("x_ptr").array, p["dtype"])
    return {"value_ptr": x.max(keepdims=True), "index_ptr": np.array([x.argmax()]), "tickets_ptr": np.array([launch.grid[0]])}


SPEC = KernelSpec("grid_argmax", grid_argmax, _prepare, _expected)
