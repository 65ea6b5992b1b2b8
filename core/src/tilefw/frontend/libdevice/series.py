"""Constants and the coefficients of series, computed from their definitions.

A series has enough terms for its truncation to stay below an eighth of the last place on its interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from tilefw.frontend.libdevice.pairs import Pair
from tilefw.frontend.libdevice.term import Term

_BITS = 320


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many terms each series needs in a format."""

    exponential: int  # of (e**r - 1 - r) / r², |r| <= ln(2) / 2
    logarithm: int  # of (2 atanh(s) - 2s) / s³ in s², |s| <= 3 - 2 sqrt(2)
    hyperbolic: int  # of (sinh(x) - x) / x³ in x², |x| <= 1
    sine: int  # of (sin(r) - r) / r³ in r², |r| <= pi / 4
    cosine: int  # of (cos(r) - 1 + r²/2) / r⁴ in r², |r| <= pi / 4
    arctangent: int  # of (atan(t) - t) / t³ in t², |t| <= tan(pi / 8)
    cube_root: int  # steps of Halley's iteration


LENGTHS = {"fp32": Lengths(7, 5, 5, 4, 4, 9, 2), "fp64": Lengths(12, 11, 8, 8, 7, 21, 3)}


def lengths(x: Term) -> Lengths:
    """The lengths of series in the term's format."""
    return LENGTHS[x.dtype.name]


def exponential(count: int) -> list[Fraction]:
    return [Fraction(1, math.factorial(k + 2)) for k in range(count)]


def logarithm(count: int) -> list[Fraction]:
    return [Fraction(2, 2 * k + 3) for k in range(count)]


def hyperbolic(count: int) -> list[Fraction]:
    return [Fraction(1, math.factorial(2 * k + 3)) for k in range(count)]


def sine(count: int) -> list[Fraction]:
    return [Fraction((-1) ** (k + 1), math.factorial(2 * k + 3)) for k in range(count)]


def cosine(count: int) -> list[Fraction]:
    return [Fraction((-1) ** k, math.factorial(2 * k + 4)) for k in range(count)]


def arctangent(count: int) -> list[Fraction]:
    return [Fraction((-1) ** (k + 1), 2 * k + 3) for k in range(count)]


def polynomial(coefficients: Sequence[Fraction], x: Term) -> Term:
    """The polynomial of x by Horner's rule; coefficients lowest first."""
    total = x.constant(float(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        total = total.fma(x, float(coefficient))
    return total


def precise_polynomial(coefficients: Sequence[Fraction], x: Pair) -> Pair:
    """The polynomial of x by Horner's rule in pairs; coefficients lowest first."""
    total = pair(coefficients[-1], x.high)
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + pair(coefficient, x.high)
    return total


def _inverse_hyperbolic_tangent(n: int) -> Fraction:
    """atanh(1/n)."""
    return sum((Fraction(1, (2 * k + 1) * n ** (2 * k + 1)) for k in range(_BITS)), Fraction(0))


def _logarithm_of_ratio(u: Fraction) -> Fraction:
    """ln(1 + u) for |u| <= 1/2, as 2 atanh(u / (2 + u))."""
    s = Fraction(math.floor(u / (2 + u) * 4**_BITS), 4**_BITS)
    total, power, square = Fraction(0), s, s * s
    for k in range(_BITS // 4):
        total += power / (2 * k + 1)
        power = Fraction(math.floor(power * square * 4**_BITS), 4**_BITS)
    return 2 * total


def _inverse_tangent(n: int) -> Fraction:
    """atan(1/n)."""
    return sum((Fraction((-1) ** k, (2 * k + 1) * n ** (2 * k + 1)) for k in range(_BITS)), Fraction(0))


@cache
def bernoulli(n: int) -> Fraction:
    """The number B_n, by NIST DLMF 24.5.3."""
    if n == 0:
        return Fraction(1)
    return -sum((math.comb(n + 1, k) * bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)


@cache
def zeta(s: int) -> Fraction:
    """The Riemann zeta function of a whole number above 1, by NIST DLMF 25.2.9, to more digits than any pair holds."""
    n = Fraction(64)
    found = sum((Fraction(1, k**s) for k in range(1, 65)), Fraction(0)) + n ** (1 - s) / (s - 1) - n**-s / 2
    rising = Fraction(s)
    for k in range(1, 40):
        found += bernoulli(2 * k) / math.factorial(2 * k) * rising * n ** (1 - s - 2 * k)
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    return Fraction(math.floor(found * 2**_BITS), 2**_BITS)


@cache
def exact(name: str) -> Fraction:
    """A constant to more digits than any pair holds."""
    if name == "pi":  # Machin
        found = 16 * _inverse_tangent(5) - 4 * _inverse_tangent(239)
    elif name == "ln 2":
        found = 2 * _inverse_hyperbolic_tangent(3)
    elif name == "ln 10":
        found = 3 * exact("ln 2") + 2 * _inverse_hyperbolic_tangent(9)
    elif name == "ln pi":  # pi is e**r * 3, with ln(1 + u) = 2 atanh(u / (2 + u))
        ratio = exact("pi") / 3 - 1
        found = exact("ln 3") + _logarithm_of_ratio(ratio)
    elif name == "ln 3":
        found = exact("ln 2") + _logarithm_of_ratio(Fraction(1, 2))
    elif name.startswith("sqrt "):
        square = exact("pi") if name == "sqrt pi" else Fraction(name.removeprefix("sqrt "))
        found = Fraction(math.isqrt(math.floor(square * 4**_BITS)), 2**_BITS)
    elif name == "gamma":  # Euler's constant by NIST DLMF 2.10.1: its terms fall below 1e-98 at such n
        n = 64
        found = sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0)) - 6 * exact("ln 2") - Fraction(1, 2 * n)
        found += sum(bernoulli(2 * k) / (2 * k * Fraction(n) ** (2 * k)) for k in range(1, 40))
    else:
        raise KeyError(name)
    return Fraction(math.floor(found * 2**_BITS), 2**_BITS)


def cut(number: Fraction, bits: int) -> Fraction:
    """The number without what is beyond so many bits."""
    exponent = math.frexp(float(number))[1]
    scale = Fraction(2) ** (bits - exponent)
    return Fraction(math.floor(number * scale)) / scale


def pair(number: Fraction, like: Term, first_bits: int | None = None) -> Pair:
    """A constant as a pair in the format of a term, or with so few bits in its first part."""
    if number < 0:
        return -pair(-number, like, first_bits)
    precision = like.format.fraction + 1
    first = cut(number, first_bits or precision)
    rest = cut(abs(number - first), precision) if number != first else Fraction(0)
    return Pair(like.constant(float(first)), like.constant(float(rest)))
