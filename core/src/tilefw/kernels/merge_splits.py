"""The parts of attention that programs made of different keys, joined by their log-sum-exp: the reduction behind a split K.

Each part is weighted by exp(lse - the largest lse); parts without keys, whose lse is -inf, weigh nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import inputs
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def merge_splits(
    parts_ptr, part_lse_ptr, out_ptr, lse_ptr, rows, head_size, splits, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr
):
    row = tl.program_id(0)
    split = tl.arange(0, BLOCK_S)
    d = tl.arange(0, BLOCK_D)
    place = split * rows + row
    lse = tl.load(part_lse_ptr + place, mask=split < splits, other=-float("inf"))
    inside = (split < splits)[:, None] & (d < head_size)[None, :]
    parts = tl.load(parts_ptr + place[:, None] * head_size + d[None, :], mask=inside, other=0.0)
    peak = tl.max(lse, axis=0)
    origin = tl.where(peak == -float("inf"), 0.0, peak)  # a sequence without keys
    shares = tl.exp(lse - origin)
    total = tl.sum(shares, axis=0)
    some = tl.where(total > 0, total, 1.0)
    out = tl.sum(parts * shares[:, None], axis=0) / some
    tl.store(out_ptr + row * head_size + d, out.to(out_ptr.dtype.element_ty), mask=d < head_size)
    tl.store(lse_ptr + row, peak + tl.log(some))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    splits, rows, size = p["splits"], p["rows"], p["head_size"]
    lse = inputs.draw(rng, p["inputs"], (splits, rows), "fp32")
    lse.array[rng.random((splits, rows)) < 0.3] = -np.inf
    lse.array[:, ::5] = -np.inf
    arguments = {
        "parts_ptr": inputs.draw(rng, p["inputs"], (splits, rows, size), "fp32"), "part_lse_ptr": lse,
        "out_ptr": inputs.empty((rows, size), p["dtype"]), "lse_ptr": inputs.empty((rows,), "fp32"),
        "rows": rows, "head_size": size, "splits": splits,
    }
    constexprs = {"BLOCK_S": tilefw.next_power_of_2(splits), "BLOCK_D": tilefw.next_power_of_2(size)}
    return Launch(arguments, constexprs, (rows, 1, 1), ("out_ptr", "lse_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    parts, lse = (launch.buffer(name).array.astype(np.float64) for name in ("parts_ptr", "part_lse_ptr"))
    peak = lse.max(axis=0)
    shares = np.exp(lse - np.where(np.isneginf(peak), 0.0, peak))
    total = shares.sum(axis=0)
    some = np.where(total > 0, total, 1.0)
    return {"out_ptr": (parts * shares[..., None]).sum(axis=0) / some[:, None], "lse_ptr": peak + np.log(some)}


SPEC = KernelSpec("merge_splits", merge_splits, _prepare, _expected)
