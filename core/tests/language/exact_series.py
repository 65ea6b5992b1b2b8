"""Elementary functions and gamma of fractions, as multiples of 2**-BITS in integers: power series summed to their end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import count

BITS = 1400
ONE = 1 << BITS


def _sum(first: int, factors: Iterator[Fraction]) -> int:
    """first + first * f1 + first * f1 * f2 + …"""
    total, term = 0, first
    for factor in factors:
        total += term
        term = term * factor.numerator // factor.denominator
        if abs(term) <= 1:
            return total
    raise AssertionError("the factors end")


@cache
def pi() -> Fraction:
    """Machin's formula."""
    def arctangent(n: int) -> int:
        return sum(ONE // (n ** (2 * k + 1) * (2 * k + 1)) * (-1) ** k for k in range(BITS // 4))

    return Fraction(16 * arctangent(5) - 4 * arctangent(239), ONE)


@cache
def exponential(x: Fraction) -> Fraction:
    return Fraction(_sum(ONE, (x / k for k in count(1))), ONE)


def logarithm(x: Fraction) -> Fraction:
    """Of a positive fraction: 2 atanh((m - 1) / (m + 1)) + e ln 2 for x = m * 2**e."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return _near_one(x / Fraction(2) ** exponent) + exponent * _near_one(Fraction(2))


@cache
def _near_one(m: Fraction) -> Fraction:
    s = (m - 1) / (m + 1)
    s = Fraction(s.numerator * ONE // s.denominator, ONE)
    square = s * s
    square = Fraction(square.numerator * ONE // square.denominator, ONE)
    total, power, k = 0, s.numerator * ONE // s.denominator, 0
    while power:
        total += power // (2 * k + 1)
        power = power * square.numerator // square.denominator
        k += 1
        if abs(power) <= 1:
            break
    return Fraction(2 * total, ONE)


def tangent(x: Fraction) -> Fraction:
    r = x - round(x / pi()) * pi()
    r = Fraction(r.numerator * ONE // r.denominator, ONE)
    square = -r * r
    square = Fraction(square.numerator * ONE // square.denominator, ONE)
    sine = _sum(r.numerator * ONE // r.denominator, (square / ((2 * k) * (2 * k + 1)) for k in count(1)))
    cosine = _sum(ONE, (square / ((2 * k - 1) * (2 * k)) for k in count(1)))
    return Fraction(sine, cosine)


def gamma(x: Fraction) -> Fraction:
    """For 0 < x < 30 by NIST DLMF 8.7.1, integrated to 512, and below by steps: relative error below 2**-400."""
    steps = max(0, 1 - math.floor(x))
    start = x + steps
    rest = Fraction(1)
    for k in range(steps):
        rest *= x + k
    power = exponential(start * 9 % 1 * logarithm(Fraction(2))) * 2 ** math.floor(start * 9)
    total = _sum(ONE * start.denominator // start.numerator, (512 / (start + k) for k in count(1)))
    return power / exponential(Fraction(512)) * Fraction(total, ONE) / rest
