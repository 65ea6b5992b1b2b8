"""tgamma, lgamma and tan of libdevice in float64 against series in integers, and at special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_series import gamma, logarithm, pi, tangent
from libdevice_calls import called, same

INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(12)


def distance(found: float, exact: Fraction, dtype: Any = np.float64) -> float:
    """In units of the last place of the exact value."""
    return float(abs(Fraction(found) - exact) / Fraction(float(np.spacing(dtype(abs(float(exact)))))))


def log_gamma(x: Fraction) -> Fraction:
    return logarithm(abs(gamma(x)))


# Function: its exact value, operands, the ulp that it may be off (CUDA C++ Programming Guide: tgamma 10, lgamma 4, tan 2).
FUNCTIONS: dict[str, tuple[Callable[[Fraction], Fraction], list[float], list[tuple[float, float]]]] = {
    "tgamma": (
        gamma, [*RNG.uniform(-5, 25, 10), 2.0**-59, -(2.0**-70), 0.5, 1 + 2.0**-52],
        [(0.0, INF), (-0.0, -INF), (1.0, 1.0), (5.0, 24.0), (23.0, math.factorial(22)), (-1.0, NAN), (INF, INF), (-INF, NAN),
         (NAN, NAN), (200.0, INF), (-200.5, -0.0), (-201.5, 0.0)],
    ),
    "lgamma": (
        log_gamma, [*RNG.uniform(-2.2, 25, 8), 1 + 2.0**-52, 1 - 2.0**-40, 2 - 2.0**-50, 2 + 2.0**-20, 1.4999999, 2.0**-200],
        [(0.0, INF), (-0.0, INF), (1.0, 0.0), (2.0, 0.0), (-1.0, INF), (INF, INF), (-INF, INF), (NAN, NAN), (2.6e305, INF),
         (-1e300, INF)],
    ),
    "tan": (
        tangent, [*RNG.uniform(-10, 10, 8), *10.0 ** RNG.uniform(-300, 308, 8), math.pi / 2, 6381956970095103 * 2.0**797],
        [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (-5e-324, -5e-324)],
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_an_ulp_and_a_half_and_right_at_special_values(name: str) -> None:
    exact, operands, special = FUNCTIONS[name]
    found = called(name, np.float64, np.array([*operands, *(x for x, _ in special)]))
    for x, value in zip(operands, found.tolist(), strict=False):
        assert distance(value, exact(Fraction(x))) <= 1.5, x
    assert same(found[len(operands) :], [value for _, value in special])


def test_gamma_of_large_halves() -> None:
    """Of n + 1/2 it is the root of pi times (2n)! / (4**n n!), and for -n + 1/2 that of (-4)**n n! / (2n)!."""
    n = [20, 90, 170]
    halves = [Fraction(math.factorial(2 * k), 4**k * math.factorial(k)) for k in n]
    halves += [Fraction((-4) ** k * math.factorial(k), math.factorial(2 * k)) for k in n]
    root = Fraction(math.isqrt(int(pi() * 4**600)), 2**600)
    found = called("tgamma", np.float64, np.array([*(k + 0.5 for k in n), *(0.5 - k for k in n)]))
    assert max(distance(f, half * root) for f, half in zip(found.tolist(), halves, strict=True)) <= 1.5


def test_log_gamma_of_float32_is_within_an_ulp_and_where_it_is_small_left_of_minus_two_within_a_millionth() -> None:
    """A kernel's own float64 is enough; its zeros at 1 and 2 are near 2⁻²³, those left of -2 near none of the operands' places."""
    operands = np.array(
        [*RNG.uniform(-2, 30, 24), *RNG.uniform(-23, -2, 12), 1 + 2.0**-23, 1 - 2.0**-24, 2 + 2.0**-22, 2 - 2.0**-23, 0.5, 1.5, 2.5,
         6.5, 0.4999999, 2.4999998, 2.0**-149, -(2.0**-149), -0.5, 1e-20, -2.4570248, 170.5], np.float32,
    )
    special = np.array([0.0, -0.0, 1.0, 2.0, -1.0, -(2.0**24), INF, -INF, NAN, 1e38, 1e36], np.float32)
    found = called("lgamma", np.float32, np.concatenate([operands, special]))
    for x, value in zip(operands.tolist(), found.tolist(), strict=False):
        exact = log_gamma(Fraction(x))
        small = -23 < x < -2 and abs(exact) < 1
        assert abs(Fraction(value) - exact) < Fraction(1, 10**6) if small else distance(value, exact, np.float32) <= 1, x
    large = [float(np.float32(x * (math.log(x) - 1))) for x in (np.float64(special[10]),)]
    assert same(found[operands.size : operands.size + special.size], [INF, INF, 0.0, 0.0, INF, INF, INF, INF, NAN, INF, *large])
