"""Combining in the reference interpreter: an op's own combine function on values, and NumPy's functions along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Block, SSAValue

from tilefw.tile import types
from tilefw.tile.dialect.combine_op import CombineReturnOp
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import Array, EvaluatedValue, constant

Function = Callable[[Sequence[EvaluatedValue], Sequence[EvaluatedValue]], list[EvaluatedValue]]


def function_of(block: Block, fusion: bool, keep_rounding: bool) -> Function:
    """A combine function on values of any one shape."""
    steps = [op for op in block.ops if isinstance(op, ElementwiseOp)]
    dtypes = [(types.dtype_of(op.operands[op.row.typed_by].type), types.dtype_of(op.results[0].type)) for op in steps]
    constants = {
        op.results[0]: constant(op.value, types.dtype_of(op.results[0].type)) for op in block.ops if isinstance(op, ConstantOp)
    }
    last = block.last_op
    assert isinstance(last, CombineReturnOp)

    def run(left: Sequence[EvaluatedValue], right: Sequence[EvaluatedValue]) -> list[EvaluatedValue]:
        known: dict[SSAValue, EvaluatedValue] = {**constants, **dict(zip(block.args, (*left, *right), strict=True))}
        for op, (source, result) in zip(steps, dtypes, strict=True):
            operands = [known[operand] for operand in op.operands]
            known[op.results[0]] = evaluate(
                op.row, operands, source, result, rounding=op.rounding, fusion=fusion, keep_rounding=keep_rounding
            )
        shape = np.broadcast_shapes(*(value.x.shape for value in (*left, *right)))
        return [known[value].apply(lambda part: np.broadcast_to(part, shape)) for value in last.operands]

    return run


def cut(values: Sequence[EvaluatedValue], axis: int, *bounds: int | None) -> list[EvaluatedValue]:
    """A slice of values along NumPy's `axis`."""
    where = (slice(None),) * axis + (slice(*bounds),)
    return [value.apply(lambda part: part[where]) for value in values]


@dataclass(frozen=True, slots=True)
class AxisCombiner:
    """Applies a NumPy function of two arguments along an axis, as NumPy counts it: every prefix has a result (`running`, as in
    scans), or the whole axis one (as in reductions)."""

    axis: int
    running: bool = False

    def __call__(self, function: np.ufunc, x: Array, dtype: Any = None) -> Array:
        """`x` combined by `function`; without the axis, or of x's shape."""
        found = (function.accumulate if self.running else function.reduce)(x, axis=self.axis, dtype=dtype)
        return np.asarray(found)

    def counts(self, x: Array) -> Any:
        """How many elements each result combines: a number, or a range that broadcasts along the axis."""
        length = x.shape[self.axis]
        if not self.running:
            return length
        return np.arange(1, length + 1).reshape((length,) + (1,) * (x.ndim - self.axis - 1))
