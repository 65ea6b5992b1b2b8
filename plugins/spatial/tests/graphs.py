"""Short spellings of graphs for tests."""

from __future__ import annotations

import numpy as np

from tilefw_spatial.graph import AccessMap, Along, Axis, Elementwise, Load, Reduce, ReductionKind, Value


def access_map(parameter: int, *along: tuple[Axis, int], extent: dict[Axis, int] | None = None) -> AccessMap:
    """A strided access; axes in `extent` have that many valid indices."""
    return AccessMap(parameter, 0, tuple(
        Along(axis, np.arange(axis.extent) * stride, np.arange(axis.extent) < (extent or {}).get(axis, axis.extent))
        for axis, stride in along
    ))


def load(dtype: str, access: AccessMap, fill: int = 0) -> Value:
    return Value(Load(access, fill), tuple(along.axis for along in access.along), dtype)


def apply(row: str, dtype: str, *operands: Value) -> Value:
    axes = tuple(dict.fromkeys(axis for operand in operands for axis in operand.axes))
    return Value(Elementwise(row, operands), axes, dtype)


def reduce(kind: ReductionKind, operand: Value, *axes: Axis) -> Value:
    return Value(Reduce(kind, operand, axes), tuple(axis for axis in operand.axes if axis not in axes), operand.dtype)
