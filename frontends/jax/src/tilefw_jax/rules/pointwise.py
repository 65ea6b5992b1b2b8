"""StableHLO's elementwise operators as rows of the elementwise table, of tensors or of the scalars in a body.

A rule takes a step and values, and gives a value. The step's `write` is a builder's `map` for tensors, or the writer of a body
for scalars, so that each rule serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tilefw.api.dtypes import dtype
from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import GraphValue, cast_row
from tilefw_jax.element_types import is_float, is_unsigned
from tilefw_jax.rules import special_functions

Write = Callable[..., GraphValue]


@dataclass(frozen=True, slots=True)
class PointwiseStep:
    """One operator: how rows are written, the element types of its first operand and its result, and its attributes as text."""

    write: Write
    source: str
    result: str
    attributes: Mapping[str, str]

    @property
    def bits(self) -> int:
        """The width of the first operand's elements."""
        return dtype(self.source).bits


Values = Sequence[GraphValue]
PointwiseRule = Callable[[PointwiseStep, Values], GraphValue]


def refuse(step: PointwiseStep) -> UnsupportedError:
    """The error of an operator that does not take these elements."""
    return UnsupportedError(f"elements of {step.source}", code="TFW0992")


def row_for(rows: Sequence[str], kind: str) -> str:
    """Of the rows for floats, signed integers, unsigned ones and truth values that of a type; the empty word where it has none."""
    if is_float(kind):
        return rows[0]
    return rows[3] if kind == "int1" else rows[2] if is_unsigned(kind) else rows[1]


def _by_kind(rows: Sequence[str], step: PointwiseStep, values: Values) -> GraphValue:
    row = row_for(rows, step.source)
    if not row:
        raise refuse(step)
    return step.write(row, *values)


def _not(step: PointwiseStep, values: Values) -> GraphValue:
    return step.write("xori", values[0], 1 if step.source == "int1" else -1)


def _negate(step: PointwiseStep, values: Values) -> GraphValue:
    return step.write("negf", values[0]) if is_float(step.source) else step.write("subi", 0, values[0])


def _abs(step: PointwiseStep, values: Values) -> GraphValue:
    if is_unsigned(step.source):
        return values[0]
    return step.write("absf" if is_float(step.source) else "absi", values[0])


def _sign(step: PointwiseStep, values: Values) -> GraphValue:
    """Zeros and NaN are what they were."""
    w, x = step.write, values[0]
    if is_unsigned(step.source):
        return w("minu", x, 1)
    if not is_float(step.source):
        return w("maxs", w("mins", x, 1), -1)
    return special_functions.sign_of(w, x)


def _shift(row: str, step: PointwiseStep, values: Values) -> GraphValue:
    """What is shifted by its width or more has only zeros, or bits of the sign."""
    w, (x, count) = step.write, values
    within = w("ltu", count, step.bits)
    if row == "shrs":
        return w("shrs", x, w("minu", count, step.bits - 1))
    return w("select", within, w(row, x, w("minu", count, step.bits - 1)), 0)


def _is_finite(step: PointwiseStep, values: Values) -> GraphValue:
    """In fp32 where the format has no infinity, or constants of it are clamped."""
    x = step.write("castf", values[0], to="fp32") if step.bits == 8 else values[0]
    return step.write("ltf", step.write("absf", x), float("inf"))


def _round_away(step: PointwiseStep, values: Values) -> GraphValue:
    w, x = step.write, values[0]
    whole = w("trunc", x)
    away = w("addf", whole, special_functions.sign_of(w, x))
    return w("select", w("gef", w("absf", w("subf", x, whole)), 0.5), away, whole)


def _clamp(step: PointwiseStep, values: Values) -> GraphValue:
    low, x, high = values
    less, more = (row_for(POINTWISE_ROWS[f"stablehlo.{word}"], step.result) for word in ("minimum", "maximum"))
    return step.write(less, step.write(more, x, low), high)


def _select(step: PointwiseStep, values: Values) -> GraphValue:
    return step.write("select", *values)


_COMPARISONS: Mapping[str, Sequence[str]] = {
    "EQ": ("eqf", "eqi", "eqi", "eqi"), "NE": ("nef", "nei", "nei", "nei"), "LT": ("ltf", "lts", "ltu", "ltu"),
    "LE": ("lef", "les", "leu", "leu"), "GT": ("gtf", "gts", "gtu", "gtu"), "GE": ("gef", "ges", "geu", "geu"),
}


def _compare(step: PointwiseStep, values: Values) -> GraphValue:
    rows = _COMPARISONS[_word(step.attributes["comparison_direction"])]
    if is_float(step.source) and _word(step.attributes.get("compare_type", "")) == "TOTALORDER":
        return step.write(rows[1], *(_ordered_bits(step, value) for value in values))
    return step.write(row_for(rows, step.source), *values)


def _word(attribute: str) -> str:
    """The word of an attribute such as `#stablehlo<comparison_direction LT>`."""
    return attribute.rstrip(">").rpartition(" ")[2]


def _ordered_bits(step: PointwiseStep, value: GraphValue) -> GraphValue:
    """Integers in the total order of floats: of negative ones all bits but the sign are turned."""
    w = step.write
    bits = w("bitcast", value, to=f"int{step.bits}")
    return w("xori", bits, w("andi", w("shrs", bits, step.bits - 1), (1 << (step.bits - 1)) - 1))


def _convert(step: PointwiseStep, values: Values) -> GraphValue:
    if step.result == "int1":
        return values[0] if step.source == "int1" else step.write("nef" if is_float(step.source) else "nei", values[0], 0)
    row = cast_row(step.source, step.result)
    if row is None:
        return values[0]
    if step.result in _BEYOND:
        return _to_8_bits(step, values[0], row)
    return step.write(row, values[0], to=step.result)


# Of 8-bit floats what is beyond the largest number: a comparison with half a unit above it, and the code. JAX does not clamp: what
# is beyond is infinite, or NaN in a format without infinity. 464 is a tie that goes to 448, whose fraction is even; 61440 is one
# that goes up from 57344.
_BEYOND: Mapping[str, tuple[str, float, int]] = {"fp8e4nv": ("gtf", 464.0, 0x7F), "fp8e5": ("gef", 61440.0, 0x7C)}


def _to_8_bits(step: PointwiseStep, x: GraphValue, row: str) -> GraphValue:
    w, (compare, most, code) = step.write, _BEYOND[step.result]
    if row != "castf" or step.bits < 32:
        x = w(row, x, to="fp32")
    sign = w("shl", w("extu", w("ltf", x, 0.0), to="int8"), 7)
    beyond = w("bitcast", w("ori", sign, code), to=step.result)
    return w("select", w(compare, w("absf", x), most), beyond, w("castf", x, to=step.result))


def _bitcast(step: PointwiseStep, values: Values) -> GraphValue:
    if dtype(step.source).bits != dtype(step.result).bits:
        raise UnsupportedError(f"{step.source} as {step.result}, of another width", code="TFW0992")
    if is_float(step.source) == is_float(step.result) and not is_float(step.source):
        return values[0]  # the same bits with or without a sign
    return step.write("bitcast", values[0], to=step.result)


def _reduce_precision(step: PointwiseStep, values: Values) -> GraphValue:
    """The bits rounded to nearest even; what a smaller exponent does not reach is infinite or zero: there are no subnormals."""
    w, x, kind = step.write, values[0], dtype(step.source)
    exponent, mantissa = (int(step.attributes[f"{word}_bits"].split(" ")[0]) for word in ("exponent", "mantissa"))
    bits, sign = w("bitcast", x, to=f"int{kind.bits}"), -(1 << (kind.bits - 1))
    size, dropped = w("andi", bits, ~sign), kind.mantissa_bits - mantissa
    if dropped > 0:
        even = w("andi", w("shru", size, dropped), 1)
        size = w("andi", w("addi", size, w("addi", even, (1 << (dropped - 1)) - 1)), -(1 << dropped))
    if exponent < kind.exponent_bits:
        reach, infinite = (1 << (exponent - 1)) - 1, ((1 << kind.exponent_bits) - 1) << kind.mantissa_bits
        size = w("select", w("ges", size, (kind.bias + reach + 1) << kind.mantissa_bits), infinite, size)
        size = w("select", w("lts", size, (kind.bias - reach + 1) << kind.mantissa_bits), 0, size)
    found = w("bitcast", w("ori", size, w("andi", bits, sign)), to=step.source)
    return w("select", w("isnan", x), x, found)


def _next_after(step: PointwiseStep, values: Values) -> GraphValue:
    """The neighbour of `x` on the side of `y`: the whole number of its bits and 1 more or less."""
    if not is_float(step.source):
        raise refuse(step)
    w, (x, y) = step.write, values
    whole, one = f"int{step.bits}", 1 << (step.bits - 1)
    away = w("xori", w("ltf", x, y), w("ltf", x, 0.0))
    bits = w("bitcast", x, to=whole)
    beside = w("bitcast", w("select", away, w("addi", bits, 1), w("subi", bits, 1)), to=step.source)
    least = w("bitcast", w("ori", w("andi", w("bitcast", y, to=whole), -one), 1), to=step.source)
    found = w("select", w("eqf", x, y), y, w("select", w("eqf", x, 0.0), least, beside))
    return w("select", w("isnan", y), y, w("select", w("isnan", x), x, found))


def _floats(row: str, step: PointwiseStep, values: Values) -> GraphValue:
    if not is_float(step.source):
        raise refuse(step)
    return step.write(row, *values)


def _special(function: Callable[..., GraphValue], step: PointwiseStep, values: Values) -> GraphValue:
    """A function that is written for fp32, and computed so for narrower elements."""
    if not is_float(step.source) or step.bits > 32:
        raise refuse(step)
    wide = [value if step.bits == 32 else step.write("castf", value, to="fp32") for value in values]
    found = function(step.write, *wide)
    return found if step.bits == 32 else step.write("castf", found, to=step.source)


def _counted(function: Callable[..., GraphValue], step: PointwiseStep, values: Values) -> GraphValue:
    return function(step.write, values[0], step.bits)


def _square(step: PointwiseStep, values: Values) -> GraphValue:
    return step.write("mulf" if is_float(step.source) else "muli", values[0], values[0])


POINTWISE_ROWS: Mapping[str, Sequence[str]] = {  # of floats, signed integers, unsigned integers, truth values
    "stablehlo.add": ("addf", "addi", "addi", "ori"), "stablehlo.subtract": ("subf", "subi", "subi", ""),
    "stablehlo.multiply": ("mulf", "muli", "muli", "andi"), "stablehlo.divide": ("divf", "divs", "divu", ""),
    "stablehlo.remainder": ("remf", "rems", "remu", ""), "stablehlo.maximum": ("maxf_nan", "maxs", "maxu", "ori"),
    "stablehlo.minimum": ("minf_nan", "mins", "minu", "andi"), "stablehlo.power": ("pow", "", "", ""),
    "stablehlo.and": ("", "andi", "andi", "andi"), "stablehlo.or": ("", "ori", "ori", "ori"),
    "stablehlo.xor": ("", "xori", "xori", "xori"),
}
_FLOATS: Mapping[str, str] = {
    "stablehlo.exponential": "exp", "stablehlo.exponential_minus_one": "expm1", "stablehlo.log": "log",
    "stablehlo.log_plus_one": "log1p", "stablehlo.sqrt": "sqrt_rn", "stablehlo.rsqrt": "rsqrt", "stablehlo.tanh": "tanh",
    "stablehlo.sine": "sin", "stablehlo.cosine": "cos", "stablehlo.floor": "floor", "stablehlo.ceil": "ceil",
    "stablehlo.round_nearest_even": "round_even", "chlo.erf": "erf",
}
_SPECIAL: Mapping[str, Callable[..., GraphValue]] = {
    "stablehlo.logistic": special_functions.logistic, "stablehlo.tan": special_functions.tangent,
    "stablehlo.cbrt": special_functions.cube_root, "stablehlo.atan2": special_functions.arc_tangent_2,
    "chlo.erfc": special_functions.erfc, "chlo.erf_inv": special_functions.erf_inverse, "chlo.sinh": special_functions.sinh,
    "chlo.cosh": special_functions.cosh, "chlo.tan": special_functions.tangent, "chlo.atan": special_functions.arc_tangent,
    "chlo.asin": special_functions.arc_sine, "chlo.acos": special_functions.arc_cosine, "chlo.asinh": special_functions.arsinh,
    "chlo.acosh": special_functions.arcosh, "chlo.atanh": special_functions.artanh,
}
POINTWISE: Mapping[str, PointwiseRule] = {
    **{name: partial(_by_kind, rows) for name, rows in POINTWISE_ROWS.items()},
    **{name: partial(_floats, row) for name, row in _FLOATS.items()},
    **{name: partial(_special, function) for name, function in _SPECIAL.items()},
    "stablehlo.not": _not, "stablehlo.negate": _negate, "stablehlo.abs": _abs, "stablehlo.sign": _sign,
    "stablehlo.shift_left": partial(_shift, "shl"), "stablehlo.shift_right_logical": partial(_shift, "shru"),
    "stablehlo.shift_right_arithmetic": partial(_shift, "shrs"), "stablehlo.is_finite": _is_finite,
    "stablehlo.round_nearest_afz": _round_away, "stablehlo.clamp": _clamp, "stablehlo.select": _select,
    "stablehlo.compare": _compare, "stablehlo.convert": _convert, "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.reduce_precision": _reduce_precision, "chlo.square": _square,
    "chlo.next_after": _next_after,
    "stablehlo.popcnt": partial(_counted, special_functions.set_bits),
    "stablehlo.count_leading_zeros": partial(_counted, special_functions.leading_zeros),
}
