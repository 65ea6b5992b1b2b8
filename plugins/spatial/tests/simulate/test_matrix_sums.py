"""Sums of the matrix unit equal rational arithmetic rounded once, for data of any width."""

from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tilefw_spatial.simulate import matrix_sums


def value(code: int, dtype: str) -> float:
    codes = np.array([[code]], np.uint16) if dtype in ("fp16", "bf16") else np.array([[code]], np.uint8)
    return float(matrix_sums._decode(codes, dtype)[0, 0])


def rounded(exact: Fraction) -> np.float32:
    """Nearest fp32, ties to even, by comparing with both neighbours."""
    if exact == 0:
        return np.float32(0.0)
    with np.errstate(over="ignore"):
        guess = np.float32(float(exact))
    if np.isinf(guess):
        guess = np.copysign(np.finfo(np.float32).max, guess)
    with np.errstate(over="ignore"):
        candidates = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    limit = Fraction(2) ** 128 - Fraction(2) ** 103
    if abs(exact) >= limit:
        return np.float32(np.inf if exact > 0 else -np.inf)
    finite = [c for c in candidates if np.isfinite(c)]
    best = min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1))
    return np.copysign(best, np.float32(1 if exact > 0 else -1))


def expected(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    out = np.empty((len(a), b.shape[1]), np.float32)
    for i in range(len(a)):
        for j in range(b.shape[1]):
            pairs = [(value(int(x), dtype), value(int(y), dtype)) for x, y in zip(a[i], b[:, j], strict=True)]
            if all(np.isfinite(x) and np.isfinite(y) for x, y in pairs):
                out[i, j] = rounded(sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0)))
            else:
                with np.errstate(invalid="ignore"):
                    terms = np.array([x * y for x, y in pairs])
                    out[i, j] = matrix_sums.QUIET_NAN if np.isnan(terms.sum()) else terms[np.isinf(terms)][0]
    return out


@pytest.mark.parametrize("dtype", matrix_sums.FORMATS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_codes_sum_exactly_and_round_once(dtype: str, data: st.DataObject) -> None:
    kind = np.uint16 if dtype in ("fp16", "bf16") else np.uint8
    k = data.draw(st.integers(1, 9))
    a, b = (cast(matrix_sums.Codes, data.draw(arrays(kind, shape))) for shape in ((2, k), (k, 3)))
    assert np.array_equal(matrix_sums.products(a, b, dtype).view(np.uint32), expected(a, b, dtype).view(np.uint32))


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_wide_and_cancelling_rows_of_full_depth(dtype: str) -> None:
    """Uniformly random codes reach all exponents; every second term cancels the one before but for its last places."""
    generator = np.random.default_rng(7)
    special = matrix_sums.FORMATS[dtype].first_special
    a = generator.integers(0, special, (3, 160)).astype(np.uint16)
    b = generator.integers(0, special, (160, 3)).astype(np.uint16)
    a[:, 1::2], b[1::2] = a[:, ::2] ^ 0x8000, b[::2] ^ generator.integers(0, 2, (80, 3)).astype(np.uint16)
    assert np.array_equal(matrix_sums.products(a, b, dtype).view(np.uint32), expected(a, b, dtype).view(np.uint32))


def test_a_tie_in_float64_that_the_tail_breaks() -> None:
    """1 + 2**-24 is a tie in fp32; what decides lies 2**-100 below it."""
    codes = {1.0: 0x3F80, 2.0**-24: 0x3380, 2.0**-100: 0x0D80, -(2.0**-100): 0x8D80}
    ones = np.full((3, 1), 0x3F80, np.uint16)
    for tail, want in ((2.0**-100, 1 + 2.0**-23), (-(2.0**-100), 1.0)):
        a = np.array([[codes[1.0], codes[2.0**-24], codes[tail]]], np.uint16)
        assert matrix_sums.products(a, ones, "bf16")[0, 0] == np.float32(want)


def test_int8_extremes_are_exact() -> None:
    a, b = np.full((1, 320), -128, np.int8), np.full((320, 1), -128, np.int8)
    assert matrix_sums.integer_products(a, b)[0, 0] == 320 * 128 * 128
    assert matrix_sums.add(np.array([2**31 - 1], np.int32), np.array([1], np.int32))[0] == -(2**31)
