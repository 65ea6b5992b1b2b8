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


def _inverse_hyperbolic_tangent(n: int) -> Fraction:
    """atanh(1/n)."""
    return sum((Fraction(1, (2 * k + 1) * n ** (2 * k + 1)) for k in range(_BITS)), Fraction(0))


def _inverse_tangent(n: int) -> Fraction:
    """atan(1/n)."""
    return sum((Fraction((-1) ** k, (2 * k + 1) * n ** (2 * k + 1)) for k in range(_BITS)), Fraction(0))


@cache
def exact(name: str) -> Fraction:
    """A constant to more digits than any pair holds."""
    if name == "pi":  # Machin
        found = 16 * _inverse_tangent(5) - 4 * _inverse_tangent(239)
    elif name == "ln 2":
        found = 2 * _inverse_hyperbolic_tangent(3)
    elif name == "ln 10":
        found = 3 * exact("ln 2") + 2 * _inverse_hyperbolic_tangent(9)
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
    precision = like.format.fraction + 1
    first = cut(number, first_bits or precision)
    rest = cut(abs(number - first), precision) if number != first else Fraction(0)
    return Pair(like.constant(float(first)), like.constant(float(rest)))
