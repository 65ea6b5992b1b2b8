"""out = a @ x for a sparse matrix in rows (CSR): each row's part of the arrays is loaded, and x is gathered."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import inputs, operands
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def sparse_matvec(starts_ptr, columns_ptr, values_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    end = tl.load(starts_ptr + row + 1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(tl.load(starts_ptr + row), end, BLOCK):
        place = first + tl.arange(0, BLOCK)
        inside = place < end
        column = tl.load(columns_ptr + place, mask=inside, other=0)
        value = tl.load(values_ptr + place, mask=inside, other=0).to(tl.float32)
        total += value * tl.load(x_ptr + column, mask=inside, other=0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    rows, columns, name = p["rows"], p["columns"], p["dtype"]
    present = rng.random((rows, columns)) < rng.choice([0.0, 0.1, 0.6, 1.0], (rows, 1))
    starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    arguments = {
        "starts_ptr": Buffer(starts.astype(np.int32), "int32"),
        "columns_ptr": Buffer(np.nonzero(present)[1].astype(np.int32), "int32"),
        "values_ptr": inputs.draw(rng, p["inputs"], (int(starts[-1]),), name),
        "x_ptr": inputs.draw(rng, "normal" if p["inputs"] == "rare" else p["inputs"], (columns,), name),
        "out_ptr": inputs.empty((rows,), "fp32"),
    }
    keywords = {"num_warps": p["num_warps"], "num_stages": p["num_stages"]}
    return Launch(arguments, {"BLOCK": p["block"]}, (rows, 1, 1), ("out_ptr",), keywords)


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    starts, columns = (launch.buffer(name).array for name in ("starts_ptr", "columns_ptr"))
    values, x = (operands.values(launch.buffer(name)).astype(np.float32) for name in ("values_ptr", "x_ptr"))
    products = values * x[columns]
    sums = [operands.lanewise_sum(products[start:end], p["block"]) if end > start else 0.0 for start, end in pairwise(starts)]
    return {"out_ptr": np.array(sums)}


SPEC = KernelSpec("sparse_matvec", sparse_matvec, _prepare, _expected)
