"""Scaled matrix products on values that carry error bounds: the scaled elements are exact in f64, and their product is a dot.

A chip may multiply the elements first and scale sums of a group's products. Scales of e8m0 are powers of two, and change no
rounding; those of e4m3 have 4 bits, and a product of a sum with two of them may be rounded twice more.
"""

from __future__ import annotations

import numpy as np

from tilefw.api.dtypes import DTYPES
from tilefw.tile import numbers, types
from tilefw.tile.dialect.dot_scaled_op import PACKED, DotScaledOp, ScaledOperand
from tilefw.tile.reference.evaluate_dot import dot
from tilefw.tile.reference.value import Array, EvaluatedValue

_BIAS = 127
_NAN_SCALE = 0xFF
_SCALE_ROUNDINGS = 2


def dot_scaled(
    op: DotScaledOp, a: EvaluatedValue, b: EvaluatedValue, acc: EvaluatedValue, a_scale: EvaluatedValue | None,
    b_scale: EvaluatedValue | None,
) -> EvaluatedValue:
    """The value of `op` for values of its operands at their full shapes."""
    left, right = scaled(op.left, a, a_scale), scaled(op.right, b, b_scale)
    rounded = any(p.scale is not None and types.is_float(p.scale.type) for p in (op.left, op.right))
    return dot(left, right, acc, DTYPES["fp32"], extra_steps=_SCALE_ROUNDINGS if rounded else 0)


def scaled(operand: ScaledOperand, value: EvaluatedValue, scale: EvaluatedValue | None) -> EvaluatedValue:
    """The elements of an operand times their scales, as f64."""
    found = unpacked(operand, value) if operand.packed else value
    if scale is None:
        return found
    factors = _factors(scale)
    size = operand.shape[operand.k_dim] // operand.groups
    factors = factors.apply(lambda x: np.repeat(x, size, axis=-1))
    if not operand.left:
        factors = factors.apply(lambda x: np.swapaxes(x, -1, -2))
    with np.errstate(invalid="ignore", over="ignore"):
        x = found.x * factors.x
        if found.err is None and factors.err is None:
            return EvaluatedValue(x)
        err = np.zeros(()) if found.err is None else found.err * np.abs(factors.x)
        err = np.where(np.isnan(err), np.inf, err)
        err = np.where(np.isnan(factors.x), 0.0, err)  # whatever the element is, their product is NaN
        if factors.err is not None:
            err = np.where(factors.err > 0, np.inf, err)
        return EvaluatedValue(x, np.broadcast_to(err, x.shape))


def unpacked(operand: ScaledOperand, value: EvaluatedValue) -> EvaluatedValue:
    """Both elements of each byte, the low one first; of a byte that is not known nothing is known."""
    axis = operand.packed_dim - len(types.shape_of(operand.value.type))
    codes = numbers.as_unsigned(np.ascontiguousarray(value.x), 8)
    x = numbers.decode(_interleaved(codes & 15, codes >> 4, axis), DTYPES[PACKED])
    if value.free is None:
        return EvaluatedValue(x)
    free = np.broadcast_to(value.free, value.x.shape)
    return EvaluatedValue(x, np.where(_interleaved(free, free, axis), np.inf, 0.0))


def _interleaved(first: Array, second: Array, axis: int) -> Array:
    """Elements of two arrays in turns along an axis, which is counted from the end."""
    shape = list(first.shape)
    shape[axis] *= 2
    return np.stack([first, second], axis=first.ndim + axis + 1).reshape(shape)


def _factors(scale: EvaluatedValue) -> EvaluatedValue:
    """Scales as f64, with an endless bound where one is not known."""
    if scale.x.dtype == np.float64:
        return scale
    codes = numbers.as_unsigned(np.ascontiguousarray(scale.x), 8).astype(np.int64)
    x = np.where(codes == _NAN_SCALE, np.nan, np.ldexp(1.0, codes - _BIAS))
    return EvaluatedValue(x, None if scale.free is None else np.where(scale.free, np.inf, 0.0))
