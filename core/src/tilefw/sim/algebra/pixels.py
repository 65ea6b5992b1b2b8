"""The pixels of an image that a copy engine lists for a convolution (im2col): from one on, along the rows of a window of it.

The dimensions of an image are its channels, one to three in space, and the image's number, the innermost first. A list goes along
the innermost dimension of space first; at the window's end it goes on at the window's beginning of the next row, and so on to the
next image. What it lists is moved by the offsets of one tap of a filter: a pixel may so lie outside of the image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.sim.floats import Array

Value = Any


@dataclass(frozen=True, slots=True, eq=False)
class PixelList:
    """`count` pixels (32 bits) of a window: signed `lower` and `upper` corners (32 bits), each a distance from the first and the
    last pixel of the image, and the `offsets` of the tap (32 bits), for each dimension of space."""

    count: Value
    lower: Sequence[Value]
    upper: Sequence[Value]
    offsets: Sequence[Value]

    def mapped(self, function: Callable[[Value], Value]) -> PixelList:
        """The same with each value changed."""
        return PixelList(function(self.count), *(tuple(map(function, v)) for v in (self.lower, self.upper, self.offsets)))

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that it is told by."""
        return (self.count, *self.lower, *self.upper, *self.offsets)


@dataclass(frozen=True, slots=True)
class PixelShape:
    """A list's numbers."""

    count: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, numbers: Sequence[int]) -> PixelShape:
        """From the numbers in the order of `PixelList.values`, as unsigned words."""
        space = (len(numbers) - 1) // 3
        signed = [number - (1 << 32) if number >> 31 else number for number in numbers]
        return cls(signed[0], *(tuple(signed[1 + i * space : 1 + (i + 1) * space]) for i in range(3)))


def within(shape: PixelShape, sizes: Array, starts: Array) -> Array:
    """Whether each row's first pixel lies in the window; columns of `sizes` and `starts` are all dimensions."""
    space = slice(1, 1 + len(shape.lower))
    lower, upper = np.array(shape.lower), sizes[:, space] - 1 + np.array(shape.upper)
    return np.asarray(((starts[:, space] >= lower) & (starts[:, space] <= upper)).all(axis=1))


def listed(shape: PixelShape, steps: Sequence[int], sizes: Array, starts: Array) -> list[Array]:
    """Of each row its pixels' coordinates, by dimension but the channels: rows of `shape.count`."""
    number = np.broadcast_to(np.arange(shape.count), (len(starts), shape.count))
    found: list[Array] = []
    for axis, (lower, upper, offset) in enumerate(zip(shape.lower, shape.upper, shape.offsets, strict=True), 1):
        at, number = _along(number, starts[:, axis], lower, sizes[:, axis] - 1 + upper, steps[axis])
        found.append(at + offset)
    last = len(shape.lower) + 1
    return [*found, starts[:, last, None] + number * steps[last]]


def _along(number: Array, start: Array, lower: int, end: Array, step: int) -> tuple[Array, Array]:
    """The coordinates of the so many'th places from `start` on, and in which row from the first on they lie: all rows but the first
    begin at `lower`."""
    start, end = start[:, None], end[:, None]
    first, whole = (end - start) // step + 1, (end - lower) // step + 1
    later = number - first
    there = later < 0
    at = np.where(there, start + number * step, lower + later % whole * step)
    return at, np.where(there, 0, 1 + later // whole)
