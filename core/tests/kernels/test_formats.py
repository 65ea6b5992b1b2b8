"""The NumPy oracle's own reading and rounding of element types, against ml_dtypes, NumPy and rationals."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tilefw.api.dtypes import DTYPES
from tilefw.kernels import formats

SMALL = [d.name for d in DTYPES.values() if d.is_float and d.bits <= 16 and d.numpy]


@pytest.mark.parametrize("name", SMALL)
def test_every_value_of_a_format_rounds_to_itself(name: str) -> None:
    bits = DTYPES[name].bits
    codes = np.arange(2**bits, dtype=np.uint16 if bits > 8 else np.uint8)
    array = codes.view(formats.array_dtype(name))
    values = formats.decode(array, name)
    finite = np.isfinite(values)
    again = formats.encode(values[finite], name)
    assert again.tobytes() == array[finite].tobytes()


@pytest.mark.parametrize("name", ["fp16", "fp8e5", "fp8e4nv", "fp8e5b16", "fp8e4b8", "fp6e3m2", "fp6e2m3", "fp4e2m1"])
def test_rounding_inside_the_range_agrees_with_ml_dtypes(name: str) -> None:
    top = formats.largest(name)
    values = np.random.default_rng(0).uniform(-top, top, 20_000) * 2.0 ** np.random.default_rng(1).integers(-12, 1, 20_000)
    # float32 inputs: ml_dtypes rounds float64 by way of float32.
    values = values.astype(np.float32).astype(np.float64)
    expected = values.astype(np.float32).astype(formats.array_dtype(name)).astype(np.float64)
    np.testing.assert_array_equal(formats.decode(formats.encode(values, name), name), expected)


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16", "fp8e4nv", "fp8e4b15"])
def test_rounding_is_the_nearest_or_the_inner_neighbour(name: str, rounding: str) -> None:
    rng = np.random.default_rng(2)
    values = rng.standard_normal(300) * 2.0 ** rng.integers(-9, 1, 300)
    rounded = formats.decode(formats.encode(values, name, rounding), name)
    unit = 2.0 ** -DTYPES[name].mantissa_bits
    for exact, got in zip(values, rounded, strict=True):
        if abs(exact) > formats.largest(name):
            continue
        error = abs(Fraction(exact) - Fraction(got))
        step = Fraction(unit) * Fraction(2) ** int(np.floor(np.log2(abs(exact))))
        least = Fraction(2) ** (1 - DTYPES[name].bias - DTYPES[name].mantissa_bits)
        assert error <= max(step, least) / (2 if rounding == "rtne" else 1)
        assert rounding == "rtne" or abs(got) <= abs(exact)


def test_overflow_saturates_only_where_a_format_has_no_infinity() -> None:
    past = np.array([1e300, -1e300, np.inf])
    assert formats.decode(formats.encode(past, "fp16"), "fp16").tolist() == [np.inf, -np.inf, np.inf]
    assert formats.decode(formats.encode(past, "fp8e4nv"), "fp8e4nv").tolist() == [448.0, -448.0, 448.0]
    # Half a unit above the largest value is the first that overflows; just below it is not.
    edge = np.array([65519.996, 65520.0])
    assert formats.decode(formats.encode(edge, "fp16"), "fp16").tolist() == [65504.0, np.inf]


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_integers_are_rounded_once(name: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(-(2**63), 2**63 - 1, 2000, dtype=np.int64) >> rng.integers(0, 40, 2000)
    # Just above a tie of the format: by way of float64 it would become the tie.
    bits = DTYPES[name].mantissa_bits + 1
    values[:3] = [(1 << 62) + (1 << (62 - bits)) + 1, (1 << 62) + (1 << (62 - bits)), -(1 << 62) - (1 << (62 - bits)) - 1]
    got = formats.decode(formats.from_integers(values, name), name)
    for exact, rounded in zip(values.tolist(), got.tolist(), strict=True):
        if np.isinf(rounded):
            assert name == "fp16" and abs(exact) >= 65520
            continue
        step = 2 ** max(0, abs(exact).bit_length() - bits)
        assert abs(Fraction(exact) - Fraction(rounded)) <= Fraction(step, 2)
    if name != "fp16":
        assert got[0] > got[1] and got[2] < -got[1]


def test_floats_to_integers_saturate_and_drop_nan() -> None:
    values = np.array([1.9, -1.9, 127.5, 128.0, -129.0, np.nan, np.inf, -np.inf])
    assert formats.to_integers(values, "int8").tolist() == [1, -1, 127, 127, -128, 0, 127, -128]
    assert formats.to_integers(values, "uint8").tolist() == [1, 0, 127, 128, 0, 0, 255, 0]
    edges = np.array([2.0**63, -(2.0**63), 2.0**64, np.nextafter(2.0**63, 0)])
    assert formats.to_integers(edges, "int64").tolist() == [2**63 - 1, -(2**63), 2**63 - 1, 2**63 - 1024]
    assert formats.to_integers(edges, "uint64").tolist() == [2**63, 0, 2**64 - 1, 2**63 - 1024]


@pytest.mark.parametrize("name", ["int4", "uint4", "int8", "int32", "uint16", "int64", "uint64"])
def test_wrapping_is_numpys_own(name: str) -> None:
    values = np.random.default_rng(4).integers(-(2**63), 2**63 - 1, 1000, dtype=np.int64)
    kind = DTYPES[name]
    expected = [v % 2**kind.bits for v in values.tolist()]
    if kind.is_signed:
        expected = [v - 2**kind.bits if v >= 2 ** (kind.bits - 1) else v for v in expected]
    assert formats.wrap(values, name).tolist() == expected


def test_the_reference_rounds_alike() -> None:
    """Two implementations that share no code: the interpreter's and the oracle's."""
    from tilefw.tile import numbers

    rng = np.random.default_rng(5)
    values = np.concatenate([rng.standard_normal(4000) * 2.0 ** rng.integers(-30, 20, 4000), [0.0, -0.0, np.inf, -np.inf, np.nan]])
    for name in [*SMALL, "fp8e4b15", "fp32"]:
        for rounding in ("rtne", "rtz"):
            expected = formats.decode(formats.encode(values, name, rounding), name)
            np.testing.assert_array_equal(numbers.round_to(values, DTYPES[name], rounding), expected, err_msg=f"{name} {rounding}")


def test_ml_dtypes_is_what_arrays_hold() -> None:
    assert formats.array_dtype("bf16") == np.dtype(ml_dtypes.bfloat16)
    assert formats.array_dtype("fp8e4b15") == np.dtype(np.uint8)
