"""The results of combining elements along an axis: of one row in closed form, of any other function from a few orders.

Reductions and scans share this; each has its own orders to try.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block

from tilefw.api.dtypes import DType
from tilefw.tile import numbers, types
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.elementwise import ROWS
from tilefw.tile.reference.combine_function import AxisCombiner, Function, function_of
from tilefw.tile.reference.evaluate_combine import combine_by_row
from tilefw.tile.reference.value import Array, EvaluatedValue, either, settle, some

_LEAST = 5e-324
RUN = 32  # steps of a sequential order: more than a thread usually has registers along an axis

# Gives the results of a function on values along an axis in several orders, a list of values for each.
InOrders = Callable[[Function, Sequence[EvaluatedValue], int], list[list[EvaluatedValue]]]


def operands_of(op: CombineOp, frame: Any) -> list[EvaluatedValue]:
    """The tiles that `op` combines, all of whose parts have their full length along the axis."""
    shape = types.shape_of(op.operands[0].type)
    return [frame[operand].apply(lambda part: np.broadcast_to(part, (part.shape[0], *shape))) for operand in op.operands]


def combined(
    op: CombineOp, values: Sequence[EvaluatedValue], along: AxisCombiner, fusion: bool, in_orders: InOrders
) -> list[EvaluatedValue]:
    """What `op` gives for `values`, all of whose parts have their full length along the axis."""
    dtypes = [types.dtype_of(operand.type) for operand in op.operands]
    parts = [
        None if row is None else combine_by_row(ROWS[row], value, along, dtype, fusion)
        for row, value, dtype in zip(op.component_rows, values, dtypes, strict=True)
    ]
    closed = [part for part in parts if part is not None]
    if len(closed) == len(parts):
        return closed
    outcomes = in_orders(function_of(op.combine, fusion, keep_rounding=True), values, along.axis)
    results = [agreed([outcome[i] for outcome in outcomes]) for i in range(len(values))]
    blind = _blind_to_nan(op.combine, values, dtypes, along)
    if blind is not None:
        results = [_freed(value, blind) for value in results]
    return [result if part is None else part for part, result in zip(parts, results, strict=True)]


def agreed(found: Sequence[EvaluatedValue]) -> EvaluatedValue:
    """One value that admits the results of all orders."""
    x = found[0].x
    free = wrapped = None
    for value in found:
        free, wrapped = either(free, value.free), either(wrapped, value.wrapped)
    if x.dtype != np.float64:
        for value in found[1:]:
            free = either(free, some(value.x != x))
        return EvaluatedValue(x, free=free, wrapped=wrapped)
    err = np.zeros(x.shape)
    for value in found:
        distance = _distance(value.x, x)
        err = np.maximum(err, distance if value.err is None else distance + 2 * value.err)
    return settle(EvaluatedValue(x, err), free)


def _distance(found: Array, x: Array) -> Array:
    """How far apart two results are; zeros of different sign a little, a NaN and a number without bound."""
    return np.where((x == 0) & (found == 0) & (np.signbit(x) != np.signbit(found)), _LEAST, numbers.apart(found, x))


_NAN_TESTS = frozenset({"isnan"})


def _blind_to_nan(block: Block, values: Sequence[EvaluatedValue], dtypes: Sequence[DType], along: AxisCombiner) -> Array | None:
    """Where a function that compares floats and never asks for NaN meets one."""
    if not any(dtype.is_float for dtype in dtypes):
        return None
    rows = [op for op in block.ops if isinstance(op, ElementwiseOp)]
    compares = any(op.row.result == "bool" and op.row.operands[0] == "T:float" for op in rows)
    asks = any(op.row.name in _NAN_TESTS or (op.row.name in ("nef", "eqf") and op.operands[0] is op.operands[1]) for op in rows)
    if asks or not compares:
        return None
    found = [along(np.logical_or, np.isnan(value.x)) for value, dtype in zip(values, dtypes, strict=True) if dtype.is_float]
    # One after another: where all programs agree a value stands but once.
    return some(np.asarray(functools.reduce(np.logical_or, found)))


def _freed(value: EvaluatedValue, where: Array) -> EvaluatedValue:
    """The value with the elements at `where` open."""
    if value.x.dtype == np.float64:
        err = np.where(where, np.inf, 0.0 if value.err is None else value.err)
        return settle(EvaluatedValue(value.x, err), value.free)
    return EvaluatedValue(value.x, free=either(value.free, where), wrapped=value.wrapped)
