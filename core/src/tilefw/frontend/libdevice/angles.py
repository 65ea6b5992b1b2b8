"""Trigonometric functions of half turns, tangent, and the inverse functions, which share one angle of two sides."""

from __future__ import annotations

import math

import tilefw.language as tl
from tilefw.frontend.libdevice import series
from tilefw.frontend.libdevice.pairs import Pair, ordered_sum, two_sum, where
from tilefw.frontend.libdevice.quarter_turns import by_quarter_turns
from tilefw.frontend.libdevice.signatures import Functions, floats
from tilefw.frontend.libdevice.term import Term, fraction_and_exponent, scaled, with_sign_of

define = Functions()

_ONE = floats(1)


def _sine(r: Pair) -> Pair:
    """sin r for |r| <= pi / 4, not normalised."""
    z = r.high * r.high
    tail = (r.high * z) * series.polynomial(series.sine(series.lengths(z).sine), z)
    return Pair(r.high, r.low + tail)


def _cosine(r: Pair) -> Pair:
    """cos r for |r| <= pi / 4, not normalised."""
    z = r.high * r.high
    half = z * 0.5
    large = 1.0 - half
    tail = (z * z) * series.polynomial(series.cosine(series.lengths(z).cosine), z) - r.high * r.low
    return Pair(large, ((1.0 - large) - half) + tail)


def _of_half_turns(x: Term) -> tuple[Term, Pair]:
    """x half turns as a number of quarters, -2 to 2, and what is left, in radians."""
    turn = x - (x * 0.5).row("round_even") * 2.0
    quarters = (turn + turn).row("round_even")
    left = turn - quarters * 0.5
    return quarters, series.pair(series.exact("pi"), x) * left


def sine_of_half_turns(x: Term) -> Pair:
    """The sine of x half turns, for a finite x."""
    quarters, r = _of_half_turns(x)
    found = where(abs(quarters).equals(1.0), _cosine(r), _sine(r))
    found = ordered_sum(found.high, found.low)
    return where(quarters.equals(-1.0) | abs(quarters).equals(2.0), -found, found)


@define(_ONE)
def sinpi(x: Term) -> Term:
    result = sine_of_half_turns(x).value
    result = result.equals(0.0).where(with_sign_of(result, x), result)
    return (abs(x) < math.inf).where(result, math.nan)


@define(_ONE)
def cospi(x: Term) -> Term:
    quarters, r = _of_half_turns(abs(x))
    odd = abs(quarters).equals(1.0)
    result = where(odd, _sine(r), _cosine(r)).value
    negative = quarters.equals(1.0) | abs(quarters).equals(2.0)
    result = negative.where(-result, result) + 0.0
    return (abs(x) < math.inf).where(result, math.nan)


def _tangent(x: Term) -> Term:
    """In float64: a float32 has no room for the reduction of large angles."""
    wide = x.to(tl.float64)
    return (wide.row("sin") / wide.row("cos")).to(x.dtype)


def _precise_tangent(x: Term) -> Term:
    """In pairs, of the angle that is left by quarter turns."""
    size = abs(x)
    far = size > 0.75
    quarters, left = by_quarter_turns((far & (size < math.inf)).where(size, 1.0))
    angle = where(far, left, _alone(size))
    sine, cosine = _sine(angle), _cosine(angle)
    sine, cosine = ordered_sum(sine.high, sine.low), ordered_sum(cosine.high, cosine.low)
    odd = far & (quarters & 1).equals(1)
    result = (where(odd, -cosine, sine) / where(odd, sine, cosine)).value
    result = (x.bits() < 0).where(-result, result)
    return x.equals(0.0).where(x, (size < math.inf).where(result, math.nan))


define.define("tan", floats(1), lambda x: _tangent(x) if x.dtype.is_fp32() else _precise_tangent(x))
define.define("fast_tanf", (("fp32",),), _tangent)


# Inverse functions ---------------------------------------------------------------------------------------------------------


def _angle(y: Pair, x: Pair) -> Pair:
    """The angle of the point (x, y), neither negative, 0 to pi / 2.

    Beyond 45 degrees it is a right angle less the angle of (y, x), and beyond 22.5 degrees 45 degrees less a smaller one.
    """
    pi = series.exact("pi")
    swapped = y.high > x.high
    short, long = where(swapped, x, y), where(swapped, y, x)
    empty = long.high.equals(0.0)
    steep = short.high > long.high * (math.sqrt(2) - 1)
    above, below = where(steep, short - long, short), where(steep, short + long, long)
    below = Pair(empty.where(1.0, below.high), below.low)
    t = above / below
    z = t.high * t.high
    tail = (t.high * z) * series.polynomial(series.arctangent(series.lengths(z).arctangent), z)
    found = ordered_sum(t.high, t.low + tail)
    found = where(steep, found + series.pair(pi / 4, z), found)
    return where(swapped, series.pair(pi / 2, z) - found, found)


def _alone(x: Term) -> Pair:
    return Pair(x, x.constant(0.0))


@define(_ONE)
def atan(x: Term) -> Term:
    size = abs(x)
    far = size > 2.0 ** (x.format.fraction + 4)  # a right angle, within half of its last place
    result = _angle(_alone(far.where(1.0, size)), _alone(size.constant(1.0))).value
    result = far.where(float(series.exact("pi") / 2), result)
    return (x.is_nan() | x.equals(0.0)).where(x, with_sign_of(result, x))


def _other_side(x: Term) -> Pair:
    """sqrt(1 - x²) for 0 <= x <= 1."""
    one = x.constant(1.0)
    return (Pair(*two_sum(one, -x)) * Pair(*two_sum(one, x))).root()


@define(_ONE)
def asin(x: Term) -> Term:
    size = abs(x)
    result = with_sign_of(_angle(_alone(size), _other_side(size)).value, x)
    return (size <= 1.0).where(result, math.nan)


@define(_ONE)
def acos(x: Term) -> Term:
    size = abs(x)
    angle = _angle(_other_side(size), _alone(size))
    result = where(x < 0.0, series.pair(series.exact("pi"), x) - angle, angle).value
    return (size <= 1.0).where(result, math.nan)


@define(floats(2))
def atan2(y: Term, x: Term) -> Term:
    """IEEE 754-2019, 9.2.1, for the special cases. Infinities count as 1 beside numbers that count as 0."""
    kind, infinity = x.format, math.inf
    tall, wide = abs(y).equals(infinity), abs(x).equals(infinity)
    unbounded = tall | wide
    height = unbounded.where(tall.where(1.0, y.constant(0.0)), abs(y))
    width = unbounded.where(wide.where(1.0, x.constant(0.0)), abs(x))
    larger = (height > width).where(height, width)
    exponent = -fraction_and_exponent(larger)[1]
    angle = _angle(_alone(scaled(height, exponent)), _alone(scaled(width, exponent)))
    left = x.bits() < 0
    angle = where(left, series.pair(series.exact("pi"), x) - angle, angle).value
    # A small angle is the quotient, which may be subnormal.
    quotient = height / width
    small = ~left & ~unbounded & (quotient < 2.0 ** -(kind.fraction // 2 + 2))
    result = with_sign_of(small.where(quotient, angle), y)
    return x.is_nan().where(x, y.is_nan().where(y, result))
