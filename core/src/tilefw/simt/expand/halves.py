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
    x32, y32, z32 = (b("castf", v, to="f32") for v in (x, y, z))
    product = b("mulf", x32, y32)  # exact: twice 11 bits
    total = b("addf", product, z32)
    # Knuth's TwoSum: what the rounded sum lost.
    z_part = b("subf", total, product)
    lost = b("addf", b("subf", product, b("subf", total, z_part)), b("subf", z32, z_part))
    pattern = b.bits(total)
    outward = b("eqi", b("shru", b("xori", b.bits(lost), pattern), b.i32(31)), b.i32(0))
    step = b("select", outward, b.i32(1), b.i32(-1))
    even = b("eqi", b("andi", pattern, b.i32(1)), b.i32(0))
    inexact = b("ltf", b.real(0.0, "f32"), b("absf", lost))  # false for the NaN that infinities leave here
    odd = b("select", b("andi", even, inexact), b("addi", pattern, step), pattern)
    return b("castf", b.narrow(odd, "f32"), to=b.type_of(x))


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
