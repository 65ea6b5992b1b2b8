"""Views of arrays: which vectors hold a value, the number of a vector as a sum over axes of time and chunks of lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.arrange.access import AccessTerm
from tilefw_spatial.arrange.reindexing import AxisIndex, over
from tilefw_spatial.graph import Axis
from tilefw_spatial.stream_program import AccessPattern, Array


@dataclass(frozen=True, slots=True, eq=False)
class ArrayView:
    """Vector `start + chunk · (number of the chunk) + Σ terms` of `array` holds a value's elements at given indices in time."""

    array: Array
    chunk: int
    terms: tuple[AccessTerm, ...]
    start: int = 0

    def renamed(self, reindexing: Mapping[Axis, AxisIndex]) -> ArrayView:
        """The same vectors by other axes."""
        return ArrayView(self.array, self.chunk, tuple(term.renamed(reindexing) for term in self.terms), self.start)


def stepped(axis: Axis, stride: int) -> AccessTerm:
    """A term of one axis in even steps."""
    return AccessTerm((axis,), np.arange(axis.extent, dtype=np.int64) * stride)


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """One loop of a stream operation: axes flattened, outermost first, of which the points `begin` to `end` are run. The loop over
    the vectors of one point in time is over an axis too, its `chunk`."""

    axes: tuple[Axis, ...]
    begin: int
    end: int

    @property
    def points(self) -> int:
        return self.end - self.begin


def whole(*axes: Axis) -> Loop:
    """A loop over all of its axes."""
    return Loop(axes, 0, prod(axis.extent for axis in axes))


def vectors(
    view: ArrayView, chunk: Axis, loops: tuple[Loop, ...], fixed: Mapping[Axis, int],
) -> tuple[int, list[NDArray[np.int64]], NDArray[np.int64] | None]:
    """The vector's number over the loops: a start, what each loop adds, and the rest over all of them (None: nothing)."""
    start, adds, rest = view.start, [np.zeros(loop.points, dtype=np.int64) for loop in loops], None
    for term in (*view.terms, stepped(chunk, view.chunk)):
        free = [axis for axis in term.axes if axis not in fixed]
        offsets = np.asarray(term.offsets)[tuple(fixed.get(axis, slice(None)) for axis in term.axes)]
        if not free:
            start += int(offsets)
            continue
        owners = {next(n for n, loop in enumerate(loops) if axis in loop.axes) for axis in free}
        if len(owners) == 1:
            owner = owners.pop()
            adds[owner] = adds[owner] + _along(offsets, free, loops[owner])
        else:
            rest = _across(offsets, free, loops) + (0 if rest is None else rest)
    return start, adds, rest


def _along(offsets: NDArray[np.int64], free: list[Axis], loop: Loop) -> NDArray[np.int64]:
    """Offsets over some axes of one loop, at each of its points."""
    shape = [axis.extent for axis in loop.axes]
    spread = over(tuple(free), offsets, loop.axes)
    return np.broadcast_to(spread, shape).reshape(-1)[loop.begin : loop.end]


def _across(offsets: NDArray[np.int64], free: list[Axis], loops: tuple[Loop, ...]) -> NDArray[np.int64]:
    """Offsets over axes of several loops, at each point of all."""
    grids: list[NDArray[np.int64]] = []
    for axis in free:
        number = next(n for n, loop in enumerate(loops) if axis in loop.axes)
        loop = loops[number]
        own = _along(np.arange(axis.extent), [axis], loop)
        shape = [1] * len(loops)
        shape[number] = loop.points
        grids.append(own.reshape(shape))
    return np.broadcast_to(offsets[tuple(grids)], [loop.points for loop in loops])


def access_pattern(view: ArrayView, chunk: Axis, loops: tuple[Loop, ...], fixed: Mapping[Axis, int]) -> AccessPattern:
    """The vectors of a value in the order of the loops."""
    start, adds, rest = vectors(view, chunk, loops, fixed)
    strides = [_stride(add) for add in adds]
    if rest is None and None not in strides:
        return AccessPattern(view.array, start + sum(int(add[0]) for add in adds), tuple(s for s in strides if s is not None))
    total = np.full([loop.points for loop in loops], start, dtype=np.int64) + (0 if rest is None else rest)
    for number, add in enumerate(adds):
        total = total + add.reshape([-1 if n == number else 1 for n in range(len(loops))])
    return AccessPattern(view.array, 0, (), np.ascontiguousarray(total.reshape(-1)))


def _stride(add: NDArray[np.int64]) -> int | None:
    """The even step of a loop's offsets, None where there is none."""
    if len(add) < 2:
        return 0
    step = int(add[1] - add[0])
    return step if (np.diff(add) == step).all() else None
