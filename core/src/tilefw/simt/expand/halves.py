"""Arithmetic of formats narrower than f32: computed in f32 and rounded once.

For +, -, *, / and the square root the second rounding is innocent, as 24 >= 2p + 2 for p <= 11 bits (Figueroa, "When is
double rounding innocuous?", 1995); for fma it is not, so the sum is rounded to odd first.
"""

from __future__ import annotations

from functools import partial

from tilefw.simt.expand.builder import TYPES, Legal, Rule, Value, key
from tilefw.simt.expand.formats import SMALL

_ROUNDED = (
    "addf", "subf", "mulf", "divf", "div_rn", "remf", "minf", "maxf", "minf_nan", "maxf_nan", "clampf", "clampf_nan", "sqrt",
    "sqrt_rn", "rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "floor", "ceil", "trunc", "round_even",
    "pow", "log1p", "expm1",
)
_COMPARES = ("eqf", "nef", "ltf", "lef", "gtf", "gef", "isnan")


def _in_f32(row: str, b: Legal, *operands: Value) -> Value:
    return b("castf", b(row, *(b("castf", v, to="f32") for v in operands)), to=b.type_of(operands[0]))


def _compare(row: str, b: Legal, *operands: Value) -> Value:
    return b(row, *(b("castf", v, to="f32") for v in operands))


def _fused(b: Legal, x: Value, y: Value, z: Value) -> Value:
    to = b.type_of(x)
    x, y, z = (b("castf", v, to="f32") for v in (x, y, z))
    total = _sum_to_odd(b, b("mulf", x, y), z) if TYPES[to].exponent_bits < 8 else _fused_of_wide_range(b, x, y, z)
    return b("castf", total, to=to)


def _fused_of_wide_range(b: Legal, x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded to odd, of a format whose products leave f32's range: those are computed 2^-128 or 2^128 times as large.

    A product beyond the range still has a sum in it where z is nearly its opposite, and is not an infinity beside one. One below
    has bits of which f32 drops the last ones, where it decides the rounding; beside a z above 2^-60 only its sign does. An infinite
    factor has no other product than its own, nor has a large one whose product is small, which is a zero's: scaled, either would
    become the product of an infinity and a zero.
    """
    infinity = b.real(float("inf"), "f32")
    magnitude = b("absf", b("mulf", x, y))
    larger = b("maxf", b("absf", x), b("absf", y))
    far = b("andi", b("eqf", magnitude, infinity), b("ltf", larger, infinity))
    small = b("andi", b("ltf", b("absf", z), b.real(2.0**-60, "f32")), b("ltf", larger, b.real(2.0**60, "f32")))
    near = b("andi", b("ltf", magnitude, b.real(2.0**-100, "f32")), small)

    def by(of_far: float, of_near: float) -> Value:
        one = b.real(1.0, "f32")
        return b("select", far, b.real(of_far, "f32"), b("select", near, b.real(of_near, "f32"), one))

    def twice(value: Value, factor: Value) -> Value:
        return b("mulf", b("mulf", value, factor), factor)

    scale, back = by(2.0**-64, 2.0**64), by(2.0**64, 2.0**-64)
    scaled = _sum_to_odd(b, b("mulf", b("mulf", x, scale), b("mulf", y, scale)), twice(z, scale))
    total = twice(scaled, back)
    return _to_odd(b, total, b("subf", scaled, twice(total, scale)))


def _sum_to_odd(b: Legal, product: Value, z: Value) -> Value:
    """An f32 sum rounded to odd; `product` is exact, as twice 11 bits fit."""
    total = b("addf", product, z)
    # Knuth's TwoSum: what the rounded sum lost.
    z_part = b("subf", total, product)
    return _to_odd(b, total, b("addf", b("subf", product, b("subf", total, z_part)), b("subf", z, z_part)))


def _to_odd(b: Legal, rounded: Value, lost: Value) -> Value:
    """The neighbour of an f32 that has an odd last bit, on the side of what its rounding lost; itself where that is nothing."""
    pattern = b.bits(rounded)
    outward = b("eqi", b("shru", b("xori", b.bits(lost), pattern), b.i32(31)), b.i32(0))
    step = b("select", outward, b.i32(1), b.i32(-1))
    even = b("eqi", b("andi", pattern, b.i32(1)), b.i32(0))
    inexact = b("ltf", b.real(0.0, "f32"), b("absf", lost))  # false for the NaN that infinities leave here
    odd = b("select", b("andi", even, inexact), b("addi", pattern, step), pattern)
    return b.narrow(odd, "f32")


def _flip_sign(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    code = b.bits(x)
    flipped = b("xori", code, b.i32(1 << (TYPES[t].bits - 1)))
    if TYPES[t].specials == "fnuz":  # zero and NaN are the two codes that have no opposite
        alone = b("eqi", b("andi", code, b.i32((1 << (TYPES[t].bits - 1)) - 1)), b.i32(0))
        flipped = b("select", alone, code, flipped)
    return b.narrow(flipped, t)


def _clear_sign(b: Legal, x: Value) -> Value:
    t = b.type_of(x)
    code = b.bits(x)
    cleared = b("andi", code, b.i32((1 << (TYPES[t].bits - 1)) - 1))
    if TYPES[t].specials == "fnuz":
        cleared = b("select", b("eqi", code, b.i32(1 << (TYPES[t].bits - 1))), code, cleared)
    return b.narrow(cleared, t)


def _rules() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for t in SMALL:
        rules |= {key(row, t): partial(_in_f32, row) for row in _ROUNDED}
        rules |= {key(row, t): partial(_compare, row) for row in _COMPARES}
        rules |= {key("fma", t): _fused, key("negf", t): _flip_sign, key("absf", t): _clear_sign}
    return rules


RULES = _rules()
