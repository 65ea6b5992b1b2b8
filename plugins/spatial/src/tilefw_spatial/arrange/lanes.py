"""Which index of each axis every lane position has.

Positions are lanes counted on through the vectors of one point in time: where a vector has n lanes, position p is lane p % n of
vector p // n. Positions
are usually a product of axes in mixed radix; after a rename they are any table. Axes that are not along lanes lie in time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw.api.integers import ceil_div
from tilefw_spatial.arrange.reindexing import AxisIndex
from tilefw_spatial.graph import Axis


class LaneOrder(ABC):
    """`index[axis][position]` for each axis along lanes; axes that a value lacks are dropped (`restricted`), which repeats its
    elements. Two of one `key` are the same."""

    key: Hashable
    width: int  # lanes of a vector
    positions: int
    axes: frozenset[Axis]
    product: tuple[Axis, ...] | None = None  # positions in mixed radix, outermost first, where they are just that

    @cached_property
    def index(self) -> dict[Axis, NDArray[np.int64]]:
        """For each axis along lanes its index at every position."""
        return self._index()

    @abstractmethod
    def _index(self) -> dict[Axis, NDArray[np.int64]]:
        """What `index` keeps."""

    @property
    def chunks(self) -> int:
        """Vectors for one point in time."""
        return ceil_div(self.positions, self.width)

    def firsts(self) -> NDArray[np.bool_] | None:
        """Which positions are the first of all with the same indices; None where none repeats another."""
        if self.product is not None:
            return None
        found = np.zeros(self.positions, dtype=np.bool_)
        found[np.unique(self._codes(), return_index=True)[1]] = True
        return None if found.all() else found

    def covers(self) -> bool:
        """Whether all indices of its axes are along the lanes: a reindexing may need some of them alone."""
        return self.product is not None or np.unique(self._codes()).size == prod(axis.extent for axis in self.axes)

    def _codes(self) -> NDArray[np.int64]:
        """The indices of each position as one number."""
        codes = np.zeros(self.positions, dtype=np.int64)
        for axis in self.axes:
            codes = codes * axis.extent + self.index[axis]
        return codes

    def with_last(self, axis: Axis) -> LaneOrder | None:
        """The lanes of which these are a part, if `axis` is the innermost there and the number of chunks is the same."""
        return None

    def restricted(self, axes: tuple[Axis, ...]) -> LaneOrder:
        """For a value over `axes`: one vector if all chunks would hold the same."""
        own = self.axes & frozenset(axes)
        if own == self.axes and own:
            return self
        return Everywhere(self.width) if not own else _shortened(LanePart(self, own))


class LaneProduct(LaneOrder):
    """Axes flattened in mixed radix, outermost first."""

    def __init__(self, axes: tuple[Axis, ...], width: int) -> None:
        self.product = axes
        self.width = width
        self.key = ("product", axes)
        self.axes = frozenset(axes)
        self.positions = prod(axis.extent for axis in axes)

    def _index(self) -> dict[Axis, NDArray[np.int64]]:
        found: dict[Axis, NDArray[np.int64]] = {}
        inner = 1
        for axis in reversed(self.product or ()):
            found[axis] = np.arange(self.positions, dtype=np.int64) // inner % axis.extent
            inner *= axis.extent
        return found


class Everywhere(LaneOrder):
    """One element in all lanes."""

    def __init__(self, width: int) -> None:
        self.key = "everywhere"
        self.axes = frozenset()
        self.width = self.positions = width

    def _index(self) -> dict[Axis, NDArray[np.int64]]:
        return {}

    def with_last(self, axis: Axis) -> LaneOrder | None:
        halved = axis.extent <= self.width and axis.extent & (axis.extent - 1) == 0
        return LaneProduct((axis,), self.width) if halved or self.width % axis.extent == 0 else None


class LanePart(LaneOrder):
    """The same positions seen by a value that has only some of the axes; `positions` may stop after the first chunk."""

    def __init__(self, whole: LaneOrder, axes: frozenset[Axis], positions: int | None = None) -> None:
        self._whole = whole
        self.width = whole.width
        self.axes = axes
        self.positions = whole.positions if positions is None else positions
        self.key = ("part", whole.key, axes, self.positions)

    def _index(self) -> dict[Axis, NDArray[np.int64]]:
        return {axis: self._whole.index[axis][: self.positions] for axis in self.axes}

    def with_last(self, axis: Axis) -> LaneOrder | None:
        whole = self._whole
        fits = whole.product is not None and whole.product[-1] is axis and self.width % axis.extent == 0
        found = whole if fits else whole.with_last(axis)
        return found if found is not None and found.chunks == self.chunks else None


class Renamed(LaneOrder):
    """The positions of a reindexing's operand: `reindexing` has those of its axes that depend on new axes along lanes."""

    def __init__(self, whole: LaneOrder, reindexing: dict[Axis, AxisIndex]) -> None:
        self._whole, self._reindexing = whole, reindexing
        self.width = whole.width
        self.axes = frozenset(reindexing)
        self.positions = whole.positions
        tables = ((axis, index.axes, index.table.tobytes()) for axis, index in reindexing.items())
        self.key = ("renamed", whole.key, frozenset(tables))

    def _index(self) -> dict[Axis, NDArray[np.int64]]:
        whole = self._whole.index
        return {
            axis: axis_index.table.reshape([a.extent for a in axis_index.axes])[tuple(whole[a] for a in axis_index.axes)]
            for axis, axis_index in self._reindexing.items()
        }


def _shortened(part: LanePart) -> LaneOrder:
    """One chunk, where every chunk repeats the first."""
    width = part.width
    if part.positions <= width:
        return part
    full = part.positions // width * width
    for table in part.index.values():
        first = table[:width]
        if (table[:full].reshape(-1, width) != first).any() or (table[full:] != first[: part.positions - full]).any():
            return part
    return LanePart(part, part.axes, width)
