"""The logarithm of gamma's size for float32, in float64 without pairs: a fourteenth of the operations of `gamma`'s.

NIST DLMF 5.11.1 (Stirling's series), 5.5.1 (steps), 5.5.3 (reflection), 5.7.3 (power series at 2, for the zeros at 1 and 2). All
logarithms but that of Stirling's series are one, of a product: what the steps, the power series and the reflection divide by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from tilefw.frontend.libdevice import series
from tilefw.frontend.libdevice.exponentials import balanced
from tilefw.frontend.libdevice.term import Term

# Each truncation is below 1e-11: of the power series within 1/2 of 2, of Stirling's from 6.5, where four steps lead from 2.5, of
# the sine's within a quarter of a turn.
_TAYLOR_TERMS, _STIRLING_TERMS, _SINE_TERMS = 16, 6, 9
_NEAR, _LARGE, _STEPS = 2.5, 6.5, 4


@cache
def taylor(count: int) -> tuple[Fraction, ...]:
    """Of ln(gamma(2 + d)) / d in d."""
    rest = (Fraction((-1) ** k, k) * (series.zeta(k) - 1) for k in range(2, count + 1))
    return (1 - series.exact("gamma"), *rest)


@cache
def stirling(count: int) -> tuple[Fraction, ...]:
    """Of the series in 1/z², times 1/z."""
    return tuple(series.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, count + 1))


@cache
def _sine() -> Sequence[Fraction]:
    """Of sin(pi r) / r in r²."""
    pi = series.exact("pi")
    return tuple((-1) ** k * pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(_SINE_TERMS))


def _logarithm(x: Term) -> Term:
    """ln x for a positive finite x, with a small relative error near 1 too."""
    m, e = balanced(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    near_one = s + s + (s * z) * series.polynomial(series.logarithm(series.lengths(x).logarithm), z)
    return e.to(x.dtype).fma(float(series.exact("ln 2")), near_one)


def _at_large(z: Term) -> Term:
    """ln(gamma(z)) for z >= _LARGE."""
    inverse = 1.0 / z
    rest = inverse * series.polynomial(stirling(_STIRLING_TERMS), inverse * inverse)
    constant = float((series.exact("ln 2") + series.exact("ln pi") - 1) / 2)
    return (z - 0.5).fma(_logarithm(z) - 1.0, rest + constant)


def _parts(x: Term) -> tuple[Term, Term]:
    """ln(gamma(x)) for 0 < x as a value and the number whose logarithm is to be taken from it."""
    at_zero, at_one, near = x < 0.5, x < 1.5, x < _NEAR
    distance = at_zero.where(x, x - at_one.where(x.constant(1.0), 2.0))
    at_two = distance * series.polynomial(taylor(_TAYLOR_TERMS), near.where(distance, 0.0))
    product = at_zero.where(x * (x + 1.0), at_one.where(x, 1.0))
    z = near.where(_LARGE, x)
    for _ in range(_STEPS):
        small = z < _LARGE
        product = small.where(product * z, product)
        z = small.where(z + 1.0, z)
    return near.where(at_two, _at_large(z)), product


def log_gamma(x: Term) -> Term:
    """ln|gamma(x)| in float64 of an x that is a float32."""
    size = abs(x)
    pole = x.row("floor").equals(x) & (x <= 0.0)
    inside = (pole | ~(size < math.inf)).where(1.5, x)
    mirrored = inside < 0.0
    value, product = _parts(mirrored.where(1.0 - inside, inside))
    turn = mirrored.where(inside - inside.row("round_even"), 0.5)
    sine = abs(turn * series.polynomial(_sine(), turn * turn))
    logarithm = _logarithm(mirrored.where(float(series.exact("pi")) * product / sine, product))
    result = mirrored.where(logarithm - value, value - logarithm)
    result = (pole | size.equals(math.inf)).where(math.inf, result)
    return x.is_nan().where(x, result)
