"""Indices of which nothing is stored cut off: what a last block has beyond the end of the array needs no work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilefw_spatial.graph import Along, Axis, Constant, Dot, Join, Joint, Load, Reduce, Rename, Store, Value, Where
from tilefw_spatial.lower.known import Array


def trim(values: Sequence[Value], stores: list[Store]) -> None:
    """Cut axes to the indices that some store writes; values and stores change in place."""
    kept = _kept(values, stores)
    axes = {axis: Axis(axis.name, int(keep.sum())) for axis, keep in kept.items()}
    if not axes:
        return
    for value in values:
        old = value.axes
        value.axes = tuple(axes.get(axis, axis) for axis in old)
        match value.op:
            case Load() as op:
                value.op = replace(op, where=_cut(op.where, axes, kept))
            case Constant() as op:
                value.op = Constant(_taken(op.data, old, kept))
    for index, store in enumerate(stores):
        stores[index] = replace(store, where=_cut(store.where, axes, kept))


def _kept(values: Sequence[Value], stores: Sequence[Store]) -> dict[Axis, Array]:
    """For each axis that can be cut, which indices stay. What is combined along an axis needs all of it."""
    bound: set[Axis] = set()
    for value in values:
        match value.op:
            case Reduce(axes=axes) | Dot(contracted=axes):
                bound.update(axes)
            case Rename(old=old, new=new):
                bound.update((*old, *new))
            case Join(axis=axis, parts=parts):
                bound.update((axis, *parts))
    kept: dict[Axis, Array] = {}
    for store in stores:
        for part in store.where.along:
            valid = np.ones(part.axis.extent, np.bool_) if part.valid is None else part.valid
            kept[part.axis] = kept[part.axis] | valid if part.axis in kept else valid
    return {axis: keep for axis, keep in kept.items() if axis not in bound and not keep.all() and keep.any()}


def _cut(where: Where, axes: dict[Axis, Axis], kept: dict[Axis, Array]) -> Where:
    along = tuple(_shorter(part, axes[part.axis], kept[part.axis]) if part.axis in axes else part for part in where.along)
    joint = tuple(
        Joint(tuple(axes.get(axis, axis) for axis in part.axes), _taken(part.offsets, part.axes, kept),
              None if part.valid is None else _taken(part.valid, part.axes, kept))
        for part in where.joint
    )
    return replace(where, along=along, joint=joint)


def _shorter(part: Along, axis: Axis, keep: Array) -> Along:
    valid = None if part.valid is None else part.valid[keep]
    return Along(axis, part.offsets[keep], None if valid is None or valid.all() else valid)


def _taken(data: Array, axes: Sequence[Axis], kept: dict[Axis, Array]) -> Array:
    for place, axis in enumerate(axes):
        if axis in kept:
            data = data.compress(kept[axis], axis=place)
    return data
