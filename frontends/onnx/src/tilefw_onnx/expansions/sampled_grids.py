"""GridSample written out: the places of a grid in elements, then the weighted sum of the corners around each.

Places beyond the edge are drawn to it or reflected at it before, or their corners count nothing (`onnx/defs/tensor/defs.cc`). The
sixteen neighbours of the cubic mode are drawn in or reflected as well, each for itself, as ONNX Runtime has it.
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

_NEAREST, _LINEAR, _CUBIC = ("nearest",), ("linear", "bilinear"), ("cubic", "bicubic")
_SHARP = -0.75  # Keys' parameter of the cubic weights, "cubic convolution interpolation", IEEE TASSP 29 (1981)


def written_out(w: NodeWriter) -> None:
    """The nodes of a GridSample. Raises UnsupportedError TFW0992 for the cubic mode of volumes, for sums of what are no floats."""
    mode, outside = w.node.attributes["mode"], w.node.attributes["padding_mode"]
    rank = len(w.node.input(0).shape) - 2
    if mode not in (*_NEAREST, *_LINEAR, *_CUBIC) or (mode in _CUBIC and rank != 2):
        raise UnsupportedError(f"GridSample of mode {mode} over {rank} dims", code="TFW0992", note="cubic is served over 2")
    if mode not in _NEAREST and not dtype(w.node.input(0).dtype).is_float:
        raise UnsupportedError(f"GridSample of mode {mode} on {w.node.input(0).dtype}", code="TFW0992")
    (batch, channels, *space), (_, *asked, _) = w.node.input(0).shape, w.node.input(1).shape
    pixels = w("Reshape", w.input(0), w.integers(batch, channels, prod(space)))
    grid = w("Reshape", w.input(1), w.integers(batch, prod(asked), len(space)))
    places = [_place(w, grid, dim, extent, len(space)) for dim, extent in enumerate(space)]
    if mode in _NEAREST:
        found = _corner(w, pixels, [w("Round", place) for place in places], space, channels, outside)
    elif mode in _CUBIC:
        found = _cubic(w, pixels, places, space, channels)
    else:
        lows = [w("Floor", place) for place in places]
        parts = []
        for corner in product((0, 1), repeat=len(space)):
            at = [w("Add", low, w.number(1, 1)) if far else low for low, far in zip(lows, corner, strict=True)]
            weight = _weight(w, places, lows, corner)
            parts.append(w("Mul", _corner(w, pixels, at, space, channels, outside), weight))
        found = _summed(w, parts)
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
    drawn = outside == "border" and w.node.attributes["mode"] not in _CUBIC  # of which each neighbour is drawn in
    return w("Clip", place, w.number(0, 1), w.number(extent - 1, 1)) if drawn else place


def _cubic(w: NodeWriter, pixels: str, places: Sequence[str], space: Sequence[int], channels: int) -> str:
    """The weighted sum of the four times four elements around each point."""
    outside = w.node.attributes["padding_mode"]
    near: list[list[str]] = []  # along each dim the four places
    counts: list[list[str]] = []  # and what they count, (batch, points)
    for place, extent in zip(places, space, strict=True):
        low = w("Floor", place)
        at = [w("Add", low, w.number(step, 1)) for step in (-1, 0, 1, 2)]
        counts.append([_cubic_weight(w, w("Abs", w("Sub", place, one)), far=step in (0, 3)) for step, one in enumerate(at)])
        edges = (0.0, extent - 1.0) if w.node.attributes["align_corners"] else (-0.5, extent - 0.5)
        near.append([_reflected(w, one, *edges) for one in at] if outside == "reflection" else at)
    parts = []
    for one, other in product(range(4), repeat=2):
        weight = w("Unsqueeze", w("Mul", counts[0][one], counts[1][other]), w.integers(1))
        parts.append(w("Mul", _corner(w, pixels, [near[0][one], near[1][other]], space, channels, outside), weight))
    return _summed(w, parts)


def _cubic_weight(w: NodeWriter, distance: str, far: bool) -> str:
    """What an element counts whose middle is so far from the point, more than one element if `far`."""
    factors = (_SHARP, -5 * _SHARP, 8 * _SHARP, -4 * _SHARP) if far else (_SHARP + 2, -(_SHARP + 3), 0.0, 1.0)
    found = w("Mul", distance, w.number(factors[0], 1))
    for factor in factors[1:3]:
        found = w("Mul", w("Add", found, w.number(factor, 1)), distance)
    return w("Add", found, w.number(factors[3], 1))


def _summed(w: NodeWriter, parts: Sequence[str]) -> str:
    found = parts[0]
    for part in parts[1:]:
        found = w("Add", found, part)
    return found


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
