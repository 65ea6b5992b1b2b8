"""Bugs of matrix products: precision of operands and sums, operands in the wrong form, the accumulator left out."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from tilefw.passes.fold import constant_of
from tilefw.passes.rewriting import insert
from tilefw.tile import types
from tilefw.tile.dialect.ops import DotOp, TransOp
from tilefw_planted.bug import Bug, by_row, changed, element, full, made, operand_changed, put_at, through

_TF32 = -(1 << 13)  # keeps sign, exponent and 10 bits of mantissa


def _multiplies(op: object, *elements: object) -> bool:
    return isinstance(op, DotOp) and (not elements or element(op.a) in elements)


def _cut_to_tf32(value: SSAValue, before: Operation) -> SSAValue:
    bits = made("bitcast", value, before=before, result=types.with_element(value.type, types.i32))
    return made("bitcast", by_row("andi", bits, before=before, number=_TF32), before=before, result=value.type)


def _operands_by(op: DotOp, change: object) -> None:
    for index in (0, 1):
        operand_changed(op, index, change)  # pyright: ignore[reportArgumentType]


def _is_square(value: SSAValue) -> bool:
    shape = types.shape_of(value.type)
    return len(shape) == 2 and shape[0] == shape[1] > 1


def _transposed(value: SSAValue, before: Operation) -> SSAValue:
    return insert(TransOp(value, (1, 0)), before)


def _other_sign(op: DotOp) -> None:
    if op.unsigned:
        del op.properties["unsigned"]
    else:
        op.properties["unsigned"] = UnitAttr()


def _without_last(op: DotOp) -> None:
    """The last column of `a` counts as zero: so does the last step of the sum."""
    axis, last = len(types.shape_of(op.a.type)) - 1, op.sizes[3] - 1
    operand_changed(op, 0, lambda value, before: put_at(value, axis, last, 0, before))


BUGS = [
    Bug(
        "dot-in-tf32", "a product of fp32 that must be exact is computed in tf32", "from the twelfth bit on",
        lambda op: _multiplies(op, types.f32) and op.input_precision != "tf32", lambda op: _operands_by(op, _cut_to_tf32),
    ),
    Bug(
        "dot-in-bf16", "a product of fp32 is computed from bf16", "from the ninth bit on",
        lambda op: _multiplies(op, types.f32), lambda op: _operands_by(op, lambda value, before: through("bf16", value, before)),
    ),
    Bug(
        "dot-sums-in-half", "a matrix product's fp32 sums are kept in fp16", "from the twelfth bit on",
        lambda op: _multiplies(op) and element(op.acc) == types.f32,
        lambda op: changed(op, lambda value, before: through("f16", value, before)),
    ),
    Bug(
        "dot-sums-in-single", "a matrix product's fp64 sums are kept in fp32", "from the 25th bit on",
        lambda op: _multiplies(op, types.f64), lambda op: changed(op, lambda value, before: through("f32", value, before)),
    ),
    Bug(
        "dot-from-zero", "a matrix product ignores its accumulator", "unless that is zero",
        lambda op: _multiplies(op) and constant_of(op.acc) != 0,
        lambda op: operand_changed(op, 2, lambda value, before: full(0, value.type, before)),
    ),
    Bug("dot-without-last", "a matrix product leaves out its last step along K", "everywhere", _multiplies, _without_last),
    Bug(
        "dot-left-transposed", "a matrix product reads its square left operand by columns", "unless that is symmetric",
        lambda op: _multiplies(op) and _is_square(op.a), lambda op: operand_changed(op, 0, _transposed),
    ),
    Bug(
        "dot-right-transposed", "a matrix product reads its square right operand by columns", "unless that is symmetric",
        lambda op: _multiplies(op) and _is_square(op.b), lambda op: operand_changed(op, 1, _transposed),
    ),
    Bug(
        "dot-other-sign", "int8 operands of a matrix product are taken for uint8, or the other way", "with a top bit set",
        lambda op: _multiplies(op, types.i8), _other_sign,
    ),
]
