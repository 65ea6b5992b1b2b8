"""Scans in the reference interpreter: by one row in closed form, by any other function in several groupings.

The first result is the first element and the second one application of the function: nothing is open there. Of the others each
is a reduction of a prefix in order. For a row of the table its bound is that of the prefix's length; any other function is tried
in three groupings as unlike as can be: halves that stand on the elements' own numbers, groups that end at each element, and runs
of up to 32 steps, as a thread takes over its registers, whose totals go on in a row. What is said of the results is what is said
of a reduction's (`interpret_reduce`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilefw.tile.dialect.combine_op import ScanOp
from tilefw.tile.reference.combine_function import AxisCombiner, Function, cut, function_of
from tilefw.tile.reference.combine_orders import RUN, combined, operands_of
from tilefw.tile.reference.value import EvaluatedValue, concatenated


def scan(launch: Any, op: ScanOp, frame: Any) -> list[EvaluatedValue]:
    """The results of a `tile.scan`."""
    axis = op.axis + 1
    values = operands_of(op, frame)
    if op.reverse:
        values = _turned(values, axis)
    results = _forward(launch, op, values, axis)
    return _turned(results, axis) if op.reverse else results


def _turned(values: Sequence[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    return [value.apply(lambda part: np.flip(part, axis)) for value in values]


def _forward(launch: Any, op: ScanOp, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    if op.extent == 1:
        return values
    first = cut(values, axis, 0, 1)
    second = function_of(op.combine, launch.fusion, keep_rounding=False)(first, cut(values, axis, 1, 2))
    if op.extent == 2:
        return _concatenated([first, second], axis)
    results = combined(op, values, AxisCombiner(axis, running=True), launch.fusion, scan_by_function)
    return _concatenated([first, second, cut(results, axis, 2, None)], axis)


def _concatenated(groups: Sequence[Sequence[EvaluatedValue]], axis: int) -> list[EvaluatedValue]:
    """Pieces along the axis, one after the other, of each of the scanned values."""
    return [concatenated(pieces, axis) for pieces in zip(*groups, strict=True)]


# Groupings -------------------------------------------------------------------------------------------------------------


def scan_by_function(function: Function, values: Sequence[EvaluatedValue], axis: int) -> list[list[EvaluatedValue]]:
    """`values` scanned along NumPy's `axis` in three groupings: the results of each."""
    return [grouping(function, list(values), axis) for grouping in (_halves, _windows, _runs)]


def _length(values: Sequence[EvaluatedValue], axis: int) -> int:
    return values[0].x.shape[axis]


def _halves(function: Function, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    """Each half by itself; then all of the second one take the last of the first (Sklansky, 1960)."""
    length = _length(values, axis)
    if length == 1:
        return values
    half = 1 << (length - 1).bit_length() - 1
    left, right = (_halves(function, cut(values, axis, *bounds), axis) for bounds in ((0, half), (half, None)))
    return _concatenated([left, function(cut(left, axis, half - 1, half), right)], axis)


def _windows(function: Function, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    """Each element takes the one before it, then what ends two before it, four, eight (Hillis and Steele, 1986)."""
    length, distance = _length(values, axis), 1
    while distance < length:
        reached = function(cut(values, axis, 0, length - distance), cut(values, axis, distance, None))
        values = _concatenated([cut(values, axis, 0, distance), reached], axis)
        distance *= 2
    return values


def _runs(function: Function, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    """Up to RUN elements one after the other in each piece; the pieces' totals in a row."""
    length = _length(values, axis)
    run = min(RUN, length)
    pieces = [_one_by_one(function, cut(values, axis, start, start + run), axis) for start in range(0, length, run)]
    done = [pieces[0]]
    for piece in pieces[1:]:
        done.append(function(cut(done[-1], axis, -1, None), piece))
    return _concatenated(done, axis)


def _one_by_one(function: Function, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    found = [cut(values, axis, 0, 1)]
    for at in range(1, _length(values, axis)):
        found.append(function(found[-1], cut(values, axis, at, at + 1)))
    return _concatenated(found, axis)
