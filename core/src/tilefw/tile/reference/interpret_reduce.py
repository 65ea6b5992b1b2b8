"""Reductions in the reference interpreter: by one row in closed form, by any other function in several orders.

Of a function that nobody knows, no bound over all orders can be had. It is evaluated on values that carry bounds and keep their
roundings, in four orders as unlike as can be: a tree of halves, a tree of neighbours with the two sides exchanged, a backward run
of up to 32 steps as a thread takes over its registers, and a tree of shuffled elements. A result is within twice the widest bound
of the four, for the orders not taken, and the distances between them; where integers differ it is free. A function that compares
floats and never asks for NaN depends on the order where there is one, and its result is free there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilefw.api.integers import ceil_div
from tilefw.tile.dialect.combine_op import ReduceOp
from tilefw.tile.elementwise import ROWS
from tilefw.tile.reference.combine_function import AxisCombiner, Function, cut, function_of
from tilefw.tile.reference.combine_orders import RUN, combined, operands_of
from tilefw.tile.reference.value import EvaluatedValue


def reduce(launch: Any, op: ReduceOp, frame: Any) -> list[EvaluatedValue]:
    """The results of a `tile.reduce`."""
    values = operands_of(op, frame)
    axis = op.axis + 1
    if op.extent == 1:
        return [_without(value, axis) for value in values]
    if op.extent == 2 and op.row is not None and ROWS[op.row].commutative:  # one operation: no order to choose
        left, right = cut(values, axis, 0, 1), cut(values, axis, 1, 2)
        return [_without(value, axis) for value in function_of(op.combine, launch.fusion, keep_rounding=False)(left, right)]
    return combined(op, values, AxisCombiner(axis), launch.fusion, reduce_by_function)


def reduce_by_function(function: Function, values: Sequence[EvaluatedValue], axis: int) -> list[list[EvaluatedValue]]:
    """`values` combined along NumPy's `axis` in four orders: the results of each."""
    orders = (_halves, _mirrored_neighbours, _backward_run, _shuffled)
    return [[_without(value, axis) for value in order(function, list(values), axis)] for order in orders]


def _without(value: EvaluatedValue, axis: int) -> EvaluatedValue:
    return value.apply(lambda part: part.squeeze(axis))


def _halves(function: Function, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    """The first half with the second, and so on; what is left over from odd lengths comes last."""
    left_over: list[list[EvaluatedValue]] = []
    while (length := values[0].x.shape[axis]) > 1:
        half = length // 2
        if length % 2:
            left_over.append(cut(values, axis, length - 1, None))
        values = function(cut(values, axis, 0, half), cut(values, axis, half, 2 * half))
    for one in left_over:
        values = function(values, one)
    return values


def _mirrored_neighbours(function: Function, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    """Neighbours with each other, the later one first."""
    left_over: list[list[EvaluatedValue]] = []
    while (length := values[0].x.shape[axis]) > 1:
        even = length - length % 2
        if length % 2:
            left_over.append(cut(values, axis, even, None))
        values = function(cut(values, axis, 1, even, 2), cut(values, axis, 0, even, 2))
    for one in left_over:
        values = function(one, values)
    return values


def _backward_run(function: Function, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    """Up to RUN pieces one after the other from the last one on, then their elements as a tree."""
    length = values[0].x.shape[axis]
    width = ceil_div(length, RUN)
    total = cut(values, axis, length - width, None)
    for end in range(length - width, width - 1, -width):
        total = function(total, cut(values, axis, end - width, end))
    total = _halves(function, total, axis)
    rest = length % width
    return function(total, _halves(function, cut(values, axis, 0, rest), axis)) if rest else total


def _shuffled(function: Function, values: list[EvaluatedValue], axis: int) -> list[EvaluatedValue]:
    """A tree of halves of the elements in an order of no pattern."""
    order = np.random.default_rng(0).permutation(values[0].x.shape[axis])
    return _halves(function, [value.apply(lambda part: np.take(part, order, axis)) for value in values], axis)
