"""Bugs of floating-point arithmetic and conversion: roundings, zeros, subnormals, infinities, saturation, constants left out."""

from __future__ import annotations

import math

from xdsl.ir import Block, Operation, SSAValue

from tilefw.passes.fold import constant_of
from tilefw.passes.rewriting import exchange, replace
from tilefw.tile import types
from tilefw.tile.dialect.dot_op import FP8
from tilefw.tile.dialect.elementwise_op import build
from tilefw.tile.dialect.ops import SplatOp
from tilefw.tile.numbers import largest
from tilefw_planted.bug import Bug, by_row, changed, element, full, is_row, made, through

_ARITHMETIC = ("addf", "subf", "mulf", "fma", "div_rn")
_WIDE = (types.f32, types.f64)


def _is_scale(op: Operation) -> bool:
    """Multiplies a tile by one number."""
    return is_row(op, "mulf") and _scale_index(op) is not None


def _scale_index(op: Operation) -> int | None:
    for index, operand in enumerate(op.operands):
        if types.is_tile(operand.type) and (isinstance(operand.owner, SplatOp) or constant_of(operand) is not None):
            return index
    return None


def _drop_scale(op: Operation) -> None:
    index = _scale_index(op)
    assert index is not None
    replace(op, op.operands[1 - index])


def _epsilon_index(op: Operation) -> int | None:
    """Which operand of a sum below a root is an argument of the kernel."""
    rooted = any(is_row(use.operation, "rsqrt", "sqrt", "sqrt_rn") for use in op.results[0].uses)
    return next((index for index, operand in enumerate(op.operands) if rooted and isinstance(operand.owner, Block)), None)


def _drop_epsilon(op: Operation) -> None:
    index = _epsilon_index(op)
    assert index is not None
    replace(op, op.operands[1 - index])


def _narrows(op: Operation, *to: str) -> bool:
    """Rounds to a narrower float; of the types called `to`, where any are named."""
    if not is_row(op, "castf"):
        return False
    source, result = types.dtype_of(element(op.operands[0])), types.dtype_of(element(op.results[0]))
    return result.mantissa_bits < source.mantissa_bits and (not to or result.name in to)


def _other_rounding(op: Operation) -> None:
    rounding = "rtz" if getattr(op, "rounding", None) == "rtne" else "rtne"
    exchange(op, build("castf", op.operands[0], result=op.results[0].type, rounding=rounding))


def _rounds_twice(op: Operation) -> None:
    half = made("castf", op.operands[0], before=op, result=types.with_element(op.operands[0].type, types.f16))
    exchange(op, build("castf", half, result=op.results[0].type))


def _overflows(op: Operation) -> None:
    """What is beyond the largest value becomes an infinity, or NaN in a format that has none."""
    source, kind = op.operands[0], types.dtype_of(element(op.results[0]))
    beyond = by_row("gtf", made("absf", source, before=op), before=op, number=largest(kind))

    def lost(value: SSAValue, before: Operation) -> SSAValue:
        number = math.inf if kind.specials == "ieee" else math.nan
        return made("select", beyond, full(number, value.type, before), value, before=before)

    changed(op, lost)


def _flushes(value: SSAValue, before: Operation) -> SSAValue:
    least = 2.0 ** (1 - types.dtype_of(element(value)).bias)
    small = by_row("ltf", made("absf", value, before=before), before=before, number=least)
    return made("select", small, full(0.0, value.type, before), value, before=before)


def _saturates(value: SSAValue, before: Operation) -> SSAValue:
    top = largest(types.dtype_of(element(value)))
    low, high = (full(number, value.type, before) for number in (-top, top))
    return made("clampf_nan", value, low, high, before=before)


def _rounds_to_int(op: Operation) -> None:
    op.operands[0] = made("round_even", op.operands[0], before=op)


def _narrow_int(op: Operation) -> bool:
    return is_row(op, "f2s", "f2u") and types.dtype_of(element(op.results[0])).bits < 32


def _wraps(op: Operation) -> None:
    wide = made("f2s", op.operands[0], before=op, result=types.with_element(op.results[0].type, types.i32))
    exchange(op, build("trunci", wide, result=op.results[0].type))


def _by_reciprocal(op: Operation) -> None:
    x, y = op.operands
    exchange(op, build("mulf", x, made("div_rn", full(1.0, y.type, op), y, before=op)))


def _from_zero(op: Operation) -> None:
    x = op.operands[0]
    exchange(op, build("subf", full(0.0, x.type, op), x))


def _half_up(op: Operation) -> None:
    exchange(op, build("floor", by_row("addf", op.operands[0], before=op, number=0.5)))


def _unfused(op: Operation) -> None:
    x, y, z = op.operands
    exchange(op, build("addf", made("mulf", x, y, before=op), z))


BUGS = [
    Bug("scale-dropped", "a multiplication by one number is left out", "wherever the scale is not 1", _is_scale, _drop_scale),
    Bug(
        "epsilon-dropped", "the argument that keeps a root from zero is left out", "where the rest is small",
        lambda op: is_row(op, "addf") and _epsilon_index(op) is not None, _drop_epsilon,
    ),
    Bug(
        "half-arithmetic", "sums, differences and products of fp32 are computed in fp16", "from the twelfth bit on",
        lambda op: is_row(op, *_ARITHMETIC) and element(op.results[0]) == types.f32,
        lambda op: changed(op, lambda value, before: through("f16", value, before)),
    ),
    Bug(
        "single-for-double", "arithmetic of fp64 is done in fp32", "from the 25th bit on",
        lambda op: is_row(op, *_ARITHMETIC) and element(op.results[0]) == types.f64,
        lambda op: changed(op, lambda value, before: through("f32", value, before)),
    ),
    Bug(
        "cast-rounding", "a narrowing cast cuts off, or rounds where it must cut", "in half of all roundings",
        _narrows, _other_rounding,
    ),
    Bug(
        "rounded-twice", "fp32 becomes bf16 or fp8 by way of fp16", "at ties of the first rounding, and beyond fp16's range",
        lambda op: _narrows(op, "bf16", *FP8) and element(op.operands[0]) == types.f32, _rounds_twice,
    ),
    Bug(
        "cast-overflows", "a cast to fp8 does not saturate", "beyond the largest value",
        lambda op: _narrows(op, "fp8e5", "fp8e4nv"), _overflows,
    ),
    Bug(
        "subnormals-flushed", "sums, differences and products below the normal range become zero", "for subnormal results",
        lambda op: is_row(op, *_ARITHMETIC) and element(op.results[0]) in _WIDE, lambda op: changed(op, _flushes),
    ),
    Bug(
        "infinity-saturated", "overflow gives the largest finite value", "where a result is infinite",
        lambda op: is_row(op, *_ARITHMETIC), lambda op: changed(op, _saturates),
    ),
    Bug(
        "int-rounded", "float to integer rounds to nearest", "for fractions above one half",
        lambda op: is_row(op, "f2s", "f2u"), _rounds_to_int,
    ),
    Bug("int-wrapped", "float to a narrow integer keeps the low bits", "beyond the integer's range", _narrow_int, _wraps),
    Bug(
        "reciprocal-division", "the correctly rounded quotient is x * (1 / y)", "in the last bit",
        lambda op: is_row(op, "div_rn"), _by_reciprocal,
    ),
    Bug("negated-from-zero", "-x is 0 - x", "the sign of a zero", lambda op: is_row(op, "negf"), _from_zero),
    Bug("half-rounded-up", "ties round up, not to even", "at halves", lambda op: is_row(op, "round_even"), _half_up),
    Bug(
        "fused-apart", "a fused multiply-add rounds its product", "where product and addend cancel",
        lambda op: is_row(op, "fma"), _unfused,
    ),
    Bug(
        "nan-overlooked", "isnan is always false", "with a NaN",
        lambda op: is_row(op, "isnan"), lambda op: replace(op, full(0, op.results[0].type, op)),
    ),
]
