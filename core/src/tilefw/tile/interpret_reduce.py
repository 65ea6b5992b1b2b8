"""Reductions in the reference interpreter: by one row in closed form, by any other function in several orders.

Of a function that nobody knows, no bound over all orders can be had. It is evaluated on values that carry bounds and keep their
roundings, in three orders as unlike as can be: a tree of halves, a tree of neighbours with the two sides exchanged, and a run of
up to 32 steps as a thread takes over its registers. A result is within the widest of the three bounds and the distances between
them; where integers differ it is free. A function that compares floats and never asks for NaN depends on the order where there is
one, and its result is free there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, SSAValue

from tilefw.api.dtypes import DType
from tilefw.tile import types
from tilefw.tile.constant_op import ConstantOp
from tilefw.tile.elementwise import ROWS, ElementwiseOp
from tilefw.tile.evaluate import evaluate
from tilefw.tile.evaluate_reduce import reduce_by_row
from tilefw.tile.reduce_op import ReduceOp, ReduceReturnOp
from tilefw.tile.value import Array, Value, constant, either, settle, some

_RUN = 32  # steps of the sequential order: more than a thread usually has registers along an axis
_LEAST = 5e-324

Function = Callable[[Sequence[Value], Sequence[Value]], list[Value]]


def reduce(launch: Any, op: ReduceOp, frame: Any) -> list[Value]:
    """The results of a `tile.reduce`."""
    shape = types.shape_of(op.operands[0].type)
    values = [frame[operand].apply(lambda part: np.broadcast_to(part, (part.shape[0], *shape))) for operand in op.operands]
    dtypes = [types.dtype_of(operand.type) for operand in op.operands]
    axis = op.axis + 1
    if shape[op.axis] == 1:
        return [_without(value, axis) for value in values]
    row = op.row
    if row is not None and shape[op.axis] > 2:
        found = reduce_by_row(ROWS[row], values[0], axis, dtypes[0], launch.fusion)
        if found is not None:
            return [found]
    exact_pair = row is not None and shape[op.axis] == 2 and ROWS[row].commutative
    function = function_of(op.combine, launch.fusion, keep_rounding=not exact_pair)
    results = reduce_by_function(function, values, axis)
    blind = _blind_to_nan(op.combine, values, dtypes, axis)
    return results if blind is None else [_freed(value, blind) for value in results]


def function_of(block: Block, fusion: bool, keep_rounding: bool) -> Function:
    """A combine function on values of any one shape."""
    steps = [op for op in block.ops if isinstance(op, ElementwiseOp)]
    dtypes = [(types.dtype_of(op.operands[op.row.typed_by].type), types.dtype_of(op.results[0].type)) for op in steps]
    constants = {
        op.results[0]: constant(op.value, types.dtype_of(op.results[0].type)) for op in block.ops if isinstance(op, ConstantOp)
    }
    last = block.last_op
    assert isinstance(last, ReduceReturnOp)

    def run(left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        known: dict[SSAValue, Value] = {**constants, **dict(zip(block.args, (*left, *right), strict=True))}
        for op, (source, result) in zip(steps, dtypes, strict=True):
            operands = [known[operand] for operand in op.operands]
            known[op.results[0]] = evaluate(
                op.row, operands, source, result, rounding=op.rounding, fusion=fusion, keep_rounding=keep_rounding
            )
        shape = np.broadcast_shapes(*(value.x.shape for value in (*left, *right)))
        return [known[value].apply(lambda part: np.broadcast_to(part, shape)) for value in last.operands]

    return run


def reduce_by_function(function: Function, values: Sequence[Value], axis: int) -> list[Value]:
    """`values` combined along NumPy's `axis` in three orders, and what can be said of all of them."""
    orders = (_halves, _mirrored_neighbours) if values[0].x.shape[axis] == 2 else (_halves, _mirrored_neighbours, _run)
    outcomes = [order(function, list(values), axis) for order in orders]
    return [_agreed([_without(outcome[i], axis) for outcome in outcomes]) for i in range(len(values))]


# Orders ----------------------------------------------------------------------------------------------------------------


def _cut(values: Sequence[Value], axis: int, *bounds: int | None) -> list[Value]:
    where = (slice(None),) * axis + (slice(*bounds),)
    return [value.apply(lambda part: part[where]) for value in values]


def _without(value: Value, axis: int) -> Value:
    return value.apply(lambda part: part.squeeze(axis))


def _halves(function: Function, values: list[Value], axis: int) -> list[Value]:
    """The first half with the second, and so on; what is left over from odd lengths comes last."""
    left_over: list[list[Value]] = []
    while (length := values[0].x.shape[axis]) > 1:
        half = length // 2
        if length % 2:
            left_over.append(_cut(values, axis, length - 1, None))
        values = function(_cut(values, axis, 0, half), _cut(values, axis, half, 2 * half))
    for one in left_over:
        values = function(values, one)
    return values


def _mirrored_neighbours(function: Function, values: list[Value], axis: int) -> list[Value]:
    """Neighbours with each other, the later one first."""
    left_over: list[list[Value]] = []
    while (length := values[0].x.shape[axis]) > 1:
        even = length - length % 2
        if length % 2:
            left_over.append(_cut(values, axis, even, None))
        values = function(_cut(values, axis, 1, even, 2), _cut(values, axis, 0, even, 2))
    for one in left_over:
        values = function(one, values)
    return values


def _run(function: Function, values: list[Value], axis: int) -> list[Value]:
    """Up to _RUN pieces one after the other, then their elements as a tree."""
    length = values[0].x.shape[axis]
    width = -(-length // _RUN)
    total = _cut(values, axis, 0, width)
    for start in range(width, length - width + 1, width):
        total = function(total, _cut(values, axis, start, start + width))
    total = _halves(function, total, axis)
    rest = length % width
    return function(total, _halves(function, _cut(values, axis, length - rest, None), axis)) if rest else total


# Agreement -------------------------------------------------------------------------------------------------------------


def _agreed(found: Sequence[Value]) -> Value:
    """One value that admits the results of all orders."""
    first, x = found[0], found[0].x
    free = wrapped = None
    for value in found:
        free, wrapped = either(free, value.free), either(wrapped, value.wrapped)
    if x.dtype != np.float64:
        for value in found[1:]:
            free = either(free, some(value.x != x))
        return Value(x, free=free, wrapped=wrapped)
    err = np.zeros(x.shape)
    for value in found:
        same = (value.x == x) | (np.isnan(value.x) & np.isnan(x))
        distance = np.where(same, 0.0, np.abs(value.x - x))
        distance = np.where(np.isnan(distance), np.inf, distance)
        distance = np.where(same & (x == 0) & (np.signbit(x) != np.signbit(value.x)), _LEAST, distance)
        err = np.maximum(err, distance if value.err is None else distance + value.err)
    return settle(Value(first.x, err), free)


_NAN_TESTS = frozenset({"isnan"})


def _blind_to_nan(block: Block, values: Sequence[Value], dtypes: Sequence[DType], axis: int) -> Array | None:
    """Where a function that compares floats and never asks for NaN meets one."""
    if not any(dtype.is_float for dtype in dtypes):
        return None
    rows = [op for op in block.ops if isinstance(op, ElementwiseOp)]
    compares = any(op.row.result == "bool" and op.row.operands[0] == "T:float" for op in rows)
    asks = any(op.row.name in _NAN_TESTS or (op.row.name in ("nef", "eqf") and op.operands[0] is op.operands[1]) for op in rows)
    if asks or not compares:
        return None
    found = [np.isnan(value.x).any(axis) for value, dtype in zip(values, dtypes, strict=True) if dtype.is_float]
    return some(np.logical_or.reduce(found))


def _freed(value: Value, where: Array) -> Value:
    """The value with the elements at `where` open."""
    if value.x.dtype == np.float64:
        err = np.where(where, np.inf, 0.0 if value.err is None else value.err)
        return settle(Value(value.x, err), value.free)
    return Value(value.x, free=either(value.free, where), wrapped=value.wrapped)
