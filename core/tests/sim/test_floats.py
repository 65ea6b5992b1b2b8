"""Rounding happens once: every float primitive against exact fractions, every narrow format against all of its codes."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.sim.algebra.floating import FloatLanes
from tilefw.sim.floats import FORMATS, decode, encode

LANES = FloatLanes()
BITS = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}


def exact_round(value: Fraction, fmt: str, rounding: str, mantissa: int | None = None) -> float:
    """The float of a format nearest to an exact value, by integer arithmetic; infinities past the largest."""
    form = FORMATS[fmt]
    mantissa = form.mantissa if mantissa is None else mantissa
    if value == 0:
        return 0.0
    magnitude = abs(value)
    exponent = max(_floor_log2(magnitude), 1 - form.bias)
    unit = Fraction(2) ** (exponent - mantissa)
    whole, rest = divmod(magnitude, unit)
    negative = value < 0
    up = {
        "rn": rest * 2 > unit or (rest * 2 == unit and whole % 2 == 1), "rz": False, "rm": negative and rest > 0,
        "rp": not negative and rest > 0, "rna": rest * 2 >= unit,
    }[rounding]
    result = (whole + up) * unit
    largest = (Fraction(2) - Fraction(1, 2**mantissa)) * Fraction(2) ** form.bias
    if result > largest:
        stays = rounding == "rz" or (rounding == "rm" and not negative) or (rounding == "rp" and negative)
        result_float = float(largest) if stays else math.inf
    else:
        result_float = float(result)
    return -result_float if negative else result_float


def _floor_log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def patterns(fmt: str) -> st.SearchStrategy[int]:
    """Finite patterns, with exponents close together often, where sums round in interesting ways."""
    form = FORMATS[fmt]
    top = (1 << form.exponent) - 1
    exponents = st.one_of(st.integers(0, top - 1), st.integers(form.bias - 3, form.bias + 3), st.integers(0, 3))
    special = [0, 1, 2**form.mantissa - 1, 2 ** (form.mantissa - 1)]
    fractions = st.one_of(st.integers(0, 2**form.mantissa - 1), st.sampled_from(special))
    return st.builds(lambda s, e, m: s << (form.bits - 1) | e << form.mantissa | m, st.integers(0, 1), exponents, fractions)


def value(bits: int, fmt: str) -> Fraction:
    return Fraction(float(decode(np.array([bits], BITS[fmt]), fmt)[0]))


def array(bits: int, fmt: str) -> np.ndarray:
    return np.full((1, 1, 1), bits, BITS[fmt])


@pytest.mark.parametrize("fmt", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_arithmetic_is_rounded_once(fmt, rounding, data):
    a, b, c = (data.draw(patterns(fmt)) for _ in range(3))
    x, y, z = (value(v, fmt) for v in (a, b, c))
    arrays = [array(v, fmt) for v in (a, b, c)]
    with np.errstate(all="ignore"):
        results = {
            "add": (LANES.fadd(*arrays[:2], fmt, rounding), x + y), "sub": (LANES.fsub(*arrays[:2], fmt, rounding), x - y),
            "mul": (LANES.fmul(*arrays[:2], fmt, rounding), x * y), "fma": (LANES.ffma(*arrays, fmt, rounding), x * y + z),
        }
        if y and (rounding == "rn" or fmt in ("f32", "f64")):
            results["div"] = LANES.fdiv(*arrays[:2], fmt, rounding), x / y
    for name, (bits, exact) in results.items():
        got = float(decode(bits, fmt).flat[0])
        assert got == exact_round(exact, fmt, rounding), (name, hex(a), hex(b), hex(c))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_fma_of_f32_rounds_ties_that_f64_would_hide(data):
    """c is chosen so that a*b + c lies next to a tie of f32, where rounding through f64 goes wrong."""
    a, b = (data.draw(st.integers(1 << 23, (1 << 24) - 1)) for _ in range(2))
    shift = data.draw(st.integers(-60, 40))
    x, y = np.float32(a), np.float32(b)
    z = np.float32(math.ldexp(data.draw(st.sampled_from([-1, 1])), shift))
    exact = Fraction(int(a)) * int(b) + Fraction(float(z))
    with np.errstate(all="ignore"):
        bits = LANES.ffma(*(np.full((1, 1, 1), v).view(np.uint32) for v in (x, y, z)), "f32")
    assert float(bits.view(np.float32).flat[0]) == exact_round(exact, "f32", "rn")


def test_rounding_twice_would_be_seen():
    """The classic case: the f64 sum is exactly a tie of f32, the true sum is just above it."""
    a, b, c = np.float32(1 + 2**-23), np.float32(1 + 2**-23), np.float32(2**-24 * (1 - 2**-23))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    bits = LANES.ffma(*(np.full((1, 1, 1), v).view(np.uint32) for v in (a, b, c)), "f32")
    assert float(bits.view(np.float32).flat[0]) == exact_round(exact, "f32", "rn")


def test_an_infinite_addend_wins_over_a_product_that_overflows():
    with np.errstate(all="ignore"):
        bits = LANES.ffma(*(np.full((1, 1, 1), v).view(np.uint64) for v in (1e300, -1e300, math.inf)), "f64")
    assert bits.view(np.float64).flat[0] == math.inf


NARROW = ["f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN"]


@pytest.mark.parametrize("fmt", [*NARROW, "f16", "bf16"])
def test_every_code_survives_decoding_and_encoding(fmt):
    form = FORMATS[fmt]
    codes = np.arange(1 << form.bits, dtype=BITS.get(fmt, np.uint8))
    with np.errstate(invalid="ignore"):
        values = decode(codes, fmt).astype(np.float64)
    back = encode(values, fmt)
    number = ~np.isnan(values)
    assert (back[number] == codes[number]).all()


@pytest.mark.parametrize("fmt", ["f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f16", "bf16"])
def test_encoding_agrees_with_ml_dtypes_on_every_f32_of_a_sample(fmt):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        want = values.astype(FORMATS[fmt].numpy).view(BITS.get(fmt, np.uint8))
        got = encode(values.astype(np.float64), fmt)
    number = ~np.isnan(values)
    assert (got[number] == want[number]).all()
    assert np.isnan(decode(got[~number], fmt).astype(np.float32)).all()


@pytest.mark.parametrize("fmt", NARROW)
def test_saturation_gives_the_largest_finite_value(fmt):
    got = decode(encode(np.array([1e9, -1e9, np.inf]), fmt, saturate=True), fmt).astype(np.float64)
    assert got.tolist() == [FORMATS[fmt].maximum, -FORMATS[fmt].maximum, FORMATS[fmt].maximum]


def test_tf32_rounds_to_ten_mantissa_bits():
    values = np.random.default_rng(2).standard_normal(1000)
    for rounding in ("rn", "rna", "rz"):
        got = encode(values, "tf32", rounding).view(np.float32)
        assert got.tolist() == [exact_round(Fraction(v), "f32", rounding, mantissa=10) for v in values]


def test_conversions_to_integers_clamp_and_turn_nan_to_zero():
    values = np.array([1e20, -1e20, np.nan, -1.5, 2.5, 254.9], np.float32).view(np.uint32)
    with np.errstate(all="ignore"):
        assert LANES.float_to_int(values, "f32", 32, True, "rz").view(np.int32).tolist() == [2**31 - 1, -(2**31), 0, -1, 2, 254]
        assert LANES.float_to_int(values, "f32", 8, False, "rn").tolist() == [255, 0, 0, 0, 2, 255]
        assert LANES.float_to_int(values, "f32", 64, False, "rz").tolist() == [100000002004087734272 and 2**64 - 1, 0, 0, 0, 2, 254]


def test_minimum_prefers_numbers_and_orders_zeros():
    nan, zero, minus = (np.float32(v) for v in (np.nan, 0.0, -0.0))
    bits = [np.full((1,), v).view(np.uint32) for v in (nan, zero, minus, np.float32(1))]
    assert LANES.fmin(bits[0], bits[3], "f32").view(np.float32)[0] == 1
    assert np.isnan(LANES.fmin(bits[0], bits[3], "f32", nan=True).view(np.float32)[0])
    assert np.signbit(LANES.fmin(bits[1], bits[2], "f32").view(np.float32)[0])
    assert not np.signbit(LANES.fmax(bits[2], bits[1], "f32").view(np.float32)[0])


def test_flushing_keeps_signs_and_normals():
    x = np.array([1e-40, -1e-40, 1e-38, 2.0**-126, 0.0, -0.0], np.float32)
    got = LANES.fadd(x.view(np.uint32), np.zeros_like(x).view(np.uint32), "f32", ftz=True).view(np.float32)
    assert got.tolist() == [0, 0, 0, float(x[3]), 0, 0]
    assert np.signbit(LANES.fneg(x[:1].view(np.uint32), "f32", ftz=True).view(np.float32)[0])


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@settings(max_examples=40, deadline=None)
@given(number=st.integers(-(2**63), 2**63 - 1))
def test_integers_become_floats_rounded_once(rounding, number):
    bits = np.array([number], np.int64).view(np.uint64)
    for fmt in ("f32", "f64", "f16", "bf16"):
        with np.errstate(over="ignore"):
            got = float(decode(LANES.int_to_float(bits, True, fmt, rounding), fmt)[0])
        assert got == exact_round(Fraction(number), fmt, rounding)


def test_the_formats_are_those_of_ml_dtypes():
    for fmt in NARROW:
        info = ml_dtypes.finfo(FORMATS[fmt].numpy)
        assert float(info.max) == FORMATS[fmt].maximum
