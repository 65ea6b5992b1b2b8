"""The complementary error function and its kin, in float64: a power series in pairs near zero, a continued fraction beyond.

NIST DLMF 7.6.1 (series), 7.9.1 (continued fraction), 7.2.2. The terms of the series cancel, and so do 1 and erf, which pairs leave
room for. Beyond, erfc(x) is exp(-x²) times a smooth factor, with x² exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import tilefw.language as tl
from tilefw.frontend.libdevice import pairs, series
from tilefw.frontend.libdevice.exponentials import exponential
from tilefw.frontend.libdevice.pairs import Pair, exact_product, ordered_sum
from tilefw.frontend.libdevice.signatures import Functions, floats
from tilefw.frontend.libdevice.term import Term, scaled

define = Functions()

# Up to here the power series is summed, of so many terms; beyond, so many levels of the fraction leave less than 1e-17.
NEAR, _TERMS, _LEVELS = 2.5, 50, 40
_LARGEST = 64.0  # exp of its square is beyond float64, and so is that of minus its square


@cache
def _series() -> tuple[Fraction, ...]:
    """Of erf(t) / t in t²."""
    return tuple(2 * Fraction((-1) ** k, math.factorial(k) * (2 * k + 1)) / series.exact("sqrt pi") for k in range(_TERMS))


@cache
def _fraction() -> tuple[list[Fraction], list[Fraction]]:
    """sqrt(pi) t exp(t²) erfc(t) as a quotient of polynomials in 1/t²: 1 / (1 + (w/2) / (1 + (2w/2) / (1 + (3w/2) / …)))."""
    above, below = [Fraction(1)], [Fraction(1)]
    for level in range(_LEVELS, 0, -1):
        moved = [Fraction(0), *(c * Fraction(level, 2) for c in below)]
        size = max(len(above), len(moved))
        padded = [*above, *[Fraction(0)] * (size - len(above))]
        more = [*moved, *[Fraction(0)] * (size - len(moved))]
        above, below = [a + b for a, b in zip(padded, more, strict=True)], above
    return below, above


def near_zero(t: Pair, square: Pair) -> Pair:
    """erf(t) for |t| < NEAR."""
    return series.precise_polynomial(_series(), square) * t


def _complement_near(t: Pair, square: Pair) -> Pair:
    """1 - erf(t) for |t| < NEAR."""
    return 1.0 - near_zero(t, square)


def beyond(t: Term) -> Term:
    """exp(t²) erfc(t) for t >= NEAR."""
    inverse = 1.0 / t
    above, below = _fraction()
    square = inverse * inverse
    quotient = series.polynomial(above, square) / series.polynomial(below, square)
    return (inverse * float(1 / series.exact("sqrt pi"))) * quotient


def exponential_of_pair(x: Pair) -> tuple[Pair, Term]:
    """`exponential` of a pair whose second part may be many last places of what is left of the first."""
    power, exponent = exponential(x.high)
    return ordered_sum(power.high, power.high.fma(x.low, power.low)), exponent


def _limited(x: Term) -> Term:
    return (x > _LARGEST).where(_LARGEST, (x < -_LARGEST).where(-_LARGEST, x))


def _inside(near: Term, value: Pair) -> Pair:
    return pairs.where(near, value, Pair(value.high.constant(0.0), value.high.constant(0.0)))


def _complement(t: Pair, square: Pair) -> Term:
    """erfc(t), with the square of t exact."""
    near, size = abs(t.high) < NEAR, abs(t.high)
    small = _complement_near(_inside(near, t), _inside(near, square)).value
    power, exponent = exponential_of_pair(-square)
    large = scaled((power * beyond(near.where(NEAR, size))).value, exponent)
    return near.where(small, (t.high < 0.0).where(2.0 - large, large))


def _erfc(x: Term) -> Term:
    t = _limited(x)
    return x.is_nan().where(x, _complement(Pair(t, t.constant(0.0)), exact_product(t, t)))


def _normcdf(x: Term) -> Term:
    limited = _limited(x)
    t = series.pair(-series.exact("sqrt 1/2"), limited) * limited
    return x.is_nan().where(x, _complement(t, exact_product(limited, limited).times(0.5)) * 0.5)


def _erfcx(x: Term) -> Term:
    size, t = abs(x), _limited(x)
    near, square = size < NEAR, exact_product(t, t)
    zero = t.constant(0.0)
    small = _complement_near(_inside(near, Pair(t, zero)), _inside(near, square))
    power, exponent = exponential_of_pair(square)
    outer = beyond(near.where(NEAR, size))
    large = (x < 0.0).where(scaled(power.times(2.0).value, exponent) - outer, outer)
    return x.is_nan().where(x, near.where(scaled((power * small).value, exponent), large))


for _name, _function in (("erfc", _erfc), ("erfcx", _erfcx), ("normcdf", _normcdf)):
    define.define(_name, floats(1), lambda x, function=_function: function(x.to(tl.float64)).to(x.dtype))
