"""GridSample written out: the places of a grid in elements, then the weighted sum of the corners around each.

Places beyond the edge are drawn to it or reflected at it before, or their corners count nothing (`onnx/defs/tensor/defs.cc`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod

import numpy as np
import onnx

from tilefw.api.dtypes import dtype
from tilefw.api.errors import UnsupportedError
from tilefw_onnx.expansions.node_writer import NodeWriter

_NEAREST, _LINEAR = ("nearest",), ("linear", "bilinear")


def written_out(w: NodeWriter) -> None:
    """The nodes of a GridSample. Raises UnsupportedError TFW0992 for the cubic modes, and for sums of what are no floats."""
    mode, outside = w.node.attributes["mode"], w.node.attributes["padding_mode"]
    if mode not in (*_NEAREST, *_LINEAR):
        raise UnsupportedError(f"GridSample of mode {mode}", code="TFW0992", note="served are nearest and linear")
    if mode in _LINEAR and not dtype(w.node.input(0).dtype).is_float:
        raise UnsupportedError(f"GridSample of mode {mode} on {w.node.input(0).dtype}", code="TFW0992")
    (batch, channels, *space), (_, *asked, _) = w.node.input(0).shape, w.node.input(1).shape
    pixels = w("Reshape", w.input(0), w.integers(batch, channels, prod(space)))
    grid = w("Reshape", w.input(1), w.integers(batch, prod(asked), len(space)))
    places = [_place(w, grid, dim, extent, len(space)) for dim, extent in enumerate(space)]
    if mode in _NEAREST:
        found = _corner(w, pixels, [w("Round", place) for place in places], space, channels, outside)
    else:
        lows = [w("Floor", place) for place in places]
        parts = []
        for corner in product((0, 1), repeat=len(space)):
            at = [w("Add", low, w.number(1, 1)) if far else low for low, far in zip(lows, corner, strict=True)]
            weight = _weight(w, places, lows, corner)
            parts.append(w("Mul", _corner(w, pixels, at, space, channels, outside), weight))
        found = parts[0]
        for part in parts[1:]:
            found = w("Add", found, part)
    w("Reshape", found, w.integers(batch, channels, *asked), gives=w.output(0))


def _place(w: NodeWriter, grid: str, dim: int, extent: int, rank: int) -> str:
    """Where the points are along a dim of the image, in elements: (batch, points). The last coordinate is that of the first dim."""
    said = w("Squeeze", w.part(grid, 2, rank - 1 - dim, rank - dim), w.integers(2))
    over = w("Add", said, w.number(1, 1))
    corners, outside = bool(w.node.attributes["align_corners"]), w.node.attributes["padding_mode"]
    low, high = (0.0, extent - 1.0) if corners else (-0.5, extent - 0.5)
    if corners:
        place = w("Mul", over, w.number((extent - 1) / 2, 1))
    else:
        place = w("Sub", w("Mul", over, w.number(extent / 2, 1)), w.number(0.5, 1))
    if outside == "reflection":
        place = _reflected(w, place, low, high)
    return w("Clip", place, w.number(0, 1), w.number(extent - 1, 1)) if outside == "border" else place


def _reflected(w: NodeWriter, place: str, low: float, high: float) -> str:
    """Places back within the edges, as often as they are beyond one of them."""
    span = high - low
    if not span:
        return w("Mul", place, w.number(0, 1))
    far = w("Abs", w("Sub", place, w.number(low, 1)))
    rest = w("Sub", far, w("Mul", w("Floor", w("Div", far, w.number(2 * span, 1))), w.number(2 * span, 1)))
    return w("Add", w("Min", rest, w("Sub", w.number(2 * span, 1), rest)), w.number(low, 1))


def _weight(w: NodeWriter, places: Sequence[str], lows: Sequence[str], corner: Sequence[int]) -> str:
    """What a corner counts for each point: (batch, 1, points)."""
    weight = ""
    for place, low, far in zip(places, lows, corner, strict=True):
        share = w("Sub", place, low)
        share = share if far else w("Sub", w.number(1, 1), share)
        weight = w("Mul", weight, share) if weight else share
    return w("Unsqueeze", weight, w.integers(1))


def _corner(w: NodeWriter, pixels: str, at: Sequence[str], space: Sequence[int], channels: int, outside: str) -> str:
    """The elements at whole places: (batch, channels, points)."""
    index, within = "", ""
    for place, extent in zip(at, space, strict=True):
        near = w("Clip", place, w.number(0, 1), w.number(extent - 1, 1))
        number = w("Cast", near, to=onnx.TensorProto.INT64)
        index = w("Add", w("Mul", index, np.array(extent, np.int64)), number) if index else number
        inside = w("Equal", near, place)
        within = w("And", within, inside) if within else inside
    shape = w.node.input(1).shape
    spread = w("Expand", w("Unsqueeze", index, w.integers(1)), w.integers(shape[0], channels, prod(shape[1:-1])))
    found = w("GatherElements", pixels, spread, axis=2)
    if outside != "zeros":
        return found
    return w("Where", w("Unsqueeze", within, w.integers(1)), found, w.number(0))


EXPANSIONS: Mapping[str, Callable[[NodeWriter], None]] = {"GridSample": written_out}
