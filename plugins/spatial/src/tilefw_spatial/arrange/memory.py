"""Arrays of a stream program: the vectors of each item, allocated when it is first requested."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.arrange.access import AccessTerm
from tilefw_spatial.arrange.item import Item
from tilefw_spatial.arrange.lanes import LaneOrder
from tilefw_spatial.arrange.normal import Fetch, Reindex
from tilefw_spatial.arrange.reindexing import over
from tilefw_spatial.arrange.transfers import transfers
from tilefw_spatial.arrange.views import ArrayView, stepped
from tilefw_spatial.graph import Axis, Constant
from tilefw_spatial.stream_program import Array


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """How vectors follow one another: `strides` by axis of time, `chunk` from chunk to chunk, `vectors` in all. Of weights `groups`
    vectors are loaded at once, and each set has `rows` of them, and padding to a multiple of `groups`."""

    strides: Mapping[Axis, int]
    chunk: int
    vectors: int
    groups: int = 1
    rows: int = 0

    @property
    def terms(self) -> tuple[AccessTerm, ...]:
        return tuple(stepped(axis, stride) for axis, stride in self.strides.items())


def strides_of(axes: Iterable[Axis], first: int = 1) -> tuple[dict[Axis, int], int]:
    """Strides of axes that follow one another without gaps, the innermost `first`; and the stride of one around them."""
    strides: dict[Axis, int] = {}
    count = first
    for axis in reversed(tuple(axes)):
        strides[axis] = count
        count *= axis.extent
    return dict(reversed(strides.items())), count


def dense_order(axes: Iterable[Axis], chunks: int) -> Order:
    """Chunks outermost, then the axes as given, without gaps."""
    strides, count = strides_of(axes)
    return Order(strides, count if chunks > 1 else 0, count * chunks)


@dataclass(slots=True)
class Memory:
    """`views` says which vectors hold each item, `orders` how those that stream operations make do, `operands` inputs of
    products."""

    arrays: list[Array] = field(default_factory=list)
    views: dict[Item, ArrayView] = field(default_factory=dict)
    orders: dict[Item, Order] = field(default_factory=dict)
    operands: dict[Hashable, ArrayView] = field(default_factory=dict)

    def array(self, name: str, dtype: str, order: Order, role: str) -> Array:
        """A new array."""
        made = Array(f"{name}{len(self.arrays)}", dtype, order.vectors, role, order.groups)
        self.arrays.append(made)
        return made

    def temporary(self, dtype: str, order: Order) -> ArrayView:
        """A new array of what passes between stream operations."""
        return ArrayView(self.array("temp", dtype, order, "temp"), order.chunk, order.terms)

    def of(self, item: Item, loops: tuple[Axis, ...]) -> ArrayView:
        """The vectors of an item that exists already; an input is allocated now, in the order of `loops`."""
        if item not in self.views:
            if isinstance(item.value.op, Reindex):
                self.views[item] = self.of(item.operands[0], loops).renamed(item.value.op.reindexing)
            else:
                axes = sorted(item.time, key=lambda axis: loops.index(axis) if axis in loops else -1)
                self.views[item] = self.placed(item, dense_order(axes, item.lanes.chunks))
        return self.views[item]

    def placed(self, item: Item, order: Order) -> ArrayView:
        """An input in an order of the caller's own."""
        op = item.value.op
        assert isinstance(op, Fetch | Constant), "only inputs stand in memory before any stream operation"
        role = "in" if isinstance(op, Fetch) else "const"
        array = self.array(role, item.value.dtype, order, role)
        if isinstance(op, Fetch):
            array.transfers = transfers(op.access, item.lanes, order.strides, order.chunk, op.fill)
        else:
            array.data = vectors_of(op.data, item.value.axes, item.lanes, order)
        return ArrayView(array, order.chunk, order.terms)

    def operand(self, item: Item, order: Order) -> ArrayView:
        """A product's input in its own order; products that take it in the same order share it."""
        key = (item.value, item.lanes.key, *order.strides.items(), order.chunk, order.vectors, order.groups)
        if key not in self.operands:
            self.operands[key] = self.placed(item, order)
        return self.operands[key]

    def made(self, item: Item, order: Order) -> ArrayView:
        """A new array for what a stream operation makes."""
        self.orders[item] = order
        self.views[item] = self.temporary(item.value.dtype, order)
        return self.views[item]


def vectors_of(data: NDArray[np.generic], axes: tuple[Axis, ...], lanes: LaneOrder, order: Order) -> NDArray[np.generic]:
    """A constant's vectors, [vectors, lanes]; lanes beyond its positions are zero."""
    time = tuple(order.strides)
    grid = [axis.extent for axis in time] + [lanes.positions]
    index = tuple(
        lanes.index[axis] if axis in lanes.axes else over((axis,), np.arange(axis.extent), time)[..., None] for axis in axes
    )
    spread = np.broadcast_to(data[index], grid).reshape(prod(grid[:-1]), lanes.positions)
    padded = np.zeros((len(spread), lanes.chunks * lanes.width), dtype=data.dtype)
    padded[:, : lanes.positions] = spread
    first = np.zeros([1] * len(time), dtype=np.int64)
    for axis, stride in order.strides.items():
        first = first + over((axis,), np.arange(axis.extent) * stride, time)
    numbers = np.broadcast_to(first, grid[:-1]).reshape(-1, 1) + np.arange(lanes.chunks) * order.chunk
    result = np.zeros((order.vectors, lanes.width), dtype=data.dtype)
    result[numbers.reshape(-1)] = padded.reshape(-1, lanes.width)
    return result
