"""Reductions in time of more vectors than one instruction combines: as several, each beginning with the result of the one before.

What is reduced across lanes is short; which axes are is known when lanes are chosen, so that reductions are split and lanes chosen
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tilefw.api.integers import ceil_div
from tilefw_spatial.arrange.item import Item
from tilefw_spatial.arrange.normal import NormalTarget, operands, reindexed, with_operands
from tilefw_spatial.arrange.reindexing import AxisIndex
from tilefw_spatial.graph import Axis, Elementwise, Reduce, Value
from tilefw_spatial.postorder import postorder

LONGEST = 4095
"""Vectors that one TRED combines: what its field `every` holds (`isa.table`)."""


def has_long_reduction(items: Iterable[Item]) -> bool:
    """Whether some item reduces more in time than one instruction can."""
    return any(isinstance(item.value.op, Reduce) and not item.across_lanes and _length(item.value.op) > LONGEST for item in items)


def split_reductions(targets: Sequence[NormalTarget]) -> list[NormalTarget]:
    """The targets without lengthy reductions."""
    splitter = _ReductionSplitter()
    return [replace(target, value=splitter.value(target.value)) for target in targets]


def _length(op: Reduce) -> int:
    return prod(axis.extent for axis in op.axes)


class _ReductionSplitter:
    """Rewrites values once each, operands first."""

    def __init__(self) -> None:
        self._done: dict[Value, Value] = {}

    def value(self, value: Value) -> Value:
        for current in postorder([value], lambda user: operands(user.op), self._done):
            self._done[current] = self._made(current)
        return self._done[value]

    def _made(self, value: Value) -> Value:
        parts = [self._done[part] for part in operands(value.op)]
        if not parts:
            return value
        op = with_operands(value.op, parts)
        if isinstance(op, Reduce) and _length(op) > LONGEST:
            return _split(op, value)
        return Value(op, value.axes, value.dtype, value.place)


def _split(op: Reduce, like: Value) -> Value:
    """One axis after the other, the one that has an order last."""
    *first, last = sorted(op.axes, key=lambda axis: (axis is op.ordered, axis.extent))
    operand = op.operand
    for axis in first:
        operand = _along(Reduce(op.kind, operand, (axis,)), like)
    return _along(Reduce(op.kind, operand, (last,), op.ordered, op.initial), like)


def _along(op: Reduce, like: Value) -> Value:
    """A reduction over one axis in parts of about equal length."""
    [axis] = op.axes
    found = op.initial
    for indices in np.array_split(np.arange(axis.extent), ceil_div(axis.extent, LONGEST)):
        part = Axis(axis.name, len(indices))
        operand = _at_indices(op.operand, axis, AxisIndex((part,), indices), {})
        step = Reduce(op.kind, operand, (part,), part if op.ordered is axis else None, found)
        axes = dict.fromkeys(a for value in operands(step) for a in value.axes if a is not part)
        found = Value(step, tuple(axes), like.dtype, like.place)
    assert found is not None, "an axis that is too long has indices"
    return found


def _at_indices(value: Value, axis: Axis, indices: AxisIndex, done: dict[Value, Value]) -> Value:
    """A value at some indices of an axis: elementwise operations are done at these alone."""
    if axis not in value.axes:
        return value
    if value not in done:
        done[value] = _restricted(value, axis, indices, done)
    return done[value]


def _restricted(value: Value, axis: Axis, indices: AxisIndex, done: dict[Value, Value]) -> Value:
    if not isinstance(value.op, Elementwise):
        return reindexed(value, {axis: indices}, value)
    parts = tuple(_at_indices(part, axis, indices, done) for part in value.op.operands)
    axes = tuple(dict.fromkeys(a for part in parts for a in part.axes))
    return Value(replace(value.op, operands=parts), axes, value.dtype, value.place)
