"""Renames axis by axis: an old axis' index is a table over new axes, and what lies over old axes is told by the new ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.graph import Axis


@dataclass(frozen=True)
class Picked:
    """An old axis' index as a table over new axes (`graph.Rename`, one old axis at a time)."""

    axes: tuple[Axis, ...]
    table: NDArray[np.int64]


def over(axes: tuple[Axis, ...], table: NDArray, target: tuple[Axis, ...]) -> NDArray:
    """`table` over `axes` as an array that broadcasts over the extents of `target`."""
    present = [axis for axis in target if axis in axes]
    turned = table.reshape([axis.extent for axis in axes]).transpose([axes.index(axis) for axis in present])
    return turned.reshape([axis.extent if axis in axes else 1 for axis in target])


def picks_of(old: tuple[Axis, ...], new: tuple[Axis, ...], index: NDArray[np.int64] | None) -> dict[Axis, Picked]:
    """A rename axis by axis: each old axis' index, over those new axes on which it depends."""
    if not old:
        return {}
    shape = [axis.extent for axis in new]
    flat = np.arange(prod(shape)) if index is None else index.reshape(-1)
    tables = np.unravel_index(flat, [axis.extent for axis in old])
    return {axis: _lean(new, table.reshape(shape)) for axis, table in zip(old, tables, strict=True)}


def _lean(axes: tuple[Axis, ...], table: NDArray[np.int64]) -> Picked:
    """The table without axes along which it does not change."""
    kept = [n for n in range(len(axes)) if axes[n].extent and (table != np.take(table, [0], axis=n)).any()]
    picks = tuple(slice(None) if n in kept else 0 for n in range(len(axes)))
    return Picked(tuple(axes[n] for n in kept), np.ascontiguousarray(table[picks]))


def picked_axes(axes: tuple[Axis, ...], picks: Mapping[Axis, Picked]) -> tuple[Axis, ...]:
    """The axes by which something over `axes` is told."""
    found = (new for axis in axes for new in (picks[axis].axes if axis in picks else (axis,)))
    return tuple(dict.fromkeys(found))


def picked_elements(
    axes: tuple[Axis, ...], table: NDArray, picks: Mapping[Axis, Picked]
) -> tuple[tuple[Axis, ...], NDArray]:
    """A table over `axes` by the new axes: these, and its elements over them."""
    if not axes:
        return axes, table
    new = picked_axes(axes, picks)
    index = tuple(
        over(picks[axis].axes, picks[axis].table, new) if axis in picks else over((axis,), np.arange(axis.extent), new)
        for axis in axes
    )
    return new, table[index]


def composed(below: Mapping[Axis, Picked], picks: Mapping[Axis, Picked]) -> dict[Axis, Picked]:
    """One rename after another as one: `below` is told first, its tables by the axes of `picks`."""
    return {**picks, **{axis: Picked(*picked_elements(pick.axes, pick.table, picks)) for axis, pick in below.items()}}
