"""What a test expects with bounds of its error, by core's rule for each operation: nobody types a tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.api import DTYPES
from tilefw.tile.elementwise import ROWS
from tilefw.tile.reference.accuracy import compare
from tilefw.tile.reference.combine_function import AxisCombiner
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.evaluate_combine import combine_by_row
from tilefw.tile.reference.evaluate_dot import dot
from tilefw.tile.reference.value import EvaluatedValue

Array = np.ndarray[Any, Any]


def exactly(data: Array) -> EvaluatedValue:
    """Elements of a buffer: floats in float64."""
    return EvaluatedValue(data if data.dtype.kind == "i" else data.astype(np.float64))


def applied(name: str, dtype: str, *operands: EvaluatedValue, of: str = "") -> EvaluatedValue:
    """A row of the elementwise table that makes `dtype`, on operands of it or `of` another type; their arrays broadcast."""
    shape = np.broadcast_shapes(*(operand.x.shape for operand in operands))
    spread = [operand.apply(lambda part: np.broadcast_to(part, shape)) for operand in operands]
    return evaluate(ROWS[name], spread, DTYPES[of or dtype], DTYPES[dtype])


def combined(name: str, dtype: str, value: EvaluatedValue) -> EvaluatedValue:
    """Elements combined along the last axis in any order; the axis stays, with extent 1."""
    found = combine_by_row(ROWS[name], value, AxisCombiner(value.x.ndim - 1), DTYPES[dtype], True)
    assert found is not None, f"no bound of {name}"
    return found.apply(lambda part: np.expand_dims(part, -1))


def product(a: EvaluatedValue, b: EvaluatedValue, dtype: str = "fp32") -> EvaluatedValue:
    """The product of matrices, summed in `dtype`."""
    kind = np.float64 if DTYPES[dtype].is_float else np.int32
    return dot(a, b, EvaluatedValue(np.zeros((*a.x.shape[:-1], b.x.shape[-1]), kind)), DTYPES[dtype])


def softmax(x: EvaluatedValue) -> EvaluatedValue:
    """Along the last axis, in fp32."""
    numerator = applied("exp", "fp32", applied("subf", "fp32", x, combined("maxf", "fp32", x)))
    return applied("divf", "fp32", numerator, combined("addf", "fp32", numerator))


def assert_within(found: Array, expected: EvaluatedValue) -> None:
    """Every element within its bound, and every bound a number."""
    assert expected.err is None or np.isfinite(expected.err).all()
    verdict = compare(found, expected)
    assert verdict.ok, verdict
