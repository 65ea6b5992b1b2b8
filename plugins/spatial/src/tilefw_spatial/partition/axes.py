"""Along which axis a store is divided: by that which leaves each chip least to do.

A product's columns come first: its other operand is then the same on all chips.
"""

from __future__ import annotations

from math import prod

from tilefw.api.integers import ceil_div
from tilefw_spatial.graph import Axis, Dot, Graph, Store, Value, operands_of
from tilefw_spatial.partition.restrict import can_part


def divided_axis(store: Store, chips: int) -> Axis | None:
    """The axis along which the chips divide a store; None where it has none of more than one index."""
    axes = _candidates(store)
    columns = [axis for axis in axes if axis in _columns(store)]
    return max(columns, key=lambda axis: axis.extent, default=None) or _cheapest(store, axes, chips)


def rows_axis(store: Store, columns: Axis | None) -> Axis | None:
    """The axis along which what a chip has of a store is made block by block: the longest of those that its products' columns are
    not."""
    axes = [axis for axis in _candidates(store) if axis is not columns and axis not in _columns(store)]
    return max(axes, key=lambda axis: axis.extent, default=None)


def products(graph: Graph) -> list[Value]:
    """The products of a graph."""
    return [value for value in graph.values() if isinstance(value.op, Dot)]


def _candidates(store: Store) -> list[Axis]:
    parts = [store.value] if store.mask is None else [store.value, store.mask]
    axes = [along.axis for along in store.access_map.along if along.axis.extent > 1]
    return [axis for axis in axes if all(can_part(part, axis) for part in parts)]


def _columns(store: Store) -> set[Axis]:
    """The axes of the second operands of products, where the first operand lacks them."""
    found: set[Axis] = set()
    for value in Graph([store]).values():
        if isinstance(value.op, Dot):
            found |= set(value.op.b.axes) - set(value.op.a.axes) - set(value.op.contracted)
    return found


def _cheapest(store: Store, axes: list[Axis], chips: int) -> Axis | None:
    values = Graph([store]).values()
    return min(axes, key=lambda axis: _elements_made(values, axis, chips), default=None)


def _elements_made(values: list[Value], axis: Axis, chips: int) -> int:
    """Elements that each chip makes where `axis` is divided; what is combined along the axis is made whole by every chip."""
    whole: set[Value] = set()
    for value in reversed(values):  # users before their operands
        combined = (operand for operand in operands_of(value.op) if value in whole or axis in {*operand.axes} - {*value.axes})
        whole.update(combined)
    return sum(_share(value, axis, 1 if value in whole else chips) for value in values)


def _share(value: Value, axis: Axis, chips: int) -> int:
    """Elements of a value that each of so many chips makes where `axis` is divided."""
    count = prod(a.extent for a in value.axes if a is not axis)
    return count * ceil_div(axis.extent, chips) if axis in value.axes else count
