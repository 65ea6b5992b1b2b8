"""Elements of one tile, picked along one axis by a tile of indices: every element type, shape, and type of indices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.kernels import formats, inputs
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters


@tilefw.jit
def gather_tile(
    x_ptr, index_ptr, out_ptr, AXIS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    PICKED_ROWS: tl.constexpr, PICKED_COLUMNS: tl.constexpr,
):
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    places = tl.arange(0, PICKED_ROWS)[:, None] * PICKED_COLUMNS + tl.arange(0, PICKED_COLUMNS)[None, :]
    tl.store(out_ptr + places, tl.gather(x, tl.load(index_ptr + places), AXIS))


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    shape, axis = (p["rows"], p["columns"]), int(p["axis"])
    picked = (p["count"], p["columns"]) if axis == 0 else (p["rows"], p["count"])
    indices = inputs.draw(rng, "uniform", picked, p["index"])
    if p["spread"] == "inside":
        most = min(shape[axis] - 1, np.iinfo(indices.array.dtype).max)
        indices = Buffer(rng.integers(0, most, picked, endpoint=True).astype(indices.array.dtype), p["index"])
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, p["dtype"]), "index_ptr": indices,
        "out_ptr": inputs.empty(picked, p["dtype"]),
    }
    constexprs = {"AXIS": axis, "ROWS": shape[0], "COLUMNS": shape[1], "PICKED_ROWS": picked[0], "PICKED_COLUMNS": picked[1]}
    return Launch(arguments, constexprs, (1, 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    x, axis = formats.decode(launch.buffer("x_ptr").array, p["dtype"]), launch.constexprs["AXIS"]
    indices = launch.buffer("index_ptr").array.astype(object) % x.shape[axis]
    return {"out_ptr": np.take_along_axis(x, indices.astype(np.int64), axis)}


SPEC = KernelSpec("gather_tile", gather_tile, _prepare, _expected)
