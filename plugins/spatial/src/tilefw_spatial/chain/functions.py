"""Rows with a shorter expansion on this machine than core's: by its 2^x, its logarithm, its reciprocal.

Errors stay within the table's bounds for the row (`tilefw.tile.elementwise.error`); each rule says why. EX2 and LG2 are within
0.501 ulp, RCP is correctly rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from tilefw.api.expand import RULES as CORE
from tilefw.api.expand import TYPES, Legal, Rule, interpolated, key, polynomial
from tilefw_spatial.chain.native import FLOATS, INTEGERS, MACHINE_TYPES, Native
from tilefw_spatial.chain.node import Literal
from tilefw_spatial.chain.rational import rational
from tilefw_spatial.chain.record import Recorder, RecordTerm

_LOG2_E, _LOG_2, _TWO_OVER_PI = 1 / math.log(2), math.log(2), 2 / math.pi
# The constants in parts: each but the last is short enough that a small integer times it is exact.
_LOG_2_PARTS = (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20"))
_HALF_PI_PARTS = (float.fromhex("0x1.921fp+0"), float.fromhex("0x1.6a8884p-17"), float.fromhex("0x1.a308d2p-41"))


def _recorder(b: Legal) -> Recorder:
    assert isinstance(b.chip, Recorder)
    return b.chip


def _reciprocal(b: Legal, x: RecordTerm) -> RecordTerm:
    return RecordTerm(_recorder(b).step(Native("RCP", "fp32"), (x,)), "f32")


def _is(b: Legal, x: RecordTerm, value: float) -> bool:
    source, wanted = x.source, b.real(value, "f32").source
    return isinstance(source, Literal) and source.bits == wanted.bits and not (x.negate or x.absolute)


def _divide(b: Legal, x: RecordTerm, y: RecordTerm) -> RecordTerm:
    """Two roundings: 1.5 ulp at most, of 2.5, for divisors whose reciprocal is a normal number; others are free."""
    reciprocal = _reciprocal(b, y)
    return reciprocal if _is(b, x, 1.0) else b("mulf", x, reciprocal)


def _exp(b: Legal, x: RecordTerm) -> RecordTerm:
    """2^(x·log2 e): the product's rounding and the constant's move the result by |x|·2^-23.4 of it, of 3 + 2|x| ulp."""
    return b("exp2", b("mulf", x, b.real(_LOG2_E, "f32")))


def _log(b: Legal, x: RecordTerm) -> RecordTerm:
    """log2 x · ln 2: half an ulp, a quarter for the constant, and half of one; less than 3 also where the product is in a lower
    binade than the logarithm."""
    return b("mulf", b("log2", x), b.real(_LOG_2, "f32"))


def _log1p(b: Legal, x: RecordTerm) -> RecordTerm:
    """Core's, and on core's logarithm: the one above is too coarse for 2 ulp."""
    exact = Legal(b.chip, {**b.rules, "log.f32": CORE["log.f32"]})
    return CORE["log1p.f32"](exact, x)


def _expm1(b: Legal, x: RecordTerm) -> RecordTerm:
    """2^n·(e^r - 1) + (2^n - 1) with x = n·ln 2 + r; 2^n is exact. Half of it throughout, so that n = 128 stays finite."""
    one = b.real(1.0, "f32")
    near = b("minf_nan", b("maxf_nan", x, b.real(-30.0, "f32")), b.real(89.0, "f32"))
    n = b("round_even", b("mulf", near, b.real(_LOG2_E, "f32")))
    r = near
    for part in _LOG_2_PARTS:
        r = b("fma", b("negf", n), b.real(part, "f32"), r)
    small = b("fma", b("mulf", r, r), polynomial(b, [1 / math.factorial(k) for k in range(2, 9)], r), r)
    half = b("exp2", b("subf", n, one))
    result = b("fma", half, small, b("subf", half, b.real(0.5, "f32")))
    return b("select", b("eqf", n, b.real(0.0, "f32")), small, b("addf", result, result))


@cache
def _tanh_near() -> tuple[float, ...]:
    """(tanh(x)/x - 1)/x² as a polynomial in x² for |x| <= 0.625."""
    return interpolated(lambda z: (math.tanh(math.sqrt(z)) / math.sqrt(z) - 1) / z, 1e-4, 0.39, 6)


def _tanh(b: Legal, x: RecordTerm) -> RecordTerm:
    """Near 0 a polynomial; beyond, 1 - 2/(e^2|x| + 1), where 2/(…) is below a half: its error of some ulp counts half as much."""
    z = b("mulf", x, x)
    near = b("fma", b("mulf", z, x), polynomial(b, _tanh_near(), z), x)
    size = b("absf", x)
    power = b("exp2", b("mulf", size, b.real(2 * _LOG2_E, "f32")))
    far = b("fma", _reciprocal(b, b("addf", power, b.real(1.0, "f32"))), b.real(-2.0, "f32"), b.real(1.0, "f32"))
    sign = b("andi", b.bits(x), b.i32(1 << 31))
    signed = b.narrow(b("ori", b.bits(far), sign), "f32")
    return b("select", b("ltf", b.real(0.625, "f32"), size), signed, near)


_ERF_LIMIT = 3.85  # from 3.84 on erf rounds to 1


@cache
def _erf_quotient() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """erf(x)/x as a quotient of polynomials in x²."""
    return rational(lambda x: math.erf(x) / x, _ERF_LIMIT, 7, 4)


def _erf(b: Legal, x: RecordTerm) -> RecordTerm:
    """x·P(x²)/Q(x²) within 8 ulp, of 16; with x² held at the limit it only grows beyond, and is held at 1."""
    above, below = _erf_quotient()
    z = b("minf_nan", b("mulf", x, x), b.real(_ERF_LIMIT**2, "f32"))
    quotient = b("mulf", b("mulf", x, polynomial(b, above, z)), _reciprocal(b, polynomial(b, below, z)))
    return b("minf_nan", b("maxf_nan", quotient, b.real(-1.0, "f32")), b.real(1.0, "f32"))


def _sine_of_quarter(b: Legal, x: RecordTerm, quarter: int) -> RecordTerm:
    """sin(x + quarter·π/2) by x = n·π/2 + r. The table allows 2^-11 and the argument reduction of the format itself; where n has
    lost its last bits r is kept small, so that the result is that of some angle."""
    n = b("round_even", b("mulf", x, b.real(_TWO_OVER_PI, "f32")))
    r = x
    for part in _HALF_PI_PARTS:
        r = b("fma", b("negf", n), b.real(part, "f32"), r)
    r = b("minf_nan", b("maxf_nan", r, b.real(-0.8, "f32")), b.real(0.8, "f32"))
    q = b("f2s", n, to="i32")
    q = b("addi", q, b.i32(quarter)) if quarter else q
    z = b("mulf", r, r)
    sine = b("fma", b("mulf", z, r), polynomial(b, (-1 / 6, 1 / 120, -1 / 5040), z), r)
    cosine = polynomial(b, (1.0, -0.5, 1 / 24, -1 / 720, 1 / 40320), z)
    value = b("select", b("eqi", b("andi", q, b.i32(1)), b.i32(0)), sine, cosine)
    flip = b("shl", b("andi", q, b.i32(2)), b.i32(30))
    return b.narrow(b("xori", b.bits(value), flip), "f32")


def _absolute_integer(b: Legal, x: RecordTerm) -> RecordTerm:
    """The larger of x and -x, but that the smallest integer is its own opposite."""
    return b("maxs", x, b("subi", b.integer(0, b.type_of(x)), x))


def _rename(b: Legal, x: RecordTerm, to: str) -> RecordTerm:
    return x if b.type_of(x) == to else _recorder(b).recast(x, to)


_ROWS: dict[str, Rule] = {
    "divf": _divide, "exp": _exp, "log": _log, "log1p": _log1p, "expm1": _expm1, "tanh": _tanh, "erf": _erf,
    "sin": lambda b, x: _sine_of_quarter(b, x, 0), "cos": lambda b, x: _sine_of_quarter(b, x, 1),
}

RULES: Mapping[str, Rule] = {
    **CORE,
    **{key(row, "f32"): rule for row, rule in _ROWS.items()},
    **{key("absi", t): _absolute_integer for t in INTEGERS},
    **{key("isnan", t): lambda b, x: b("nef", x, x) for t in FLOATS},
    **{key("bitcast", t, to): _rename for t in MACHINE_TYPES for to in MACHINE_TYPES if TYPES[t].bits == TYPES[to].bits},
}
"""Core's rules under those of this machine."""
