"""out[i] = the sum of the first i + 1 blocks of x: each program waits for what the one before it hands on, then hands on more.

The chain of a single-pass scan: a value is stored, then its flag released; who acquires the flag may load the value. The
order of additions is fixed, so float sums round alike everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters

A_MINUTE = tl.constexpr(60_000_000_000)  # nanoseconds


@tilefw.jit
def chained_sum(x_ptr, out_ptr, flags_ptr, n, ORDERED: tl.constexpr, WAIT: tl.constexpr, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    index = block * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + index, mask=index < n, other=0), axis=0).to(out_ptr.dtype.element_ty)
    if block > 0:
        if WAIT == "poll":
            tl.atomic_poll(flags_ptr + block - 1, 1)
        elif WAIT == "timed":
            seen = tl.atomic_poll(flags_ptr + block - 1, 1, timeout_ns=A_MINUTE)
            tl.device_assert(seen, "the program before this one handed nothing on")
        else:
            while tl.atomic_add(flags_ptr + block - 1, 0, sem="acquire") == 0:
                pass
        total += tl.load(out_ptr + block - 1)
    tl.store(out_ptr + block, total)
    if WAIT != "loop":
        tl.atomic_store(flags_ptr + block, 1)
    else:
        tl.atomic_xchg(flags_ptr + block, 1, sem="acq_rel" if ORDERED else "release")


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    blocks = ceil_div(p["n"], p["block"])
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (p["n"],), p["dtype"]), "out_ptr": inputs.empty((blocks,), p["dtype"]),
        "flags_ptr": Buffer(np.zeros(blocks, np.int32), "int32"), "n": p["n"],
    }
    constexprs = {"ORDERED": p["order"] == "acq_rel", "WAIT": p["wait"], "BLOCK": p["block"]}
    return Launch(arguments, constexprs, (blocks, 1, 1), ("out_ptr", "flags_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = formats.decode(launch.buffer("x_ptr").array, p["dtype"])
    with np.errstate(over="ignore"):
        sums = x.cumsum()[np.minimum(np.arange(p["block"] - 1, p["n"] + p["block"] - 1, p["block"]), p["n"] - 1)]
    return {"out_ptr": formats.wrap(sums, p["dtype"]), "flags_ptr": np.ones(launch.grid[0], np.int64)}


SPEC = KernelSpec("chained_sum", chained_sum, _prepare, _expected)
