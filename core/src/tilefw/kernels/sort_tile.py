"""One tile whose rows are sorted, merged of two sorted halves, or cut to their largest elements; in both directions."""

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
def in_order(x, OPERATION: tl.constexpr, DESCENDING: tl.constexpr, COUNT: tl.constexpr):
    if OPERATION == "sort":
        result = tl.sort(x, descending=DESCENDING)
    elif OPERATION == "merge":
        result = tl.bitonic_merge(x, descending=DESCENDING)
    else:
        result = tl.topk(x, COUNT, descending=DESCENDING)
    return result


@tilefw.jit
def sort_tile(
    x_ptr, out_ptr, OPERATION: tl.constexpr, DESCENDING: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, COUNT: tl.constexpr,
):
    row = tl.arange(0, ROWS)[:, None]
    x = tl.load(x_ptr + row * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    tl.store(out_ptr + row * COUNT + tl.arange(0, COUNT)[None, :], in_order(x, OPERATION, DESCENDING, COUNT))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    name, rows, columns = p["dtype"], p["rows"], p["columns"]
    count = p["k"] if p["operation"] == "topk" else columns
    if count > columns:
        raise UsageError(f"sort_tile: a row of {columns} elements has no {count} largest", code="TFW0942")
    x = inputs.draw(rng, p["inputs"], (rows, columns), name)
    arguments = {
        "x_ptr": _bitonic(x) if p["operation"] == "merge" else x,
        "out_ptr": inputs.empty((rows, count), _result(name, count, columns)),
    }
    constexprs = {
        "OPERATION": p["operation"], "DESCENDING": p["descending"], "ROWS": rows, "COLUMNS": columns, "COUNT": count,
    }
    return Launch(arguments, constexprs, (1, 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _bitonic(x: Buffer) -> Buffer:
    """Rows that rise in their first half and fall in their second."""
    decoded, half = formats.decode(x.array, x.dtype), x.array.shape[1] // 2
    rising, falling = np.argsort(decoded[:, :half], axis=1), np.argsort(decoded[:, half:], axis=1)[:, ::-1] + half
    return Buffer(np.take_along_axis(x.array, np.concatenate([rising, falling], axis=1), axis=1), x.dtype)


def _result(name: str, count: int, columns: int) -> str:
    """Elements that a maximum chose have 32 bits at least (Triton's rule)."""
    kind = dtype(name)
    if kind.bits >= 32 or 1 < count == columns:
        return name
    return "fp32" if kind.is_float else "int32"


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    rows = np.sort(formats.decode(launch.buffer("x_ptr").array, p["dtype"]), axis=1)
    return {"out_ptr": (rows[:, ::-1] if p["descending"] else rows)[:, : launch.constexprs["COUNT"]]}


SPEC = KernelSpec("sort_tile", sort_tile, _prepare, _expected)
