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
    return step.write("ltf", step.write("absf", values[0]), float("inf"))


def _round_away(step: PointwiseStep, values: Values) -> GraphValue:
    w, x = step.write, values[0]
    whole = w("trunc", x)
    away = w("addf", whole, special_functions.sign_of(w, x))
    return w("select", w("gef", w("absf", w("subf", x, whole)), 0.5), away, whole)


def _clamp(step: PointwiseStep, values: Values) -> GraphValue:
    low, x, high = values
    less, more = (row_for(POINTWISE_ROWS[f"stablehlo.{word}"], step.result) for word in ("minimum", "maximum"))
    return step.write(more, low, step.write(less, x, high))


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
    return values[0] if row is None else step.write(row, values[0], to=step.result)


def _bitcast(step: PointwiseStep, values: Values) -> GraphValue:
    if dtype(step.source).bits != dtype(step.result).bits:
        raise UnsupportedError(f"{step.source} as {step.result}, of another width", code="TFW0992")
    if is_float(step.source) == is_float(step.result) and not is_float(step.source):
        return values[0]  # the same bits with or without a sign
    return step.write("bitcast", values[0], to=step.result)


def _reduce_precision(step: PointwiseStep, values: Values) -> GraphValue:
    sizes = step.attributes["exponent_bits"].split(" ")[0], step.attributes["mantissa_bits"].split(" ")[0]
    narrow = {("5", "10"): "fp16", ("8", "7"): "bf16", ("8", "23"): "fp32", ("11", "52"): "fp64"}.get(sizes)
    if narrow is None:
        raise UnsupportedError(f"{sizes[0]} bits of exponent and {sizes[1]} of mantissa", code="TFW0992")
    if dtype(narrow).bits >= step.bits:
        return values[0]
    return step.write("castf", step.write("castf", values[0], to=narrow), to=step.source)


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
    "stablehlo.popcnt": partial(_counted, special_functions.set_bits),
    "stablehlo.count_leading_zeros": partial(_counted, special_functions.leading_zeros),
}
