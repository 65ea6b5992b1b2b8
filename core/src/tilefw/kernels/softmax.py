"""Softmax along rows: a row that fits one tile is read once, a longer one by an online maximum and sum, then again to divide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def softmax(
    x_ptr, out_ptr, rows, columns, x_stride, out_stride, COMPUTE: tl.constexpr, ONE_TILE: tl.constexpr, BLOCK: tl.constexpr,
):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x_row = x_ptr + row * x_stride
        out_row = out_ptr + row * out_stride
        column = tl.arange(0, BLOCK)
        if ONE_TILE:
            inside = column < columns
            x = tl.load(x_row + column, mask=inside, other=-float("inf")).to(COMPUTE)
            numerator = tl.exp(x - tl.max(x, axis=0))
            result = numerator / tl.sum(numerator, axis=0)
            tl.store(out_row + column, result.to(out_ptr.dtype.element_ty), mask=inside)
        else:
            # Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
            peak = tl.full((), -float("inf"), COMPUTE)
            total = tl.full((), 0.0, COMPUTE)
            for start in range(0, columns, BLOCK):
                x = tl.load(x_row + start + column, mask=start + column < columns, other=-float("inf")).to(COMPUTE)
                higher = tl.maximum(peak, tl.max(x, axis=0))
                total = total * tl.exp(peak - higher) + tl.sum(tl.exp(x - higher), axis=0)
                peak = higher
            for start in range(0, columns, BLOCK):
                inside = start + column < columns
                x = tl.load(x_row + start + column, mask=inside, other=0.0).to(COMPUTE)
                result = tl.exp(x - peak) / total
                tl.store(out_row + start + column, result.to(out_ptr.dtype.element_ty), mask=inside)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, name = (p["rows"], p["columns"]), p["dtype"]
    x = operands.matrix(rng, p["inputs"], shape, name, "padded" if p["padded"] else "rows")
    out = inputs.empty(shape, name)
    arguments = {
        "x_ptr": x, "out_ptr": out, "rows": p["rows"], "columns": p["columns"],
        "x_stride": operands.strides(x)[0], "out_stride": operands.strides(out)[0],
    }
    constexprs = {
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "ONE_TILE": p["columns"] <= p["block"],
        "BLOCK": min(p["block"], tilefw.next_power_of_2(p["columns"])),
    }
    grid = (max(1, min(p["rows"], p["programs"])), 1, 1)
    return Launch(arguments, constexprs, grid, ("out_ptr",), {"num_warps": p["num_warps"], "num_stages": p["num_stages"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = operands.values(launch.buffer("x_ptr"))
    # The differences are correctly rounded in the kernel's own precision; from there on its bound covers float64.
    powers = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.float64))
    return {"out_ptr": powers / powers.sum(axis=1, keepdims=True)}


SPEC = KernelSpec("softmax", softmax, _prepare, _expected)
