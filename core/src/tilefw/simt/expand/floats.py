"""What f32 and f64 need beyond the base set: signs, comparisons, minima and rounding to integers."""

from __future__ import annotations

from functools import partial

from tilefw.simt.expand.builder import Legal, Rule, Value, key

# Integer of the same width, sign mask, and the power of two from which on every value is an integer.
SAME_WIDTH = {"f32": "i32", "f64": "i64"}
SIGN = {"f32": 1 << 31, "f64": 1 << 63}
_ALL_INTEGERS = {"f32": 2.0**23, "f64": 2.0**52}


def pattern(b: Legal, x: Value) -> Value:
    return b("bitcast", x, to=SAME_WIDTH[b.type_of(x)])


def with_sign_of(b: Legal, magnitude: Value, signed: Value) -> Value:
    """|magnitude| with the sign bit of the other."""
    t = b.type_of(magnitude)
    i = SAME_WIDTH[t]
    sign = b("andi", pattern(b, signed), b.integer(SIGN[t], i))
    body = b("andi", pattern(b, magnitude), b.integer(SIGN[t] - 1, i))
    return b("bitcast", b("ori", body, sign), to=t)


def _negate(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    return b("bitcast", b("xori", pattern(b, x), b.integer(SIGN[t], SAME_WIDTH[t])), to=t)


def _absolute(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    return b("bitcast", b("andi", pattern(b, x), b.integer(SIGN[t] - 1, SAME_WIDTH[t])), to=t)


def _minimum(compare: str, number_wins: bool, b: Legal, x: Value, y: Value) -> Value:
    """x where it compares so, or where the other is the one to give way; equal values differ at most in zero's sign: -0 < +0."""
    gives_way = b("isnan", y if number_wins else x)
    chosen = b("select", b("ori", b(compare, x, y), gives_way), x, y)
    merged = b("ori" if compare == "ltf" else "andi", pattern(b, x), pattern(b, y))
    return b("select", b("eqf", x, y), b("bitcast", merged, to=b.type_of(x)), chosen)


def _clamp(b: Legal, x: Value, low: Value, high: Value) -> Value:
    return b("minf", b("maxf", x, low), high)


def _clamp_nan(b: Legal, x: Value, low: Value, high: Value) -> Value:
    return b("select", b("isnan", x), x, b("clampf", x, low, high))


def _round_even(b: Legal, x: Value) -> Value:
    """Adding and taking away the first power of two without fraction bits rounds to nearest even."""
    t = b.type_of(x)
    limit = b.real(_ALL_INTEGERS[t], t)
    size = b("absf", x)
    rounded = with_sign_of(b, b("subf", b("addf", size, limit), limit), x)
    return b("select", b("ltf", size, limit), rounded, x)


def _floor(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    near = b("round_even", x)
    return with_sign_if_zero(b, b("select", b("ltf", x, near), b("subf", near, b.real(1.0, t)), near), x)


def _ceil(b: Legal, x: Value) -> Value:
    return b("negf", b("floor", b("negf", x)))


def _trunc(b: Legal, x: Value) -> Value:
    return with_sign_of(b, b("floor", b("absf", x)), x)


def with_sign_if_zero(b: Legal, value: Value, signed: Value) -> Value:
    """Zeros take the sign of the other operand, as IEEE 754 §5.9 asks of rounding to an integer."""
    zero = b("eqf", value, b.real(0.0, b.type_of(value)))
    return b("select", zero, with_sign_of(b, value, signed), value)


_ROWS: dict[str, Rule] = {
    "negf": _negate, "absf": _absolute,
    "nef": lambda b, x, y: b.not_(b("eqf", x, y)), "gtf": lambda b, x, y: b("ltf", y, x), "gef": lambda b, x, y: b("lef", y, x),
    "isnan": lambda b, x: b("nef", x, x),
    "minf": partial(_minimum, "ltf", True), "maxf": partial(_minimum, "gtf", True),
    "minf_nan": partial(_minimum, "ltf", False), "maxf_nan": partial(_minimum, "gtf", False),
    "clampf": _clamp, "clampf_nan": _clamp_nan,
    "round_even": _round_even, "floor": _floor, "ceil": _ceil, "trunc": _trunc,
}
RULES: dict[str, Rule] = {key(row, t): rule for t in SAME_WIDTH for row, rule in _ROWS.items()}
