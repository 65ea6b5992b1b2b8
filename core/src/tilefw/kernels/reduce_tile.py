"""One reduction of one tile of three dims: every kind, element type, axis and shape that the language has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.api.errors import UsageError
from tilefw.kernels import formats, inputs, whole_tile
from tilefw.kernels.spec import KernelSpec, Launch, Parameters
from tilefw.kernels.whole_tile import both, coordinates

_INDICES = ("argmax", "argmin")


@tilefw.jit
def multiply(a, b):
    return a * b


@tilefw.jit
def further(near, near_index, far, far_index):
    """The pair of the larger magnitude, and of the lower index among equals: no row of any table, so a general combination."""
    keep = (tl.abs(near) > tl.abs(far)) | ((tl.abs(near) == tl.abs(far)) & (near_index < far_index))
    return tl.where(keep, near, far), tl.where(keep, near_index, far_index)


@tilefw.jit
def reduced(x, index, OPERATION: tl.constexpr, AXIS: tl.constexpr, KEEP_DIMS: tl.constexpr):
    if OPERATION == "sum":
        result = tl.sum(x, axis=AXIS, keep_dims=KEEP_DIMS)
    elif OPERATION == "max":
        result = tl.max(x, axis=AXIS, keep_dims=KEEP_DIMS)
    elif OPERATION == "min":
        result = tl.min(x, axis=AXIS, keep_dims=KEEP_DIMS)
    elif OPERATION == "argmax":
        result = tl.argmax(x, axis=AXIS, keep_dims=KEEP_DIMS)
    elif OPERATION == "argmin":
        result = tl.argmin(x, axis=AXIS, keep_dims=KEEP_DIMS)
    elif OPERATION == "xor":
        result = tl.xor_sum(x, axis=AXIS, keep_dims=KEEP_DIMS)
    elif OPERATION == "or":
        result = tl.reduce_or(x, axis=AXIS, keep_dims=KEEP_DIMS)
    elif OPERATION == "and":
        result = tl.reduce(x, AXIS, both, keep_dims=KEEP_DIMS)
    elif OPERATION == "product":
        result = tl.reduce(x, AXIS, multiply, keep_dims=KEEP_DIMS)
    else:
        result, _ = tl.reduce((x, index), AXIS, further, keep_dims=KEEP_DIMS)
    return result


@tilefw.jit
def reduce_tile(
    x_ptr, out_ptr, OPERATION: tl.constexpr, AXIS: tl.constexpr, KEEP_DIMS: tl.constexpr,
    LAYERS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    layer, row, column, index = coordinates(LAYERS, ROWS, COLUMNS)
    result = reduced(tl.load(x_ptr + index), index, OPERATION, AXIS, KEEP_DIMS)
    if AXIS is None:
        tl.store(out_ptr, result)
    else:
        if not KEEP_DIMS:
            result = tl.expand_dims(result, AXIS)
        if AXIS == 0:
            places = row * COLUMNS + column
        elif AXIS == 1:
            places = layer * COLUMNS + column
        else:
            places = layer * ROWS + row
        tl.store(out_ptr + places, result)


def _result(operation: str, name: str) -> str:
    """The element type of the result: indices are 32 bits, and integer sums and extrema at least as wide (Triton's rule)."""
    if operation in _INDICES:
        return "int32"
    kind = dtype(name)
    if kind.is_int and kind.bits < 32 and operation in ("sum", "max", "min"):
        return "int32" if kind.is_signed or operation != "sum" else "uint32"
    return name


def _refuse_odd_requests(p: Parameters) -> None:
    whole_tile.refuse_bits_of_floats("reduce_tile", p)
    operation = p["operation"]
    if p["axis"] == "all" and (operation in (*_INDICES, "farthest") or p["keep_dims"]):
        raise UsageError(
            f"reduce_tile: {operation} over all axes", code="TFW0942", note="indices and kept dims are those of one axis",
        )


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    _refuse_odd_requests(p)
    operation, name = p["operation"], p["dtype"]
    axis = None if p["axis"] == "all" else int(p["axis"])
    shape = whole_tile.shape(p)
    left = tuple(extent for dim, extent in enumerate(shape) if dim != axis) if axis is not None else (1,)
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "out_ptr": inputs.empty(left, _result(operation, name)),
    }
    constexprs = {"OPERATION": operation, "AXIS": axis, "KEEP_DIMS": p["keep_dims"], **whole_tile.extents(p)}
    return Launch(arguments, constexprs, (1, 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _farthest(x: np.ndarray, axis: Any) -> np.ndarray:
    return np.take_along_axis(x, np.expand_dims(np.abs(x).argmax(axis=axis), axis), axis).squeeze(axis)


# Of a number and a NaN the extrema are the number.
_NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "sum": np.sum, "product": np.prod, "max": np.fmax.reduce, "min": np.fmin.reduce, "argmax": np.argmax, "argmin": np.argmin,
    "xor": np.bitwise_xor.reduce, "or": np.bitwise_or.reduce, "and": np.bitwise_and.reduce, "farthest": _farthest,
}


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    out = launch.buffer("out_ptr")
    x = formats.decode(launch.buffer("x_ptr").array, p["dtype"])
    with np.errstate(over="ignore"):
        found = np.asarray(_NUMPY[p["operation"]](x, axis=launch.constexprs["AXIS"])).reshape(out.array.shape)
    return {"out_ptr": formats.wrap(found, out.dtype)}


SPEC = KernelSpec("reduce_tile", reduce_tile, _prepare, _expected)
