"""Bessel functions of orders 0 and 1, computed in float64: power series in pairs near zero, Hankel's expansions beyond.

NIST DLMF 10.2.2, 10.8.1, 10.8.2, 10.25.2 (series), 10.17.3, 10.17.4, 10.40.1 (expansions). Near the zeros of J and Y the
terms of the series cancel, which pairs leave room for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import tilefw.language as tl
from tilefw.frontend.libdevice import series
from tilefw.frontend.libdevice.exponentials import exponential, precise_logarithm
from tilefw.frontend.libdevice.pairs import Pair, exact_product
from tilefw.frontend.libdevice.signatures import Functions, floats
from tilefw.frontend.libdevice.term import Term, scaled, with_sign_of

define = Functions()

# Up to here the power series is summed, of so many terms; beyond, the expansions leave less than 1e-12 and 1e-17.
_OSCILLATING, _OSCILLATING_TERMS = 14.0, 38
_GROWING, _GROWING_TERMS = 20.0, 50
_NEARLY_ZERO = 2.0**-1000


@cache
def _coefficients(order: int, count: int, sign: int) -> tuple[Fraction, ...]:
    """Of (x/2)**order * sum over k of sign**k / (k! (k + order)!) * (x²/4)**k."""
    return tuple(Fraction(sign**k, math.factorial(k) * math.factorial(k + order)) for k in range(count))


def _harmonic(n: int) -> Fraction:
    return sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0))


@cache
def _second_coefficients(order: int, count: int) -> tuple[Fraction, ...]:
    """What the second solution's series has beside its logarithm: the coefficients by the sum of two harmonic numbers."""
    first = _coefficients(order, count, -1)
    return tuple(-c * (_harmonic(k) + _harmonic(k + order)) / 2 for k, c in enumerate(first))


@cache
def _expansion(order: int, count: int) -> tuple[Fraction, ...]:
    """a_k(order) of 10.17.1: the products of (4 order² - (2j - 1)²) over k! 8**k."""
    found = [Fraction(1)]
    for k in range(1, count):
        found.append(found[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return tuple(found)


def _quarter_square(x: Term) -> Pair:
    return exact_product(x, x).times(0.25)


def _series_of_first_kind(order: int, x: Term, sign: int, count: int) -> Pair:
    found = series.precise_polynomial(_coefficients(order, count, sign), _quarter_square(x))
    return found * (x * 0.5) if order else found


def _waves(order: int, x: Term) -> tuple[Term, Term]:
    """J and Y for large x: sqrt(2 / (pi x)) times P and Q with the cosine and the sine of x - (2 order + 1) pi / 4."""
    terms = _expansion(order, 28)
    inverse = 1.0 / x
    square = inverse * inverse
    p = series.polynomial([(-1) ** (k // 2) * terms[k] for k in range(0, 28, 2)], square)
    q = inverse * series.polynomial([(-1) ** (k // 2) * terms[k] for k in range(1, 28, 2)], square)
    sine, cosine = x.row("sin"), x.row("cos")
    # The cosine and the sine of the shifted angle, times sqrt(2).
    shifted = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(sine + cosine))
    factor = (inverse * float(1 / series.exact("pi"))).row("sqrt_rn")
    return factor * (p * shifted[0] - q * shifted[1]), factor * (p * shifted[1] + q * shifted[0])


def first_kind(order: int, x: Term) -> Term:
    size = abs(x)
    near = size < _OSCILLATING
    small = _series_of_first_kind(order, near.where(size, 1.0), -1, _OSCILLATING_TERMS).value
    large = _waves(order, near.where(_OSCILLATING, size))[0]
    result = near.where(small, size.equals(math.inf).where(0.0, large))
    result = x.is_nan().where(x, result)
    return (x < 0.0).where(-result, x.equals(0.0).where(x, result)) if order else result


def second_kind(order: int, x: Term) -> Term:
    near = x < _OSCILLATING
    inside = near.where((x > 0.0).where(x, 1.0), 1.0)
    pi, z = series.exact("pi"), _quarter_square(inside)
    logarithm = precise_logarithm(inside) - series.pair(series.exact("ln 2"), z.high) + series.pair(series.exact("gamma"), z.high)
    first = _series_of_first_kind(order, inside, -1, _OSCILLATING_TERMS)
    rest = series.precise_polynomial(_second_coefficients(order, _OSCILLATING_TERMS), z)
    if order:
        rest = rest * (inside * 0.5) - 1.0 / Pair(inside, inside.constant(0.0))
    small = ((logarithm * first + rest) * series.pair(2 / pi, z.high)).value
    if order:  # of subnormal numbers the reciprocal is infinite, and has no rest
        small = (inside < _NEARLY_ZERO).where(inside.constant(-2 / math.pi) / inside, small)
    large = _waves(order, near.where(_OSCILLATING, x))[1]
    result = near.where(small, x.equals(math.inf).where(0.0, large))
    result = x.equals(0.0).where(-math.inf, result)
    return x.is_nan().where(x, (x < 0.0).where(math.nan, result))


def _bessel_i(order: int, x: Term) -> Term:
    size = abs(x)
    near = size < _GROWING
    small = _series_of_first_kind(order, near.where(size, 1.0), 1, _GROWING_TERMS).value
    far = near.where(_GROWING, size)
    terms = _expansion(order, 40)
    sum_of = series.polynomial([(-1) ** k * terms[k] for k in range(40)], 1.0 / far)
    root = (series.pair(2 * series.exact("pi"), far) * far).root()
    power, exponent = exponential(far)
    large = scaled((power * sum_of / root).value, exponent)
    result = near.where(small, size.equals(math.inf).where(math.inf, large))
    result = with_sign_of(result, x) if order else result
    return x.is_nan().where(x, result)


def _define(name: str, order: int, function: Callable[[int, Term], Term]) -> None:
    define.define(name, floats(1), lambda x: function(order, x.to(tl.float64)).to(x.dtype))


for _order in (0, 1):
    _define(f"j{_order}", _order, first_kind)
    _define(f"y{_order}", _order, second_kind)
    _define(f"cyl_bessel_i{_order}", _order, _bessel_i)
