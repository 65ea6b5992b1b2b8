"""Mean and variance of rows in one pass (Welford, 1962): a running state in every element of a tile, then a reduction of triples.

The combination of two states is that of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
sample variances", 1979.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.integers import ceil_div
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import KernelSpec, Launch, Parameters


@tilefw.jit
def combine_states(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    """The state of both sets together: mean, sum of squared deviations, number of elements."""
    delta = mean_b - mean_a
    count = count_a + count_b
    part = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * part, m2_a + m2_b + delta * delta * count_a * part, count


@tilefw.jit
def welford(
    x_ptr, mean_ptr, variance_ptr, rows, columns, stride,
    COMPUTE: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    mean = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=COMPUTE)
    m2 = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=COMPUTE)
    count = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=COMPUTE)
    for start in range(0, columns, BLOCK_COLUMNS):
        column = start + tl.arange(0, BLOCK_COLUMNS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        x = tl.load(x_ptr + row[:, None] * stride + column[None, :], mask=inside, other=0.0).to(COMPUTE)
        longer = count + 1.0
        delta = x - mean
        moved = mean + delta / longer
        m2 = tl.where(inside, m2 + delta * (x - moved), m2)
        mean = tl.where(inside, moved, mean)
        count = tl.where(inside, longer, count)
    mean_all, m2_all, count_all = tl.reduce((mean, m2, count), 1, combine_states)
    tl.store(mean_ptr + row, mean_all, mask=row < rows)
    tl.store(variance_ptr + row, m2_all / count_all, mask=row < rows)


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, name = (p["rows"], p["columns"]), p["dtype"]
    computed = "fp64" if name == "fp64" else "fp32"
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "mean_ptr": inputs.empty(shape[:1], computed),
        "variance_ptr": inputs.empty(shape[:1], computed),
        "rows": p["rows"], "columns": p["columns"], "stride": p["columns"],
    }
    constexprs = {
        "COMPUTE": tl.float64 if name == "fp64" else tl.float32,
        "BLOCK_ROWS": p["block_rows"],
        "BLOCK_COLUMNS": min(p["block_columns"], tilefw.next_power_of_2(p["columns"])),
    }
    grid = (max(1, ceil_div(p["rows"], p["block_rows"])), 1, 1)
    return Launch(arguments, constexprs, grid, ("mean_ptr", "variance_ptr"), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x = operands.values(launch.buffer("x_ptr")).astype(np.float64)
    return {"mean_ptr": x.mean(axis=1), "variance_ptr": x.var(axis=1)}


SPEC = KernelSpec("welford", welford, _prepare, _expected)
