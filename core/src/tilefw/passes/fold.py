"""Folding one op: constants through the row's own meaning, identities from the table, moved constants.

`fold(op)` gives a value that is there already, a constant's literal, or None. It makes no ops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from tilefw.api.dtypes import DType
from tilefw.tile import numbers, types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.elementwise import ElementwiseRow
from tilefw.tile.reference.evaluate import evaluate
from tilefw.tile.reference.value import Array, EvaluatedValue

Literal = int | float
Folded = SSAValue | Literal
_BOOL = DType("int1", "uint", 1, "i1", "bool")


def constant_of(value: SSAValue) -> Literal | None:
    """The number that a value is, as a scalar or in every element; None when it is not a constant."""
    owner = value.owner
    return owner.value if isinstance(owner, ops.ConstantOp) else None


def fold(op: Operation) -> Folded | None:
    """What the op's one result is without it."""
    if isinstance(op, ElementwiseOp):
        return _fold_row(op)
    if isinstance(op, StructuralOp):
        return _fold_structural(op) if len(op.results) == 1 else None
    found = _FOLDS.get(op.__class__)
    return None if found is None else found(op)


def _fold_row(op: ElementwiseOp) -> Folded | None:
    row = op.row
    operands = op._operands
    literals = [constant_of(o) for o in operands]
    type, result = operands[row.typed_by].type, op.results[0].type
    if row.name == "select":
        return _fold_select(operands, literals)
    if type == result and row.is_cast:
        return operands[0]
    if types.is_pointer(type) or types.is_pointer(result):
        return None
    known = [literal for literal in literals if literal is not None]
    if len(known) == len(literals):
        return evaluate_scalar(row, known, types.dtype_of(type), types.dtype_of(result), op.rounding)
    return _fold_identity(row, operands, literals, types.dtype_of(type))


def _fold_select(operands: tuple[SSAValue, ...], literals: list[Literal | None]) -> Folded | None:
    _, x, y = operands
    if x is y or (literals[1] is not None and _same_literal(literals[1], literals[2])):
        return x
    if literals[0] is not None:
        return x if literals[0] else y
    return None


def _same_literal(a: Literal, b: Literal | None) -> bool:
    if b is None:
        return False
    if isinstance(a, float) and isinstance(b, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    return a == b


def _fold_identity(
    row: ElementwiseRow, operands: tuple[SSAValue, ...], literals: list[Literal | None], dtype: DType
) -> Folded | None:
    if len(operands) != 2:
        return None
    x, y = operands
    if x is y and row.same_operands is not None:
        return x if row.same_operands == "x" else int(row.same_operands)
    pairs = [(x, literals[1])] + ([(y, literals[0])] if row.commutative else [])
    for other, literal in pairs:
        if literal is None:
            continue
        if row.identity is not None and _is(literal, row.identity, dtype):
            return other
        if row.absorbing is not None and _is(literal, row.absorbing, dtype):
            return literal
    return None


def _is(literal: Literal, number: float, dtype: DType) -> bool:
    if not dtype.is_float:
        mask = (1 << dtype.bits) - 1
        return int(literal) & mask == int(number) & mask
    return literal == number and math.copysign(1.0, literal) == math.copysign(1.0, number)


def _fold_structural(op: StructuralOp) -> Folded | None:
    """What is there already, or the constant whose elements the op only moves."""
    same = op.same_values()
    if same is not None:
        return same[0]
    literals = [constant_of(operand) for operand in op._operands]
    first = literals[0]
    return first if first is not None and all(_same_literal(first, other) for other in literals[1:]) else None


def _fold_addptr(op: ops.AddPtrOp) -> Folded | None:
    return op.pointer if constant_of(op.offset) == 0 else None


def _fold_iota(op: ops.IotaOp) -> Folded | None:
    return op.start if op.end - op.start == 1 else None


_FOLDS: dict[type[Operation], Callable[[Any], Folded | None]] = {
    ops.AddPtrOp: _fold_addptr,
    ops.IotaOp: _fold_iota,
}


# Rows on constants --------------------------------------------------------------------------------------------------


def evaluate_known(
    row: ElementwiseRow, operands: Sequence[Array], source: DType, result: DType, rounding: numbers.Rounding = "rtne"
) -> Array:
    """The row's results on arrays that broadcast: float64 for floats, else integers of the width's own type (bool for i1).

    Approximations come out as the exact result rounded once, which every chip's rule admits; undefined results as anything.
    """
    found = evaluate(row, [EvaluatedValue(operand) for operand in operands], source, result, rounding=rounding, fusion=False).x
    return numbers.in_format(found, result) if result.is_float else found


def evaluate_scalar(
    row: ElementwiseRow, literals: Sequence[int | float], source: DType, result: DType, rounding: numbers.Rounding = "rtne"
) -> int | float | None:
    """The row's result on constants in the result's type; None where it is undefined.

    An approximation folds to the exact result rounded once, which every chip's rule admits.
    """
    kinds = [_BOOL if kind == "bool" else source for kind in row.operands]
    operands = [_literal_value(literal, kind) for literal, kind in zip(literals, kinds, strict=True)]
    found = evaluate(row, operands, source, result, rounding=rounding, fusion=False)
    if found.free is not None and not _settled_float(found, result):
        return None
    x = numbers.in_format(found.x, result) if result.is_float else found.x
    return x.item() if result.is_float else int(x.item())


def _settled_float(found: EvaluatedValue, result: DType) -> bool:
    return result.is_float and found.err is not None and bool(np.isfinite(found.err).all())


def _literal_value(literal: int | float, dtype: DType) -> EvaluatedValue:
    if dtype.is_float:
        return EvaluatedValue(np.array([float(literal)]))
    return EvaluatedValue(np.array([literal]).astype(numbers.int_type(dtype.bits)))
