"""One scan of one tile of three dims: every kind, element type, axis, direction and shape that the language has."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.api.dtypes import dtype
from tilefw.kernels import formats, inputs, whole_tile
from tilefw.kernels.spec import Buffer, KernelSpec, Launch, Parameters
from tilefw.kernels.whole_tile import both, coordinates


@tilefw.jit
def larger(a, b):
    return tl.maximum(a, b)


@tilefw.jit
def smaller(a, b):
    return tl.minimum(a, b)


@tilefw.jit
def either(a, b):
    return a | b


@tilefw.jit
def differ(a, b):
    return a ^ b


@tilefw.jit
def latest(a, b):
    """The last element that is not zero: associative, and far from commutative."""
    return tl.where(b == 0, a, b)


@tilefw.jit
def then(scale_a, offset_a, scale_b, offset_b):
    """First x -> scale_a·x + offset_a, then the other map: a recurrence as a scan (Blelloch, "Prefix Sums and Their
    Applications", 1990)."""
    return scale_a * scale_b, offset_a * scale_b + offset_b


@tilefw.jit
def scanned(x, scale, OPERATION: tl.constexpr, COMBINE: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    if OPERATION == "sum":
        result = tl.cumsum(x, axis=AXIS, reverse=REVERSE)
    elif OPERATION == "product":
        result = tl.cumprod(x, axis=AXIS, reverse=REVERSE)
    elif OPERATION == "recurrence":
        _, result = tl.associative_scan((scale, x), AXIS, COMBINE, reverse=REVERSE)
    else:
        result = tl.associative_scan(x, AXIS, COMBINE, reverse=REVERSE)
    return result


@tilefw.jit
def scan_tile(
    x_ptr, scale_ptr, out_ptr, OPERATION: tl.constexpr, COMBINE: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr,
    LAYERS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    _, _, _, index = coordinates(LAYERS, ROWS, COLUMNS)
    result = scanned(tl.load(x_ptr + index), tl.load(scale_ptr + index), OPERATION, COMBINE, AXIS, REVERSE)
    tl.store(out_ptr + index, result)


# What combines two elements, or two pairs of them; sums and products have names of their own.
_COMBINE = {
    "max": larger, "min": smaller, "xor": differ, "or": either, "and": both, "latest": latest, "recurrence": then,
}


def _result(operation: str, name: str) -> str:
    """The element type of the result: integer sums and products have 32 bits at least (Triton's rule)."""
    kind = dtype(name)
    if kind.is_int and kind.bits < 32 and operation in ("sum", "product"):
        return "int32" if kind.is_signed else "uint32"
    return name


def _prepare(p: Parameters, rng: np.random.Generator) -> Launch:
    whole_tile.refuse_bits_of_floats("scan_tile", p)
    operation, name, shape = p["operation"], p["dtype"], whole_tile.shape(p)
    arguments = {
        "x_ptr": inputs.draw(rng, p["inputs"], shape, name),
        "scale_ptr": _scales(rng, shape, name),
        "out_ptr": inputs.empty(shape, _result(operation, name)),
    }
    constexprs = {
        "OPERATION": operation, "COMBINE": _COMBINE.get(operation), "AXIS": int(p["axis"]), "REVERSE": p["reverse"],
        **whole_tile.extents(p),
    }
    return Launch(arguments, constexprs, (1, 1, 1), ("out_ptr",), {"num_warps": p["num_warps"]})


def _scales(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Buffer:
    """Factors of the recurrence, of magnitude 1 at most, so that it does not run away."""
    if dtype(name).is_int:
        return inputs.draw(rng, "ints", shape, name)
    return Buffer(formats.store(rng.uniform(-1.0, 1.0, shape), name), name)


# Of a number and a NaN the extremes are the number.
_NUMPY = {
    "sum": np.add, "product": np.multiply, "max": np.fmax, "min": np.fmin, "xor": np.bitwise_xor, "or": np.bitwise_or,
    "and": np.bitwise_and,
}


def _expected(p: Parameters, launch: Launch) -> Mapping[str, np.ndarray]:
    out, axis = launch.buffer("out_ptr"), launch.constexprs["AXIS"]
    x, scale = (
        np.flip(decoded, axis) if p["reverse"] else decoded
        for decoded in (formats.decode(launch.buffer(name).array, p["dtype"]) for name in ("x_ptr", "scale_ptr"))
    )
    with np.errstate(all="ignore"):
        found = _prefixes(p["operation"], x, scale, axis)
    found = np.flip(found, axis) if p["reverse"] else found
    return {"out_ptr": formats.wrap(found, out.dtype)}


def _prefixes(operation: str, x: np.ndarray, scale: np.ndarray, axis: int) -> np.ndarray:
    if operation in _NUMPY:
        return _NUMPY[operation].accumulate(x, axis=axis)
    found = np.moveaxis(x.copy(), axis, 0)
    factors = np.moveaxis(scale, axis, 0)
    for i in range(1, len(found)):
        before, here = found[i - 1], found[i]
        found[i] = np.where(here == 0, before, here) if operation == "latest" else here + factors[i] * before
    return np.moveaxis(found, 0, axis)


SPEC = KernelSpec("scan_tile", scan_tile, _prepare, _expected)
