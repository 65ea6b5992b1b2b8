"""The exact functions of libdevice on floats: classes, signs, neighbours, exponents, remainders, rounding to whole numbers."""

from __future__ import annotations

import tilefw.language as tl
from tilefw.frontend.libdevice.signatures import Functions, floats
from tilefw.frontend.libdevice.term import Term, fraction_and_exponent, scaled, with_sign_of

define = Functions()

_ONE, _TWO = floats(1), floats(2)
_WITH_INTEGER = (("fp32", "int32"), ("fp64", "int32"))
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


@define(_ONE)
def isinf(x: Term) -> Term:
    return abs(x).equals(float("inf"))


def _is_finite(x: Term) -> Term:
    return abs(x) < float("inf")


define.define("finitef", (("fp32",),), _is_finite)
define.define("isfinited", (("fp64",),), _is_finite)


@define(_ONE)
def signbit(x: Term) -> Term:
    negative = x.bits() < 0
    return negative.to(tl.int32)


@define(_TWO)
def copysign(x: Term, y: Term) -> Term:
    return with_sign_of(x, y)


@define((("fp32",),))
def saturatef(x: Term) -> Term:
    """0 for NaN, as the libdevice User's Guide says."""
    return (x > 0.0).where((x < 1.0).where(x, 1.0), x.constant(0.0))


@define(_TWO)
def fdim(x: Term, y: Term) -> Term:
    return (x <= y).where(x.constant(0.0), x - y)


@define(_TWO)
def nextafter(x: Term, y: Term) -> Term:
    """Floats of one sign are ordered as the integers of their bits."""
    kind = x.format
    bits = x.bits()
    away = (y > x).row("xori", x < 0.0)  # from zero
    moved = away.where(bits + 1, bits - 1).as_type(kind.dtype)
    least = with_sign_of(x.constant(2.0 ** (1 - kind.bias - kind.fraction)), y)
    moved = x.equals(0.0).where(least, moved)
    moved = x.equals(y).where(y, moved)
    return x.is_nan().where(x, y.is_nan().where(y, moved))


@define(_TWO)
def fmod(x: Term, y: Term) -> Term:
    return x.row("remf", y)


@define(_TWO)
def remainder(x: Term, y: Term) -> Term:
    """IEEE 754-2019, 5.3.1: x - n*y, n the nearest integer to x / y, ties to even; of x's sign where it is zero."""
    kind = x.format
    divisor = abs(y)
    rest = abs(x)
    # n modulo 2 is needed for ties, so the first step leaves it open; twice a huge divisor would overflow.
    rest = (divisor <= kind.largest / 2).where(rest.row("remf", divisor + divisor), rest)
    tiny = divisor < 2 * kind.smallest_normal  # half of such a divisor would round
    half = divisor * 0.5

    def over(strictly: bool, rest: Term) -> Term:
        doubled = rest + rest
        left, right = tiny.where(doubled, rest), tiny.where(divisor, half)
        return ((left > right) if strictly else (left >= right)).where(rest - divisor, rest)

    once = over(True, rest)
    again = over(False, once)
    # The second step follows only the first: a rest of at most half of the divisor stays.
    moved = (once < rest).where(again, rest)
    result = with_sign_of(moved, x)
    result = (moved < 0.0).where(-result, result)
    return y.is_nan().where(y, (abs(x) < float("inf")).where(result, float("nan")))


@define(_WITH_INTEGER)
def ldexp(x: Term, y: Term) -> Term:
    return scaled(x, y)


@define(_WITH_INTEGER)
def scalbn(x: Term, y: Term) -> Term:
    return scaled(x, y)


@define(_ONE)
def logb(x: Term) -> Term:
    size = abs(x)
    exponent = fraction_and_exponent(x)[1].to(x.dtype)
    special = size.equals(0.0).where(x.constant(float("-inf")), size)
    return ((size > 0.0) & (size < float("inf"))).where(exponent, special)


@define(_ONE)
def ilogb(x: Term) -> Term:
    """libdevice User's Guide, `ilogb`: INT_MIN for zeros and NaN, INT_MAX for infinities."""
    size = abs(x)
    exponent = fraction_and_exponent(x)[1]
    finite = (size < float("inf")).where(exponent, exponent.constant(_INT_MAX))
    return (size > 0.0).where(finite, exponent.constant(_INT_MIN))


def _away(x: Term) -> Term:
    """The nearest whole number, ties away from zero."""
    whole = x.row("trunc")
    result = (abs(x - whole) >= 0.5).where(abs(whole) + 1.0, abs(whole))
    return x.is_nan().where(x, with_sign_of(result, x))


define.define("round", _ONE, _away)
define.define("llround", _ONE, lambda x: _away(x).to(tl.int64))
define.define("llrint", _ONE, lambda x: x.row("round_even").to(tl.int64))


@define((("fp64",),))
def double2hiint(x: Term) -> Term:
    return (x.bits() >> 32).to(tl.int32)


@define((("fp64",),))
def double2loint(x: Term) -> Term:
    return x.bits().to(tl.int32)


@define((("int32", "int32"),))
def hiloint2double(x: Term, y: Term) -> Term:
    high, low = x.to(tl.int64), y.as_type(tl.uint32).to(tl.int64)
    return ((high << 32) | low).as_type(tl.float64)


@define((("fp64",),))
def rcp64h(x: Term) -> Term:
    """The upper half alone of operand and result; subnormals are zeros of their sign."""
    kind = x.format
    upper = (x.bits() & -(1 << 32)).as_type(kind.dtype)

    def flushed(y: Term) -> Term:
        return (abs(y) < kind.smallest_normal).where(with_sign_of(y.constant(0.0), y), y)

    result = flushed(1.0 / flushed(upper))
    return (result.bits() & -(1 << 32)).as_type(kind.dtype)
