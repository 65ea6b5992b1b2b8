"""One row on constants: what the folder may put in place of an op, by the row's own meaning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import numbers
from tilefw.tile.elementwise import Row
from tilefw.tile.evaluate import evaluate
from tilefw.tile.value import Value


def evaluate_scalar(
    row: Row, literals: Sequence[int | float], source: DType, result: DType, rounding: numbers.Rounding = "rtne"
) -> int | float | None:
    """The row's result on constants in the result's type; None where it is undefined.

    An approximation folds to the exact result rounded once, which every chip's rule admits.
    """
    kinds = [_BOOL if kind == "bool" else source for kind in row.operands]
    operands = [_value(literal, kind) for literal, kind in zip(literals, kinds, strict=True)]
    found = evaluate(row, operands, source, result, rounding=rounding, fusion=False)
    if found.free is not None and not _settled_float(found, result):
        return None
    x = numbers.in_format(found.x, result) if result.is_float else found.x
    return x.item() if result.is_float else int(x.item())


def _settled_float(found: Value, result: DType) -> bool:
    return result.is_float and found.err is not None and bool(np.isfinite(found.err).all())


def _value(literal: int | float, dtype: DType) -> Value:
    if dtype.is_float:
        return Value(np.array([float(literal)]))
    return Value(np.array([literal]).astype(numbers.int_type(dtype.bits)))


_BOOL = DType("int1", "uint", 1, "i1", "bool")
