"""A box of an array in global memory, as a copy engine is told of it, and where its elements lie in shared memory.

The array has up to five dimensions, the innermost first: `sizes` of them, and `strides` in bytes of all but the innermost, whose
elements lie side by side. A box takes `extents` of them from the coordinates on, every `steps`-th element. In shared memory its
elements lie side by side, the innermost fastest, and the address bits from 4 on are exclusive-ored with those from 7 on, as many of
them as `swizzle` says. A box with `pixels` is a list of pixels instead, each with as many channels as the innermost extent says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.sim.algebra.pixels import PixelList, PixelShape, listed
from tilefw.sim.floats import Array

Value = Any


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """`base` has 64 bits, as strides do; all else 32. `element_bytes`, `swizzle` (0 to 3 bits) and `fill` (0: zeros, 1: ones in
    every bit but the sign) are values too: they stand in a descriptor in memory."""

    base: Value
    sizes: Sequence[Value]
    strides: Sequence[Value]
    extents: Sequence[Value]
    steps: Sequence[Value]
    element_bytes: Value
    swizzle: Value
    fill: Value
    pixels: PixelList | None = None

    def mapped(self, function: Callable[[Value], Value]) -> Box:
        """The same with each value changed."""

        def each(values: Sequence[Value]) -> tuple[Value, ...]:
            return tuple(map(function, values))

        element_bytes, swizzle, fill = each((self.element_bytes, self.swizzle, self.fill))
        pixels = self.pixels.mapped(function) if self.pixels else None
        return Box(
            function(self.base), each(self.sizes), each(self.strides), each(self.extents), each(self.steps), element_bytes, swizzle,
            fill, pixels,
        )

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that it is told by."""
        return (
            self.base, *self.sizes, *self.strides, *self.extents, *self.steps, self.element_bytes, self.swizzle, self.fill,
            *(self.pixels.values if self.pixels else ()),
        )


@dataclass(frozen=True, slots=True)
class BoxShape:
    """What all rows of one copy have in common."""

    extents: tuple[int, ...]
    steps: tuple[int, ...]
    element_bytes: int
    swizzle: int
    fill: int
    pixels: PixelShape | None = None

    @property
    def bytes(self) -> int:
        return int(np.prod(self.counts)) * self.element_bytes

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements of the box along each dimension; of a list of pixels, channels and pixels."""
        if self.pixels is not None:
            return self.extents[0], self.pixels.count
        return tuple(-(-extent // step) for extent, step in zip(self.extents, self.steps, strict=True))


@dataclass(frozen=True, slots=True)
class BoxPlaces:
    """Of each row: byte offsets from the array's base and from the shared address, in elements of `unit` bytes; `inside` marks
    those of the array (None: all)."""

    unit: int
    array: Array
    shared: Array
    inside: Array | None


def places(shape: BoxShape, sizes: Array, strides: Array, starts: Array, address: Array, single: bool) -> BoxPlaces:
    """Where the elements of boxes lie. `sizes`, `strides` (of all dimensions, the innermost's its element's bytes) and `starts` are
    rows of int64 a dimension, `address` the shared addresses, whose bits the swizzle reads. `single`: elements stay one by one."""
    counts, unit = shape.counts, shape.element_bytes
    row_bytes = counts[0] * unit
    wide = not single and shape.steps[0] == 1 and row_bytes % 16 == 0 and _whole(shape, sizes, starts)
    if wide:
        counts, unit = (row_bytes // 16, *counts[1:]), 16
    grids = np.meshgrid(*(np.arange(n) for n in reversed(counts)), indexing="ij")
    along = [grid.reshape(-1) for grid in reversed(grids)]
    steps = (16 // shape.element_bytes if wide else shape.steps[0], *shape.steps[1:])
    if shape.pixels is None:
        coordinates = [starts[:, axis, None] + number * steps[axis] for axis, number in enumerate(along)]
    else:
        pixels = [each[:, along[1]] for each in listed(shape.pixels, steps, sizes, starts)]
        coordinates = [starts[:, 0, None] + along[0] * steps[0], *pixels]
    array = np.zeros((len(starts), len(along[0])), dtype=np.int64)
    inside = np.ones(array.shape, dtype=np.bool_)
    for axis, at in enumerate(coordinates):
        inside &= (at >= 0) & (at < sizes[:, axis, None])
        array += at * strides[:, axis, None]
    order = np.arange(len(along[0])) * unit
    return BoxPlaces(unit, array, swizzled(address[:, None] + order, shape.swizzle), None if inside.all() else inside)


def _whole(shape: BoxShape, sizes: Array, starts: Array) -> bool:
    """Whether pieces of 16 bytes lie in the array as a whole or not at all."""
    each = 16 // shape.element_bytes
    first, last = starts[:, 0], starts[:, 0] + shape.extents[0]
    size = sizes[:, 0]
    return bool((((first >= 0) | (first % each == 0)) & ((last <= size) | ((size - first) % each == 0))).all())


def swizzled(address: Array, bits: int) -> Array:
    """Shared addresses with their bits from 4 on exclusive-ored with `bits` bits from 7 on."""
    return address ^ (((address >> 7) & ((1 << bits) - 1)) << 4)
