"""Coefficients of the series behind the transcendental rows, computed from their definitions; no tables to trust.

Truncation errors are chosen below a quarter of the last place on the interval that the range reduction leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache


@dataclass(frozen=True, slots=True)
class Precision:
    """A float type as range reductions see it, and how many terms each series needs in it."""

    type: str
    word: int  # bits of the integer of the same width
    mantissa: int  # stored bits
    bias: int
    exp_terms: int  # e**r, |r| <= ln(2)/2
    log_terms: int  # atanh series in s*s, |s| <= 3 - 2*sqrt(2)
    trig_terms: int  # sin and cos, |r| <= pi/4
    erf_terms: int  # around 0 for |x| < 1, and around the centres; in f32, of the exponent of 1 - erf
    erf_limit: int  # from here on erf rounds to 1


PRECISIONS = {
    "f32": Precision("f32", 32, 23, 127, exp_terms=8, log_terms=5, trig_terms=6, erf_terms=8, erf_limit=4),
    "f64": Precision("f64", 64, 52, 1023, exp_terms=14, log_terms=12, trig_terms=10, erf_terms=24, erf_limit=6),
}


def exponential(terms: int) -> tuple[float, ...]:
    """1/k! for k = 0, 1, …"""
    return tuple(float(Fraction(1, math.factorial(k))) for k in range(terms))


@cache
def exponential_near(terms: int) -> tuple[float, ...]:
    """e**r as a polynomial for |r| <= ln(2)/2, its error spread over the interval: a term less than the series in f32."""
    return interpolated(math.exp, -math.log(2) / 2, math.log(2) / 2, terms)


def inverse_tangent(terms: int) -> tuple[float, ...]:
    """atanh(s)/s - 1 = s²/3 + s⁴/5 + …, as a polynomial in s² after one factor s² is taken out."""
    return tuple(float(Fraction(1, 2 * k + 3)) for k in range(terms))


def sine(terms: int) -> tuple[float, ...]:
    """(sin(r) - r) / r³ as a polynomial in r²."""
    return tuple(float(Fraction((-1) ** (k + 1), math.factorial(2 * k + 3))) for k in range(terms))


def cosine(terms: int) -> tuple[float, ...]:
    """(cos(r) - 1 + r²/2) / r⁴ as a polynomial in r²."""
    return tuple(float(Fraction((-1) ** k, math.factorial(2 * k + 4))) for k in range(terms))


def error_function(terms: int) -> tuple[float, ...]:
    """erf(x)/x as a polynomial in x² (NIST DLMF 7.6.1)."""
    two_over_root_pi = 2 / math.sqrt(math.pi)
    return tuple(two_over_root_pi * float(Fraction((-1) ** k, math.factorial(k) * (2 * k + 1))) for k in range(terms))


def error_function_at(centre: float, terms: int) -> tuple[float, ...]:
    """Taylor coefficients of erf around `centre`, from y'' = -2xy' (NIST DLMF 7.10)."""
    a = [math.erf(centre), 2 / math.sqrt(math.pi) * math.exp(-centre * centre)]
    for k in range(terms - 2):
        following = -2 * (centre * (k + 1) * a[k + 1] + k * a[k]) / ((k + 1) * (k + 2))
        a.append(following)
    return tuple(a)


@cache
def error_function_near(terms: int) -> tuple[float, ...]:
    """erf(x)/x as a polynomial in x² for |x| <= 1, its error spread over the interval: half the terms of the series in f32."""
    return interpolated(lambda square: math.erf(math.sqrt(square)) / math.sqrt(square), 0.0, 1.0, terms)


@cache
def complement_exponent(limit: float, terms: int) -> tuple[float, ...]:
    """log2(1 - erf(x)) as a polynomial in x for 1 <= x <= limit: it is close to a parabola."""
    return interpolated(lambda x: math.log2(math.erfc(x)), 1.0, limit, terms)


def interpolated(function: Callable[[float], float], low: float, high: float, terms: int) -> tuple[float, ...]:
    """The polynomial of `terms` coefficients, lowest first, that equals `function` at Chebyshev's nodes between `low` and `high`.

    By Newton's divided differences in floats of Python: good to f32's precision, not to f64's.
    """
    middle, half = (low + high) / 2, (high - low) / 2
    nodes = [middle + half * math.cos(math.pi * (2 * k + 1) / (2 * terms)) for k in range(terms)]
    differences = [function(x) for x in nodes]
    for order in range(1, terms):
        for i in range(terms - 1, order - 1, -1):
            differences[i] = (differences[i] - differences[i - 1]) / (nodes[i] - nodes[i - order])
    found: list[float] = []
    for node, difference in zip(reversed(nodes), reversed(differences), strict=True):
        found = [a - node * b for a, b in zip([0.0, *found], [*found, 0.0], strict=True)]
        found[0] += difference
    return tuple(found)


@cache
def pi_bits(bits: int) -> int:
    """floor(pi * 2**bits), by Machin's formula in integers."""
    guard = 64
    one = 1 << (bits + guard)

    def arctangent_of_inverse(n: int) -> int:
        term = one // n
        total, k, sign = term, 1, -1
        while term:
            term //= n * n
            total += sign * (term // (2 * k + 1))
            k, sign = k + 1, -sign
        return total

    return (16 * arctangent_of_inverse(5) - 4 * arctangent_of_inverse(239)) >> guard


@cache
def two_over_pi_words(word: int, count: int) -> tuple[int, ...]:
    """The first `count` words of 2/pi behind the binary point."""
    bits = word * count
    value = (2 << (2 * bits)) // pi_bits(bits)
    return tuple((value >> (bits - word * (k + 1))) & ((1 << word) - 1) for k in range(count))


def _cut(value: Fraction, bits: int) -> float:
    """The value truncated to `bits` significant bits."""
    exponent = math.frexp(float(value))[1]
    scaled = value * Fraction(2) ** (bits - exponent)
    return float(Fraction(math.floor(scaled)) * Fraction(2) ** (exponent - bits))


@cache
def split_constant(name: str, type_: str, pieces: int) -> tuple[float, ...]:
    """A constant as an unevaluated sum of `pieces` floats of the type, the largest first."""
    exact = {
        "half_pi": Fraction(pi_bits(400), 1 << 401),
        "log_2": _log_2(400),
        "log2_e": 1 / _log_2(400),
    }[name]
    digits = PRECISIONS[type_].mantissa + 1
    parts: list[float] = []
    for _ in range(pieces):
        parts.append(_cut(exact, digits))
        exact -= Fraction(parts[-1])
    return tuple(parts)


@cache
def _log_2(bits: int) -> Fraction:
    """ln 2 = 2 atanh(1/3), to more than so many bits."""
    places = bits + 32
    terms = ((2 << places) // ((2 * k + 1) * 3 ** (2 * k + 1)) for k in range(bits // 3))
    return Fraction(sum(terms), 1 << places)
