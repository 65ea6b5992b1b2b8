"""One row on arrays of known elements: what a compiler that knows operands computes before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw.api.dtypes import DType
from tilefw.tile import numbers
from tilefw.tile.elementwise import Row
from tilefw.tile.evaluate import evaluate
from tilefw.tile.value import Array, Value


def evaluate_known(
    row: Row, operands: Sequence[Array], source: DType, result: DType, rounding: numbers.Rounding = "rtne"
) -> Array:
    """The row's results on arrays that broadcast: float64 for floats, else integers of the width's own type (bool for i1).

    Approximations come out as the exact result rounded once, which every chip's rule admits; undefined results as anything.
    """
    found = evaluate(row, [Value(operand) for operand in operands], source, result, rounding=rounding, fusion=False).x
    return numbers.in_format(found, result) if result.is_float else found
