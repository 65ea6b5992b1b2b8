"""Reindexing, axis by axis: an old axis' index is a table over new axes, and what is over old axes becomes a function of the new
ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.graph import Axis


@dataclass(frozen=True)
class AxisIndex:
    """An old axis' index as a table over new axes (`graph.Rename`, one old axis at a time)."""

    axes: tuple[Axis, ...]
    table: NDArray[np.int64]


def over(axes: tuple[Axis, ...], table: NDArray, target: tuple[Axis, ...]) -> NDArray:
    """`table` over `axes` as an array that broadcasts over the extents of `target`."""
    present = [axis for axis in target if axis in axes]
    transposed = table.reshape([axis.extent for axis in axes]).transpose([axes.index(axis) for axis in present])
    return transposed.reshape([axis.extent if axis in axes else 1 for axis in target])


def reindexing_of(old: tuple[Axis, ...], new: tuple[Axis, ...], index: NDArray[np.int64] | None) -> dict[Axis, AxisIndex]:
    """A rename as a reindexing: each old axis' index, over those new axes on which it depends."""
    if not old:
        return {}
    shape = [axis.extent for axis in new]
    flat = np.arange(prod(shape)) if index is None else index.reshape(-1)
    tables = np.unravel_index(flat, [axis.extent for axis in old])
    return {axis: lean(new, table.reshape(shape)) for axis, table in zip(old, tables, strict=True)}


def lean(axes: tuple[Axis, ...], table: NDArray[np.int64]) -> AxisIndex:
    """The table without axes along which it does not change."""
    kept = [n for n in range(len(axes)) if axes[n].extent and (table != np.take(table, [0], axis=n)).any()]
    kept_index = tuple(slice(None) if n in kept else 0 for n in range(len(axes)))
    return AxisIndex(tuple(axes[n] for n in kept), np.ascontiguousarray(table[kept_index]))


def reindexed_axes(axes: tuple[Axis, ...], reindexing: Mapping[Axis, AxisIndex]) -> tuple[Axis, ...]:
    """The axes that something over `axes` has after a reindexing."""
    found = (new for axis in axes for new in (reindexing[axis].axes if axis in reindexing else (axis,)))
    return tuple(dict.fromkeys(found))


def reindexed_elements(
    axes: tuple[Axis, ...], table: NDArray, reindexing: Mapping[Axis, AxisIndex]
) -> tuple[tuple[Axis, ...], NDArray]:
    """A table over `axes` by the new axes: these, and its elements over them."""
    if not axes:
        return axes, table
    new = reindexed_axes(axes, reindexing)
    index = tuple(
        over(*((own.axes, own.table) if (own := reindexing.get(axis)) is not None else ((axis,), np.arange(axis.extent))), new)
        for axis in axes
    )
    return new, table[index]


def composed(below: Mapping[Axis, AxisIndex], reindexing: Mapping[Axis, AxisIndex]) -> dict[Axis, AxisIndex]:
    """Two reindexings as one: `below` applies first, its tables become tables over the axes of `reindexing`."""
    first = {axis: AxisIndex(*reindexed_elements(own.axes, own.table, reindexing)) for axis, own in below.items()}
    return {**reindexing, **first}
