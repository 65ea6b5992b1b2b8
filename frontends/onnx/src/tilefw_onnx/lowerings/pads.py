"""Operators that give a larger or a finer array: Pad and Resize, by tables of which elements an output's coordinate is made of.

Tables are computed when the model is read, in 64 bits; no kernel rounds a coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from tilefw.api.dtypes import dtype
from tilefw.api.errors import UnsupportedError
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import axis_of, contiguous
from tilefw_onnx.lowerings.rows import typed
from tilefw_onnx.lowerings.text import KernelText, cover

_BLOCK = 1024
_MOST_TAPS = 64  # of one output: each is a load in the text
_CONSTANT_MODES: Mapping[str, str] = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@dataclass(frozen=True, slots=True)
class AxisTable:
    """For each coordinate of an output along one axis the `places` in the input, a row of taps, with their `weights`; without
    weights each output is one element."""

    places: np.ndarray
    weights: np.ndarray | None = None

    @property
    def taps(self) -> int:
        return self.places.shape[1]


# -- padding


def pad(node: Node) -> KernelText:
    """The constant around, or what is there already: the edge, the mirror image, or the other side."""
    source, axes = node.input(0), node.optional(3)
    rank, told = len(source.shape), node.input(1).integers()
    named = axes.integers() if axes is not None else tuple(range(rank))
    before, after = [0] * rank, [0] * rank
    for number, axis in enumerate(named):
        before[axis_of(axis, rank)], after[axis_of(axis, rank)] = told[number], told[number + len(named)]
    if node.attributes["mode"] == "constant":
        return _with_constant(node, before)
    mode = _CONSTANT_MODES[node.attributes["mode"]]
    tables = {
        axis: AxisTable(_extended(source.shape[axis], before[axis], after[axis], mode)[:, None])
        for axis in range(rank) if before[axis] or after[axis]
    }
    return _taken(node, tables)


def _extended(extent: int, before: int, after: int, mode: str) -> np.ndarray:
    """Which element stands where; a negative number of elements is taken away."""
    kept = np.arange(max(0, -before), extent - max(0, -after))
    return np.pad(kept, (max(0, before), max(0, after)), mode)  # type: ignore[call-overload]


def _with_constant(node: Node, before: Sequence[int]) -> KernelText:
    source, out, filler = node.input(0), node.output(0), node.optional(2)
    text = KernelText(node)
    cover(text, out.size, _BLOCK)
    seen, terms = ["inside"], ["0 * index"]
    strides = [stride for _, stride in contiguous(source.shape).dims]
    for axis, coordinate in enumerate(_coordinates(out)):
        text.add(f"at{axis} = {coordinate} - {before[axis]}")
        seen.append(f"(at{axis} >= 0) & (at{axis} < {source.shape[axis]})")
        terms.append(f"at{axis} * {strides[axis]}")
    loaded = text.loaded(source, " + ".join(terms), "seen")
    text.add(f"seen = {' & '.join(seen)}", f"moved = {loaded}")
    zero = "False" if out.dtype == "int1" else "0"
    text.add(f"filler = {zero if filler is None else text.loaded(filler, '0')}", "moved = tl.where(seen, moved, filler)")
    text.store(out, "index", typed(text, out, "moved"), "inside")
    return text


# -- another size


def resize(node: Node) -> KernelText:
    """Each output is the nearest input, or a weighted sum of those around its place, axis by axis."""
    source, out = node.input(0), node.output(0)
    if node.attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
        raise UnsupportedError("Resize of a region (tf_crop_and_resize)", code="TFW0992")
    if node.attributes["mode"] != "nearest" and not dtype(source.dtype).is_float:
        raise UnsupportedError(f"Resize that interpolates {source.dtype}", code="TFW0992")
    tables = {
        axis: _resized(node, source.shape[axis], out.shape[axis], scale)
        for axis, scale in _scales(node).items() if scale != 1 or source.shape[axis] != out.shape[axis]
    }
    if prod(table.taps for table in tables.values()) > _MOST_TAPS:
        raise UnsupportedError(f"Resize by more than {_MOST_TAPS} elements for each", code="TFW0992")
    return _taken(node, tables)


def _scales(node: Node) -> Mapping[int, float]:
    """Output over input of each axis that is named: as given, or from the sizes that are wanted."""
    shape, scales, sizes = node.input(0).shape, node.optional(2), node.optional(3)
    axes = [axis_of(axis, len(shape)) for axis in node.attributes.get("axes") or range(len(shape))]
    if scales is not None and scales.size:
        return dict(zip(axes, map(float, scales.values.reshape(-1)), strict=True))
    assert sizes is not None
    wanted = {axis: size / shape[axis] for axis, size in zip(axes, sizes.integers(), strict=True)}
    policy = node.attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return wanted
    one = (min if policy == "not_larger" else max)(wanted.values())
    return dict.fromkeys(axes, one)


def _resized(node: Node, extent: int, out: int, scale: float) -> AxisTable:
    where = _origins(node.attributes["coordinate_transformation_mode"], extent, out, scale)
    if node.attributes["mode"] == "nearest":
        asked = node.attributes["nearest_mode"]
        nearest = _NEAREST[("ceil" if scale < 1 else "floor") if asked == BY_SCALE else asked](where)
        return AxisTable(np.clip(nearest, 0, extent - 1).astype(np.int64)[:, None])
    reach = {"linear": 1, "cubic": 2}[node.attributes["mode"]]
    stretch = min(scale, 1.0) if node.attributes.get("antialias", 0) else 1.0
    first = int(np.floor(-reach / stretch)) + 1
    floor = np.floor(where)
    offsets = np.arange(first, 2 - first)
    places = floor[:, None] + offsets[None, :]
    away = np.abs(places - where[:, None]) * stretch
    weights = np.clip(1 - away, 0, None) if reach == 1 else _cubic(away, node.attributes["cubic_coeff_a"])
    if node.attributes["exclude_outside"]:
        weights = np.where((places < 0) | (places >= extent), 0.0, weights)
    used = np.flatnonzero(weights.any(axis=0))
    weights = weights[:, used] / weights[:, used].sum(axis=1, keepdims=True)
    return AxisTable(np.clip(places[:, used], 0, extent - 1).astype(np.int64), weights)


BY_SCALE = "by_scale"  # the `nearest_mode` of models before opset 11, which could not name one
_NEAREST: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5), "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor, "ceil": np.ceil,
}


def _origins(mode: str, extent: int, out: int, scale: float) -> np.ndarray:
    """The place in the input of each coordinate of the output (ONNX's operator Resize, `coordinate_transformation_mode`)."""
    x = np.arange(out, dtype=np.float64)
    half = (x + 0.5) / scale - 0.5
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and out > 1):
        return half
    if mode == "half_pixel_symmetric":
        return extent / 2 * (1 - out / (scale * extent)) + half
    if mode == "asymmetric":
        return x / scale
    if mode == "align_corners" and out > 1:
        return x * (extent - 1) / (scale * extent - 1)  # where the scale does not give a whole size, not the output's
    return np.zeros(out)


def _cubic(away: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel by the distance (IEEE Transactions on Acoustics, Speech, and Signal Processing 29-6, 1981)."""
    near = ((a + 2) * away - (a + 3)) * away**2 + 1
    far = ((away - 5) * away + 8) * away * a - 4 * a
    return np.where(away <= 1, near, np.where(away < 2, far, 0.0))


# -- what both are made of


def _taken(node: Node, tables: Mapping[int, AxisTable]) -> KernelText:
    """Each output by the tables of its axes; axes without one stay."""
    source, out = node.input(0), node.output(0)
    text = KernelText(node)
    cover(text, out.size, _BLOCK)
    strides = [stride for _, stride in contiguous(source.shape).dims]
    kept = " + ".join(
        f"({coordinate}) * {strides[axis]}" for axis, coordinate in enumerate(_coordinates(out)) if axis not in tables
    )
    text.add(f"kept = {kept or '0 * index'}")
    parts = [_loads(text, axis, table, _coordinates(out)[axis], strides[axis]) for axis, table in tables.items()]
    weighted = any(table.weights is not None for table in tables.values())
    total = "tl.float64" if source.dtype == "fp64" else "tl.float32"
    for number, taps in enumerate(product(*parts)):
        place = " + ".join(["kept", *(where for where, _ in taps)])
        value = text.loaded(source, place, "inside")
        weights = " * ".join(weight for _, weight in taps if weight)
        value = f"{value}.to({total}) * {weights}" if weights else value
        text.add(f"result = {value}" if number == 0 else f"result += {value}")
    text.store(out, "index", typed(text, out, "result") if weighted else "result", "inside")
    return text


def _loads(text: KernelText, axis: int, table: AxisTable, coordinate: str, stride: int) -> list[tuple[str, str]]:
    """Load a table's row for each output: the offset and the weight of each tap, as variables."""
    places = constant(f"places{axis}", "INT32", table.places.astype(np.int32))
    weights = None
    if table.weights is not None:
        wide = text.node.input(0).dtype == "fp64"
        weights = constant(f"weights{axis}", *(("DOUBLE", table.weights) if wide else ("FLOAT", table.weights.astype(np.float32))))
    made: list[tuple[str, str]] = []
    text.add(f"row{axis} = ({coordinate}) * {table.taps}")
    for tap in range(table.taps):
        text.add(f"place{axis}_{tap} = {text.loaded(places, f'row{axis} + {tap}', 'inside', '0')} * {stride}")
        if weights is not None:
            text.add(f"weight{axis}_{tap} = {text.loaded(weights, f'row{axis} + {tap}', 'inside', '0.0')}")
        made.append((f"place{axis}_{tap}", f"weight{axis}_{tap}" if weights is not None else ""))
    return made


def constant(name: str, onnx_type: str, array: np.ndarray) -> NodeTensor:
    """Values that a kernel reads and the node has no input for: the reader makes a constant of them."""
    return NodeTensor(name, onnx_type, array.shape, array)


def _coordinates(tensor: NodeTensor) -> list[str]:
    """The coordinates of element `index`."""
    made: list[str] = []
    for number, (extent, stride) in enumerate(contiguous(tensor.shape).dims):
        text = "index" if stride == 1 else f"index // {stride}"
        made.append(f"({text})" if number == 0 else f"({text} % {extent})")
    return made


LOWERINGS: Mapping[str, Callable[[Node], KernelText]] = {"Pad": pad, "Resize": resize}
