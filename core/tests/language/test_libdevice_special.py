"""libdevice's Bessel functions against their power series in integers, and against each other."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from libdevice_calls import FLOATS, called, same

from tilefw.api.errors import KernelError
from tilefw.runtime.plugins.loader import find_target

ONE = 1 << 400


def power_series(order: int, x: float, sign: int) -> Fraction:
    """NIST DLMF 10.2.2 and 10.25.2, in integers that stand for multiples of 2**-400."""
    half = Fraction(x) / 2
    size = int(abs(half) ** order * ONE)
    square = int(half * half * ONE)
    total, k = 0, 0
    while size:
        total += size * sign**k
        k += 1
        size = size * square // ONE // (k * (k + order))
    return Fraction(-total if order % 2 and x < 0 else total, ONE * math.factorial(order))


SERIES = {"j0": (0, -1, 8.0), "j1": (1, -1, 8.0), "cyl_bessel_i0": (0, 1, 60.0), "cyl_bessel_i1": (1, 1, 60.0)}


def distance(found: float, exact: Fraction, dtype: Any) -> float:
    """In units of the last place of the exact value."""
    return float(abs(Fraction(found) - exact) / Fraction(float(np.spacing(dtype(abs(float(exact)))))))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SERIES)
def test_within_two_ulps_of_the_power_series(name: str, dtype: Any) -> None:
    order, sign, limit = SERIES[name]
    x = np.random.default_rng(5).uniform(-limit, limit, 60).astype(dtype)
    found = called(name, dtype, x)
    exact = [power_series(order, value, sign) for value in x.tolist()]
    assert max(distance(f, e, dtype) for f, e in zip(found.tolist(), exact, strict=True)) <= 2.0


@pytest.mark.parametrize("name", ["j0", "j1"])
def test_zeros_are_where_the_series_has_them(name: str) -> None:
    """Next to a zero nearly all digits cancel."""
    order, _, _ = SERIES[name]
    zeros = {"j0": (2.404825557695773, 5.520078110286311), "j1": (3.831705970207512, 7.015586669815619)}[name]
    x = np.array([z + k * 2.0**-40 for z in zeros for k in (-3, -1, 1, 2)])
    found = called(name, np.float64, x)
    for value, f in zip(x.tolist(), found.tolist(), strict=True):
        assert distance(f, power_series(order, value, -1), np.float64) <= 2.0


def test_the_two_kinds_have_their_wronskian() -> None:
    """NIST DLMF 10.5.2: J1 Y0 - J0 Y1 = 2 / (pi x), below and above the place where the method changes."""
    x = np.concatenate([np.random.default_rng(6).uniform(0.01, 40, 120), [13.999, 14.0, 14.001]])
    j0, j1, y0, y1 = (called(name, np.float64, x) for name in ("j0", "j1", "y0", "y1"))
    error = np.abs(j1 * y0 - j0 * y1 - 2 / (math.pi * x))
    assert np.all(error <= 2e-14 * (np.abs(j1 * y0) + np.abs(j0 * y1)))


def test_expansions_meet_the_series() -> None:
    """Where the method changes, both sides agree with the series."""
    for name, (order, sign, _) in SERIES.items():
        places = (13.99, 14.01) if name.startswith("j") else (19.99, 20.01)
        found = called(name, np.float64, np.array(places))
        for place, f in zip(places, found.tolist(), strict=True):
            exact = float(power_series(order, place, sign))
            assert abs(f - exact) <= 1e-12 * max(1.0, abs(exact))


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype: Any) -> None:
    x = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, -1.0], dtype)  # and subnormal numbers: below
    inf, nan = math.inf, math.nan
    expected = {
        "j0": [1, 1, 0, 0, nan], "j1": [0, -0.0, 0, -0.0, nan], "y0": [-inf, -inf, 0, nan, nan, nan],
        "y1": [-inf, -inf, 0, nan, nan, nan], "cyl_bessel_i0": [1, 1, inf, inf, nan], "cyl_bessel_i1": [0, -0.0, inf, -inf, nan],
    }
    for name, values in expected.items():
        assert same(called(name, dtype, x)[: len(values)], values), name


def test_the_second_kind_at_subnormal_numbers() -> None:
    """NIST DLMF 10.8.2: Y0(x) nears 2/pi (ln(x/2) + gamma), and Y1(x) is -2 / (pi x), beyond the largest number."""
    x = np.array([5e-324, 1.5e-323, 1e-310, 1e-305])
    logarithm = [math.log(value) - math.log(2) + 0.5772156649015329 for value in x.tolist()]
    np.testing.assert_allclose(called("y0", np.float64, x), np.multiply(2 / math.pi, logarithm), rtol=4e-16)
    assert same(called("y1", np.float64, x[:3]), [-math.inf] * 3)
    np.testing.assert_allclose(called("y1", np.float64, x[3:]), -2 / math.pi / x[3:], rtol=4e-16)


def test_orders_follow_the_power_series_and_the_wronskian() -> None:
    """NIST DLMF 10.5.2, on both sides of the order; the error of J is small beside J itself where x is below the order."""
    rng = np.random.default_rng(9)
    n = np.concatenate([rng.integers(0, 30, 24), [0, 1, 40, 1 << 30]]).astype(np.int32)
    x = np.concatenate([rng.uniform(0.5, 40, 24), [3.0, 3.0, 0.25, 1.0]])
    j, above, y, y_above = (called(name, np.float64, k, x) for name in ("jn", "yn") for k in (n, n + np.int32(1)))
    for order, value, found in zip(n[:27].tolist(), x.tolist(), j.tolist(), strict=False):
        exact = power_series(order, value, -1)
        assert abs(Fraction(found) - exact) <= Fraction(1e-13) * (abs(exact) if value < order else 1), order
    assert j[27] == 0
    j, above, y, y_above, x = (values[:26] for values in (j, above, y, y_above, x))
    error = np.abs(above * y - j * y_above - 2 / (math.pi * x))
    assert np.all(error <= 1e-13 * (np.abs(above * y) + np.abs(j * y_above)))


def test_special_values_of_orders() -> None:
    n = np.array([0, 1, 2, -1, 2, 3, 2, 3, 2, 3], np.int32)
    x = np.array([0.0, 0.0, 0.0, 1.0, math.inf, -math.inf, math.nan, -2.0, -2.0, 1e-300])
    positive = called("jn", np.float64, np.array([3, 2], np.int32), np.array([2.0, 2.0]))
    inf, nan = math.inf, math.nan
    assert same(called("jn", np.float64, n, x), [1, 0, 0, nan, 0, 0, nan, -positive[0], positive[1], 0])
    assert same(called("yn", np.float64, n, x), [-inf, -inf, -inf, nan, 0, nan, nan, nan, nan, -inf])


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3"])
def test_machine_code_agrees(target: str) -> None:
    try:
        find_target(target)
    except KernelError:
        pytest.skip(f"{target} is not installed")
    x = np.random.default_rng(8).uniform(-12, 12, 32).astype(np.float32)
    assert same(called("j1", np.float32, x, target=target), called("j1", np.float32, x))
