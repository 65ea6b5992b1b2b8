"""Axes trimmed of indices of which nothing is stored, or at which products are of two zeros: what last blocks have beyond the
arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tilefw_spatial.graph import (
    AccessMap,
    Along,
    Axis,
    Constant,
    Dot,
    Gather,
    Join,
    Joint,
    Load,
    Reduce,
    Rename,
    Store,
    Value,
    operands_of,
)
from tilefw_spatial.index_tables import IndexInterval, Valid, either, taken, taken_valid
from tilefw_spatial.lower.constant_tile import Array


def trim(values: Sequence[Value], stores: list[Store]) -> None:
    """Trim axes to the indices that matter; values and stores change in place."""
    kept = {**_kept(values, stores), **_multiplied(values, stores)}
    axes = {axis: Axis(axis.name, int(keep.sum())) for axis, keep in kept.items()}
    if not axes:
        return
    for value in values:
        old = value.axes
        value.axes = tuple(axes.get(axis, axis) for axis in old)
        match value.op:
            case Load() as op:
                value.op = replace(op, access_map=_trimmed(op.access_map, axes, kept))
            case Constant() as op:
                value.op = Constant(_taken(op.data, old, kept))
            case Dot() as op:
                value.op = replace(op, contracted=tuple(axes.get(axis, axis) for axis in op.contracted))
    for index, store in enumerate(stores):
        stores[index] = replace(store, access_map=_trimmed(store.access_map, axes, kept))


def _kept(values: Sequence[Value], stores: Sequence[Store]) -> dict[Axis, Valid]:
    """For each axis that can be trimmed, which indices stay. What is combined along an axis needs all of it."""
    bound: set[Axis] = set()
    for value in values:
        match value.op:
            case Reduce(axes=axes) | Dot(contracted=axes):
                bound.update(axes)
            case Rename(old=old, new=new):
                bound.update((*old, *new))
            case Gather(axis=axis):
                bound.add(axis)
            case Join(axis=axis, parts=parts):
                bound.update((axis, *parts))
    kept: dict[Axis, Valid] = {}
    for store in stores:
        for part in store.access_map.along:
            valid = IndexInterval(0, part.axis.extent, part.axis.extent) if part.valid is None else part.valid
            kept[part.axis] = either(kept[part.axis], valid) if part.axis in kept else valid
    return {axis: keep for axis, keep in kept.items() if axis not in bound and not keep.all() and keep.any()}


def _multiplied(values: Sequence[Value], stores: Sequence[Store]) -> dict[Axis, Array]:
    """For each axis that products alone are made along, the indices at which an operand has elements of a buffer."""
    kept: dict[Axis, Array] = {}
    for value in values:
        if isinstance(value.op, Dot):
            for axis in value.op.contracted:
                found = _read_at(value.op.a, axis) | _read_at(value.op.b, axis)
                kept[axis] = kept[axis] | found if axis in kept else found
    others: set[Axis] = {axis for store in stores for axis in store.value.axes}
    for value in values:
        contracted = value.op.contracted if isinstance(value.op, Dot) else ()
        others.update(axis for operand in operands_of(value.op) for axis in operand.axes if axis not in contracted)
    return {axis: keep for axis, keep in kept.items() if axis not in others and not keep.all() and keep.any()}


def _read_at(operand: Value, axis: Axis) -> Array:
    """At which indices a factor may be something else than zero."""
    op = operand.op
    if isinstance(op, Load) and op.fill == 0:
        for part in op.access_map.along:
            if part.axis is axis and part.valid is not None:
                return np.asarray(part.valid)
    return np.ones(axis.extent, np.bool_)


def _trimmed(access_map: AccessMap, axes: dict[Axis, Axis], kept: Mapping[Axis, Valid]) -> AccessMap:
    along = tuple(_shorter(part, axes[part.axis], kept[part.axis]) if part.axis in axes else part for part in access_map.along)
    joint = tuple(
        Joint(tuple(axes.get(axis, axis) for axis in part.axes), _taken(part.offsets, part.axes, kept),
              None if part.valid is None else _taken(part.valid, part.axes, kept))
        for part in access_map.joint
    )
    return replace(access_map, along=along, joint=joint)


def _shorter(part: Along, axis: Axis, keep: Valid) -> Along:
    return Along(axis, taken(part.offsets, keep), None if part.valid is None else taken_valid(part.valid, keep))


def _taken(data: Array, axes: Sequence[Axis], kept: Mapping[Axis, Valid]) -> Array:
    for position, axis in enumerate(axes):
        if axis in kept:
            data = data.compress(np.asarray(kept[axis]), axis=position)
    return data
