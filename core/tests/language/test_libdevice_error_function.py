"""erfc, erfcx, normcdf, their inverses and rsqrt_rn of libdevice, against power series in integers and exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from libdevice_calls import FLOATS, called, same

from tilefw.api.errors import KernelError
from tilefw.runtime.plugins.loader import find_target

BITS = 2600  # the terms reach exp(x²), and what is left of 1 is exp(-x²)
ONE = 1 << BITS
INF, NAN = math.inf, math.nan


def arctangent(n: int) -> int:
    """atan(1/n), in multiples of 2**-BITS."""
    total, term, k = 0, ONE // n, 0
    while term:
        total += term // (2 * k + 1) * (-1) ** k
        term //= n * n
        k += 1
    return total


@cache
def root_of_pi() -> int:
    return math.isqrt((16 * arctangent(5) - 4 * arctangent(239)) << BITS)


def error_integral(square: Fraction) -> int:
    """The sum of (-square)**k / (k! (2k + 1)), in multiples of 2**-BITS."""
    total, term, k = 0, ONE, 0
    while term:
        total += term // (2 * k + 1) * (-1) ** k
        k += 1
        term = term * square.numerator // (square.denominator * k)
    return total


def exponential(x: Fraction) -> int:
    total, term, k = 0, ONE, 0
    while term:
        total += term
        k += 1
        term = term * x.numerator // (x.denominator * k)
    return total


def erfc(x: Fraction) -> int:
    return ONE - 2 * x.numerator * error_integral(x * x) // x.denominator * ONE // root_of_pi()


def normcdf(x: Fraction) -> int:
    """1/2 + x / sqrt(2 pi) * …, by NIST DLMF 7.6.1."""
    root = math.isqrt(2 << 2 * BITS)
    part = x.numerator * error_integral(x * x / 2) // x.denominator * ONE // root_of_pi() * ONE // root
    return ONE // 2 + part


EXACT: dict[str, tuple[Callable[[Fraction], int], float, float]] = {
    "erfc": (erfc, -4.0, 26.0), "normcdf": (normcdf, -36.0, 6.0),
    "erfcx": (lambda x: exponential(x * x) * erfc(x) // ONE, -5.0, 20.0),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_within_one_ulp_of_float32_and_four_of_float64(name: str, dtype: Any) -> None:
    function, low, high = EXACT[name]
    narrow = max(-9.0, low) if dtype is np.float32 else low, min(9.0, high) if dtype is np.float32 else high
    x = np.random.default_rng(7).uniform(*narrow, 30)
    x = np.concatenate([x, np.array([2.5, np.nextafter(2.5, 0), -2.5, 1e-9, 0.25])]).astype(dtype)
    for found, value in zip(called(name, dtype, x).tolist(), x.tolist(), strict=True):
        exact = Fraction(function(Fraction(value)), ONE)
        place = Fraction(float(np.spacing(dtype(float(exact)))))
        assert abs(Fraction(found) - exact) <= (1 if dtype is np.float32 else 4) * place, value


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype: Any) -> None:
    x = np.array([INF, -INF, NAN, 0.0, -0.0, 200.0, -200.0], dtype)
    assert same(called("erfc", dtype, x), [0.0, 2.0, NAN, 1.0, 1.0, 0.0, 2.0])
    assert same(called("normcdf", dtype, x), [1.0, 0.0, NAN, 0.5, 0.5, 1.0, 0.0])
    assert same(called("erfcx", dtype, x)[[0, 1, 2, 3, 4, 6]], [0.0, INF, NAN, 1.0, 1.0, INF])


# Inverse: what it inverts, times ONE; its operands; its special values (CUDA's erfinv is within 5 ulp, erfcinv 6, normcdfinv 8).
INVERSES: dict[str, tuple[Callable[[Fraction], int], list[float], list[tuple[float, float]]]] = {
    "erfinv": (
        lambda y: ONE - erfc(y), [-0.25, 0.99, 1 - 2.0**-53, 2.0**-27],
        [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (NAN, NAN)],
    ),
    "erfcinv": (
        erfc, [1.75, 4e-4, 2.0**-800, 1 + 2.0**-40],
        [(0.0, INF), (-0.0, INF), (2.0, -INF), (1.0, 0.0), (2.5, NAN), (-1.0, NAN), (NAN, NAN)],
    ),
    "normcdfinv": (
        normcdf, [0.75, 2e-4, 1e-30],
        [(0.0, -INF), (-0.0, -INF), (1.0, INF), (0.5, 0.0), (1.5, NAN), (-1.0, NAN), (NAN, NAN)],
    ),
}


@pytest.mark.parametrize("name", INVERSES)
def test_inverses_have_their_operands_within_an_ulp(name: str) -> None:
    """An ulp to either side of the result the function is beyond the operand."""
    function, operands, special = INVERSES[name]
    found = called(name, np.float64, np.array([*operands, *(x for x, _ in special)]))
    for x, y in zip(operands, found.tolist(), strict=False):
        one, other = (Fraction(function(Fraction(math.nextafter(y, end))), ONE) for end in (-INF, INF))
        assert min(one, other) < Fraction(x) < max(one, other), x
    assert same(found[len(operands) :], [value for _, value in special])


def test_reciprocal_roots_are_rounded_correctly() -> None:
    # Of all significands, those whose exact results are nearest to the middle of two float32.
    hard = [1.4544135332107544, 1.8530941009521484, 1.6416186094284058, 2.907768964767456, 2.1552867889404297, 3.999999523162842]
    drawn = np.random.default_rng(3).uniform(0, 1e6, 100)
    x = np.concatenate([np.array([*hard, 2.0**-149, 2.0**127]), drawn]).astype(np.float32)
    for value, found in zip(x, called("rsqrt_rn", np.float32, x), strict=True):
        ends = (np.nextafter(found, np.float32(end)) for end in (INF, 0))
        above, below = ((Fraction(float(found)) + Fraction(float(end))) / 2 for end in ends)
        assert below**2 * Fraction(float(value)) < 1 < above**2 * Fraction(float(value))
    special = np.array([0.0, -0.0, INF, -1.0, NAN], np.float32)
    assert same(called("rsqrt_rn", np.float32, special), [INF, -INF, 0.0, NAN, NAN])


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3"])
def test_chips_compute_what_the_reference_does(target: str) -> None:
    try:
        find_target(target)
    except KernelError:
        pytest.skip(f"{target} is not installed")
    x = np.random.default_rng(4).uniform(0, 9, 200).astype(np.float32)
    found, expected = (called("rsqrt_rn", np.float32, x, target=on) for on in (target, "reference"))
    np.testing.assert_array_equal(found, expected)
