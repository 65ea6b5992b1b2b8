"""Every code and every rounding of every float format agrees with ml_dtypes, or with exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tilefw.api.dtypes import DTYPES, DType
from tilefw.tile import numbers
from tilefw.tile.reference.value import constant

FLOATS = [d for d in DTYPES.values() if d.is_float]
SMALL = [d for d in FLOATS if d.bits <= 8]


def oracle_type(dtype: DType):
    return getattr(ml_dtypes, dtype.numpy, None) or getattr(np, dtype.numpy)


def samples() -> np.ndarray:
    """f64 values over all magnitudes, the neighbourhoods of every 8-bit value and midpoint, and special values."""
    rng = np.random.default_rng(7)
    anywhere = rng.integers(0, 2**64, 60_000, dtype=np.uint64).view(np.float64)
    near = rng.standard_normal(20_000) * np.exp2(rng.integers(-30, 30, 20_000))
    halves = rng.integers(0, 2**16, 20_000, dtype=np.uint16).view(np.float16).astype(np.float64)
    with np.errstate(invalid="ignore"):
        singles = rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32).astype(np.float64)
    codes = np.concatenate([numbers.decode(np.arange(1 << d.bits, dtype=np.uint16), d) for d in SMALL])
    codes = np.unique(codes[np.isfinite(codes)])
    middles = (codes[1:] + codes[:-1]) / 2
    edges = np.concatenate([codes, middles, np.nextafter(middles, 9e9), np.nextafter(middles, -9e9)])
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1.7e308])
    with np.errstate(invalid="ignore"):
        return np.concatenate([anywhere, near, halves, singles, edges, special])


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.numpy and d.bits <= 16], ids=str)
def test_every_code_decodes_as_ml_dtypes_decodes_it(dtype: DType) -> None:
    codes = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits > 8 else np.uint8)
    with np.errstate(invalid="ignore"):
        expected = codes.view(oracle_type(dtype)).astype(np.float64)
    assert same(numbers.decode(codes, dtype), expected).all()


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16], ids=str)
def test_every_code_but_nan_survives_a_round_trip(dtype: DType) -> None:
    codes = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits > 8 else np.uint8)
    values = numbers.decode(codes, dtype)
    numeric = ~np.isnan(values)
    assert (numbers.encode(values, dtype)[numeric] == codes[numeric]).all()
    assert np.isnan(numbers.decode(numbers.encode(values[~numeric], dtype), dtype)).all()


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 32], ids=str)
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_rounding_picks_the_right_neighbour(dtype: DType, rounding: numbers.Rounding) -> None:
    """Against the definition, in rationals: no nearer value exists, ties take the even code, rtz never grows."""
    x = samples()
    x = x[np.isfinite(x) & (np.abs(x) <= numbers.largest(dtype))]
    x = np.random.default_rng(1).choice(x, 3000, replace=False)
    for value, got in zip(x.tolist(), numbers.round_to(x, dtype, rounding).tolist(), strict=True):
        exact, step = Fraction(abs(value)), Fraction(float(numbers.ulp(np.float64(value), dtype)))
        low = exact // step * step
        rest = exact - low
        up = rounding == "rtne" and (rest > step / 2 or (rest == step / 2 and (low / step) % 2 == 1))
        assert Fraction(abs(got)) == low + (step if up else 0), (value, got)


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.numpy], ids=str)
def test_rounding_to_nearest_agrees_with_ml_dtypes(dtype: DType) -> None:
    """From float32 inputs: ml_dtypes converts doubles through float32, which would round twice."""
    with np.errstate(all="ignore"):
        x = samples().astype(np.float32)
        expected = x.astype(oracle_type(dtype)).astype(np.float64)
    if dtype.specials == "finite":  # ml_dtypes saturates these too, but gives NaN another code
        keep = ~np.isnan(x)
        x, expected = x[keep], expected[keep]
    got = numbers.round_to(x.astype(np.float64), dtype, saturate=False)
    assert same(got, expected).all()


def test_a_double_is_not_rounded_twice() -> None:
    just_above_the_middle = np.array([1.0 + 2.0**-8 + 2.0**-40])  # through f32 it would become a tie and go down
    assert numbers.round_to(just_above_the_middle, DTYPES["bf16"])[0] == 1.0 + 2.0**-7


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_small_formats_saturate(dtype: DType) -> None:
    got = numbers.round_to(np.array([np.inf, -1e30, np.nan]), dtype)
    assert got[0] == numbers.largest(dtype) and got[1] == -numbers.largest(dtype)
    assert np.isnan(got[2]) or (dtype.specials == "finite" and got[2] == numbers.largest(dtype))


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16], ids=str)
def test_what_is_in_the_format_stays_as_it_is(dtype: DType) -> None:
    """Infinities too: only a conversion clamps."""
    codes = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits > 8 else np.uint8)
    values = numbers.decode(codes, dtype)
    assert same(numbers.in_format(values, dtype), values).all()
    numeric = ~np.isnan(values)
    assert (numbers.to_bytes(values, dtype).view(codes.dtype)[numeric] == codes[numeric]).all()
    assert all(same(constant(v, dtype).x, np.array([v])).all() for v in np.unique(values))


@pytest.mark.parametrize("bits", [1, 4, 8, 16, 32, 64])
def test_integers_wrap(bits: int) -> None:
    x = np.array([0, 1, -1, 7, 8, 127, 128, 2**31, -(2**40) + 3, 2**63 - 1, -(2**63)], dtype=np.int64)
    got = numbers.wrap(x, bits)
    for value, wrapped in zip(x.tolist(), got.tolist(), strict=True):
        low = value & ((1 << bits) - 1)
        assert int(wrapped) == (low if bits == 1 or low < 1 << (bits - 1) else low - (1 << bits))
    assert numbers.as_unsigned(got, bits).tolist() == [v & ((1 << bits) - 1) for v in x.tolist()]
