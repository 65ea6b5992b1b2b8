"""Rows added up in groups, a lock for each group: read, add and write under a lock that compare-and-swap takes.

The shape of the gradients in Triton's layer norm tutorial. Who comes first decides how float sums round, so floats are small
whole numbers, whose sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.errors import UsageError
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def locked_accumulate(
    x_ptr, sums_ptr, locks_ptr, columns, groups, TAKE: tl.constexpr, GIVE: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    part = tl.load(x_ptr + row * columns + column, mask=inside, other=0)
    lock_ptr = locks_ptr + row % groups
    count_ptr = lock_ptr + groups
    group_ptrs = sums_ptr + row % groups * columns + column
    while tl.atomic_cas(lock_ptr, 0, 1, sem=TAKE) == 1:
        pass
    # The first row finds nothing to add to: the sums are uninitialised before it.
    if tl.load(count_ptr) == 0:
        tl.atomic_xchg(count_ptr, 1, sem="relaxed")  # the lock orders it
    else:
        part += tl.load(group_ptrs, mask=inside, other=0)
    tl.store(group_ptrs, part, mask=inside)
    tl.debug_barrier()  # every lane has stored before one of them lets the next program in
    tl.atomic_xchg(lock_ptr, 0, sem=GIVE)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    if dtype(p["dtype"]).is_float and p["inputs"] != "ints":
        raise UsageError(
            f"locked_accumulate: {p['inputs']} inputs of {p['dtype']}", code="TFW0942",
            note="their sums would round differently from run to run", help="take `ints`",
        )
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], (p["rows"], p["columns"]), p["dtype"]),
        "sums_ptr": inputs.empty((p["groups"], p["columns"]), p["dtype"]),
        "locks_ptr": Buffer(np.zeros((2, p["groups"]), np.int32), "int32"),
        "columns": p["columns"], "groups": p["groups"],
    }
    strong = p["order"] == "acq_rel"
    constexprs = {
        "TAKE": "acq_rel" if strong else "acquire", "GIVE": "acq_rel" if strong else "release",
        "BLOCK": tilefw.next_power_of_2(p["columns"]),
    }
    return Launch(arguments, constexprs, (p["rows"], 1, 1), ("sums_ptr", "locks_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = formats.decode(launch.buffer("x_ptr").array, p["dtype"])
    sums = formats.decode(launch.buffer("sums_ptr").array, p["dtype"]).copy()
    touched = min(p["rows"], p["groups"])
    for group in range(touched):
        sums[group] = x[group :: p["groups"]].sum(axis=0)
    counts = (np.arange(p["groups"]) < touched).astype(np.int64)
    return {
        "sums_ptr": formats.wrap(sums, p["dtype"]),
        "locks_ptr": np.stack([np.zeros_like(counts), counts]),
    }


SPEC = KernelSpec("locked_accumulate", locked_accumulate, _prepare, _expected)
