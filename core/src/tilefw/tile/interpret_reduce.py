"""Reductions in the reference interpreter: by one row in closed form, by any other function in several orders.

Of a function that nobody knows, no bound over all orders can be had. It is evaluated on values that carry bounds and keep their
roundings, in four orders as unlike as can be: a tree of halves, a tree of neighbours with the two sides exchanged, a backward run
of up to 32 steps as a thread takes over its registers, and a tree of shuffled elements. A result is within twice the widest bound
of the four, for the orders not taken, and the distances between them; where integers differ it is free. A function that compares
floats and never asks for NaN depends on the order where there is one, and its result is free there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

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
    if shape[op.axis] == 2 and op.row is not None and ROWS[op.row].commutative:  # one operation: no order to choose
        left, right = _cut(values, axis, 0, 1), _cut(values, axis, 1, 2)
        return [_without(value, axis) for value in function_of(op.combine, launch.fusion, keep_rounding=False)(left, right)]
    parts = [
        None if row is None else reduce_by_row(ROWS[row], value, axis, dtype, launch.fusion)
        for row, value, dtype in zip(component_rows(op.combine), values, dtypes, strict=True)
    ]
    closed = [part for part in parts if part is not None]
    if len(closed) == len(parts):
        return closed
    results = reduce_by_function(function_of(op.combine, launch.fusion, keep_rounding=True), values, axis)
    blind = _blind_to_nan(op.combine, values, dtypes, axis)
    if blind is not None:
        results = [_freed(value, blind) for value in results]
    return [result if part is None else part for part, result in zip(parts, results, strict=True)]


def component_rows(block: Block) -> list[str | None]:
    """For each result, the row that combines its own two arguments and nothing else: sums in a tuple are sums all the same."""
    last, count = block.last_op, len(block.args) // 2
    assert last is not None
    return [_row_of(result.owner, (block.args[i], block.args[count + i])) for i, result in enumerate(last.operands)]


def _row_of(op: Operation | Block, pair: tuple[SSAValue, SSAValue]) -> str | None:
    """The row of an op that combines just these two."""
    if not isinstance(op, ElementwiseOp):
        return None
    return op.row.name if op._operands == pair or (op.row.commutative and op._operands == pair[::-1]) else None


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
    """`values` combined along NumPy's `axis` in four orders, and what can be said of all of them."""
    outcomes = [order(function, list(values), axis) for order in (_halves, _mirrored_neighbours, _backward_run, _shuffled)]
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


def _backward_run(function: Function, values: list[Value], axis: int) -> list[Value]:
    """Up to _RUN pieces one after the other from the last one on, then their elements as a tree."""
    length = values[0].x.shape[axis]
    width = -(-length // _RUN)
    total = _cut(values, axis, length - width, None)
    for end in range(length - width, width - 1, -width):
        total = function(total, _cut(values, axis, end - width, end))
    total = _halves(function, total, axis)
    rest = length % width
    return function(total, _halves(function, _cut(values, axis, 0, rest), axis)) if rest else total


def _shuffled(function: Function, values: list[Value], axis: int) -> list[Value]:
    """A tree of halves of the elements in an order of no pattern."""
    order = np.random.default_rng(0).permutation(values[0].x.shape[axis])
    return _halves(function, [value.apply(lambda part: np.take(part, order, axis)) for value in values], axis)


# Agreement -------------------------------------------------------------------------------------------------------------


def _agreed(found: Sequence[Value]) -> Value:
    """One value that admits the results of all orders."""
    x = found[0].x
    free = wrapped = None
    for value in found:
        free, wrapped = either(free, value.free), either(wrapped, value.wrapped)
    if x.dtype != np.float64:
        for value in found[1:]:
            free = either(free, some(value.x != x))
        return Value(x, free=free, wrapped=wrapped)
    err = np.zeros(x.shape)
    for value in found:
        distance = _distance(value.x, x)
        err = np.maximum(err, distance if value.err is None else distance + 2 * value.err)
    return settle(Value(x, err), free)


def _distance(found: Array, x: Array) -> Array:
    """How far apart two results are; zeros of different sign a little, a NaN and a number without bound."""
    with np.errstate(invalid="ignore"):
        same = (found == x) | (np.isnan(found) & np.isnan(x))
        distance = np.where(same, 0.0, np.abs(found - x))
    distance = np.where(np.isnan(distance), np.inf, distance)
    return np.where(same & (x == 0) & (np.signbit(x) != np.signbit(found)), _LEAST, distance)


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
    # One after another: where all programs agree a value stands but once.
    return some(np.asarray(functools.reduce(np.logical_or, found)))


def _freed(value: Value, where: Array) -> Value:
    """The value with the elements at `where` open."""
    if value.x.dtype == np.float64:
        err = np.where(where, np.inf, 0.0 if value.err is None else value.err)
        return settle(Value(value.x, err), value.free)
    return Value(value.x, free=either(value.free, where), wrapped=value.wrapped)
