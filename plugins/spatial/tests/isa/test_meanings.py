"""The vector unit's arithmetic is what the table says, to the bit: against integers and fractions, one element at a time."""

from __future__ import annotations

import math
from bisect import bisect_left
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw_spatial.isa import OPS, TYPES, Use, functions, result_type
from tilefw_spatial.isa.conversions import lane_numbers
from tilefw_spatial.isa.meanings import immediate, meaning, modified
from tilefw_spatial.isa.types import FLOATS, INTEGERS, planes, reinterpret, values

SINGLES = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
           0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x4B000001, 0x33800000]
QUIET = 0x7FC00000


def single(bits: int) -> np.ndarray:
    return np.array([[bits]], np.uint32).view(np.float32)


def bits_of(x: np.ndarray) -> int:
    return int(x.view(f"u{x.dtype.itemsize}")[0, 0])


def nearest_single(exact: Fraction, zero_sign: int = 0) -> int:
    """The bits of the fp32 nearest to an exact value, ties to even."""
    if exact == 0:
        return zero_sign << 31
    size = abs(exact)
    exponent = max(math.floor(math.log2(size)) if size > Fraction(1, 2**1000) else -149, -126)
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    while exponent > -126 and Fraction(2) ** exponent > size:
        exponent -= 1
    count = round(size / Fraction(2) ** (exponent - 23))  # Fraction rounds to even
    code = count + ((exponent + 126) << 23) if count >= 1 << 23 or exponent > -126 else count
    return min(code, 0x7F800000) | (0x80000000 if exact < 0 else 0)


bit_patterns = st.one_of(st.sampled_from(SINGLES), st.integers(0, 2**32 - 1))


def finite(*patterns: int) -> bool:
    return all(p & 0x7F800000 != 0x7F800000 for p in patterns)


def exact(bits: int) -> Fraction:
    return Fraction(float(single(bits)[0, 0]))


@settings(max_examples=400, deadline=None)
@given(bit_patterns, bit_patterns, bit_patterns)
def test_sums_and_products_of_floats_are_rounded_once(x: int, y: int, z: int) -> None:
    a, b, c = single(x), single(y), single(z)
    if not finite(x, y, z):
        return
    for op, want in (("ADD", exact(x) + exact(y)), ("SUB", exact(x) - exact(y)), ("MUL", exact(x) * exact(y))):
        if want:
            assert bits_of(meaning(op, "fp32", (a, b))) == nearest_single(want), op
    want = exact(x) * exact(y) + exact(z)
    if want:
        assert bits_of(meaning("FMA", "fp32", (a, b, c))) == nearest_single(want)


@settings(max_examples=200, deadline=None)
@given(st.integers(0x30000000, 0x4F000000), st.integers(0x30000000, 0x4F000000), st.integers(0, 60), st.sampled_from([1, -1]))
def test_fma_keeps_what_is_far_below_the_product(x: int, y: int, down: int, sign: int) -> None:
    a, b = single(x), single(y)
    c = (a * b * np.float32(sign * 2.0**-down)).astype(np.float32)
    want = exact(x) * exact(y) + Fraction(float(c[0, 0]))
    if want and np.isfinite(c[0, 0]):
        assert bits_of(meaning("FMA", "fp32", (a, b, c))) == nearest_single(want)


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "FMA", "MIN", "MAX", "EX2", "LG2", "RCP", "RSQ", "SQR", "CVT.floor"])
def test_every_nan_that_is_made_has_one_code(op: str) -> None:
    row, _ = OPS[op]
    for bits in (0x7F800001, 0xFFC12345, 0xFF800123):
        assert bits_of(meaning(op, "fp32", (single(bits),) * len(row.operands))) == QUIET


@pytest.mark.parametrize(("op", "x", "y", "want"), [
    ("MIN", 0x80000000, 0x00000000, 0x80000000), ("MIN", 0x00000000, 0x80000000, 0x80000000),
    ("MAX", 0x80000000, 0x00000000, 0x00000000), ("MAX", 0x00000000, 0x80000000, 0x00000000),
    ("MIN", 0x7FC00000, 0x3F800000, QUIET), ("MAX", 0x3F800000, 0xFFC12345, QUIET),
    ("MIN.num", 0x7FC00000, 0x3F800000, 0x3F800000), ("MAX.num", 0xBF800000, 0x7F800001, 0xBF800000),
    ("MIN.num", 0x7FC00000, 0xFFC00000, QUIET), ("MAX.num", 0xFF800000, 0x7FC00000, 0xFF800000),
])
def test_extremes_of_zeros_and_nans(op: str, x: int, y: int, want: int) -> None:
    assert bits_of(meaning(op, "fp32", (single(x), single(y)))) == want


def integer(dtype: str, value: int) -> np.ndarray:
    bits = TYPES[dtype].bits
    return np.array([[value & (1 << bits) - 1]], f"u{bits // 8}").view(TYPES[dtype].numpy)


def wrapped(dtype: str, value: int) -> int:
    bits = TYPES[dtype].bits
    low = value & (1 << bits) - 1
    return low - (1 << bits) if TYPES[dtype].is_signed and low >> bits - 1 else low


def ended(dtype: str, value: int) -> int:
    ends = np.iinfo(TYPES[dtype].numpy)
    return min(max(value, int(ends.min)), int(ends.max))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(INTEGERS), st.integers(0, 2**32 - 1), st.one_of(st.integers(0, 40), st.integers(0, 2**32 - 1)))
def test_integers_are_those_of_their_width(dtype: str, x: int, y: int) -> None:
    bits, a, b = TYPES[dtype].bits, wrapped(dtype, x), wrapped(dtype, y)
    distance = y & (1 << bits) - 1
    unsigned = a & (1 << bits) - 1
    signed = unsigned - (1 << bits) if unsigned >> bits - 1 else unsigned
    want = {
        "ADD": a + b, "SUB": a - b, "MUL": a * b, "ADD.sat": ended(dtype, a + b), "SUB.sat": ended(dtype, a - b),
        "MUL.sat": ended(dtype, a * b), "MUL.hi": a * b >> bits, "MIN": min(a, b), "MAX": max(a, b), "LOGIC.and": a & b,
        "LOGIC.or": a | b, "LOGIC.xor": a ^ b, "SHIFT.left": unsigned << min(distance, 64),
        "SHIFT.right": unsigned >> min(distance, 64), "SHIFT.arith": signed >> min(distance, 64),
    }
    for op, value in want.items():
        found = meaning(op, dtype, (integer(dtype, x), integer(dtype, y)))
        assert found.dtype == TYPES[dtype].numpy
        assert int(found[0, 0]) == wrapped(dtype, value), op
    assert int(meaning("NOT", dtype, (integer(dtype, x),))[0, 0]) == wrapped(dtype, ~a)
    assert int(meaning("FMA", dtype, (integer(dtype, x), integer(dtype, y), integer(dtype, x)))[0, 0]) == wrapped(dtype, a * b + a)


def test_rows_reach_each_of_their_variants_and_types() -> None:
    for op, (row, variant) in OPS.items():
        if row.unit != "VXM":
            continue
        for dtype in row.types_of(variant):
            operands = [np.ones((4, 3), np.bool_ if field.use is Use.MASK else TYPES[dtype].numpy) for field in row.operands]
            found = meaning(op, dtype, operands, every=2)
            assert found.dtype == TYPES[result_type(op, dtype)].numpy, (op, dtype)
            assert found.shape == ((2, 3) if row.name == "TRED" else (4, 3)), op


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_comparisons_order_values(dtype: str) -> None:
    codes = np.arange(0, 2 ** min(8 * TYPES[dtype].nbytes, 16), 37, dtype=np.uint32)
    codes = (codes << 16 if TYPES[dtype].nbytes == 4 else codes).astype(f"u{TYPES[dtype].nbytes}").view(TYPES[dtype].numpy)
    rng = np.random.default_rng(3)
    x, y = (rng.choice(codes, 200)[None] for _ in range(2))
    for i, (a, b) in enumerate(zip(x[0].tolist(), y[0].tolist(), strict=True)):
        want = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
        assert {cc: bool(meaning(f"CMP.{cc}", dtype, (x, y))[0, i]) for cc in want} == want


def test_a_modifier_acts_on_the_sign_alone() -> None:
    nan = single(0xFFC12345)
    assert bits_of(modified(nan, absolute=True)) == 0x7FC12345
    assert bits_of(modified(nan, negate=True, absolute=True)) == 0xFFC12345
    assert bits_of(modified(single(0x80000000), negate=True)) == 0


# --- conversions -----------------------------------------------------------------------------------------------------------


@cache
def grid(dtype: str) -> list[float]:
    """Every finite value of a narrow float type at or above zero, in order: its code is its place."""
    count = 1 << 8 * TYPES[dtype].nbytes - 1
    with np.errstate(invalid="ignore"):
        all_of = np.arange(count, dtype=f"u{TYPES[dtype].nbytes}").view(TYPES[dtype].numpy).astype(np.float64)
    return [v for v in all_of.tolist() if math.isfinite(v)]


def nearest_code(dtype: str, size: float) -> int:
    """The code of the value nearest to `size`, the even one of two; past the last of a type with infinities, infinity's."""
    steps = grid(dtype)
    above = bisect_left(steps, size)
    if above == len(steps):
        beyond = Fraction(steps[-1]) + (Fraction(steps[-1]) - Fraction(steps[-2])) / 2
        return above if Fraction(size) >= beyond and TYPES[dtype].nbytes > 1 else above - 1
    if steps[above] == size:
        return above
    up, down = Fraction(steps[above]) - Fraction(size), Fraction(size) - Fraction(steps[above - 1])
    return above if up < down or (up == down and above % 2 == 0) else above - 1


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["fp16", "bf16", "fp8e4nv", "fp8e5"]), st.sampled_from(["fp32", "int32", "uint32"]), bit_patterns, st.data())
def test_narrow_floats_are_the_nearest_with_even_codes(to: str, source: str, bits: int, data: st.DataObject) -> None:
    steps = grid(to)
    if data.draw(st.booleans()) and source == "fp32":  # at and beside midpoints
        k = data.draw(st.integers(0, len(steps) - 2))
        middle = np.float32((steps[k] + steps[k + 1]) / 2)
        bits = int(middle.view(np.uint32)) + data.draw(st.integers(-1, 1)) & 0xFFFFFFFF
    x = np.array([[bits]], np.uint32).view(TYPES[source].numpy)
    value = float(x[0, 0])
    code = int(meaning(f"CVT.{to}", source, (x,)).view(f"u{TYPES[to].nbytes}")[0, 0])
    if math.isnan(value):
        assert math.isnan(float(np.array([code], f"u{TYPES[to].nbytes}").view(TYPES[to].numpy)[0]))
        return
    sign = 1 << 8 * TYPES[to].nbytes - 1
    assert bool(code & sign) == (math.copysign(1, value) < 0)
    want = nearest_code(to, abs(value)) if math.isfinite(value) else len(grid(to)) - (TYPES[to].nbytes == 1)
    assert code & ~sign == want


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(INTEGERS), bit_patterns)
def test_integers_of_floats_are_cut_and_ended(to: str, bits: int) -> None:
    value = float(single(bits)[0, 0])
    ends = np.iinfo(TYPES[to].numpy)
    want = 0 if math.isnan(value) else int(min(max(value, int(ends.min)), int(ends.max)))
    assert int(meaning(f"CVT.{to}", "fp32", (single(bits),))[0, 0]) == want


@settings(max_examples=200, deadline=None)
@given(bit_patterns)
def test_integral_floats(bits: int) -> None:
    x, value = single(bits), float(single(bits)[0, 0])
    if not finite(bits):
        return
    want = {"floor": math.floor(value), "ceil": math.ceil(value), "trunc": math.trunc(value), "even": round(value)}
    for name, integral in want.items():
        found = meaning(f"CVT.{name}", "fp32", (x,))
        assert float(found[0, 0]) == integral
        assert bool(bits_of(found) >> 31) == bool(bits >> 31) or integral != 0, name


def test_lanes_have_their_numbers_in_every_type() -> None:
    assert lane_numbers("uint8", 320).tolist() == [i % 256 for i in range(320)]
    assert lane_numbers("fp32", 320).tolist() == [float(i) for i in range(320)]
    assert lane_numbers("int1", 4).tolist() == [False, True, True, True]


def test_bits_travel_as_planes_and_between_types() -> None:
    x = np.array([[0x04030201, 0x7FC00000]], np.uint32).view(np.float32)
    assert planes(x).shape == (4, 1, 2)
    assert planes(x)[:, 0, 0].tolist() == [1, 2, 3, 4]
    assert values("fp32", planes(x)).view(np.uint32).tolist() == x.view(np.uint32).tolist()
    assert reinterpret(x, "uint16").tolist() == [[0x0201, 0]]
    assert reinterpret(np.array([[True]]), "int32").tolist() == [[1]]
    assert reinterpret(np.array([[-1]], np.int8), "int32").tolist() == [[255]]
    assert values("int1", np.array([[[0, 1, 2]]], np.uint8)).tolist() == [[False, True, True]]
    assert immediate("fp16", 0x12343C00).tolist() == [[1.0]]


# --- functions -------------------------------------------------------------------------------------------------------------


def test_coefficients_are_those_of_their_series() -> None:
    with localcontext() as context:
        context.prec = 60
        two = Decimal(2).ln()
        assert list(functions.EX2) == [float(Fraction(two**k / math.factorial(k))) for k in range(14)]
        assert list(functions.LG2) == [float(Fraction(2 / ((2 * k + 1) * two))) for k in range(11)]


def ulp_error(found: np.ndarray, exact_value: Decimal) -> Decimal:
    got = Decimal(float(found[0, 0]))
    exponent = max(math.frexp(float(exact_value))[1] - 24, -149)
    return abs(got - exact_value) / Decimal(2) ** exponent


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.floats(-149, 127.875, width=32), st.floats(-(2.0**-10), 2.0**-10, width=32)))
def test_ex2_is_within_its_bound(x: float) -> None:
    with localcontext() as context:
        context.prec = 40
        want = (Decimal(x) * Decimal(2).ln()).exp()
        assert ulp_error(meaning("EX2", "fp32", (np.array([[x]], np.float32),)), want) < Decimal("0.501")


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.floats(2.0**-149, 2.0**127, width=32), st.floats(0.5, 2.0, width=32)))
def test_lg2_is_within_its_bound(x: float) -> None:
    found = meaning("LG2", "fp32", (np.array([[x]], np.float32),))
    if x == 1:
        assert bits_of(found) == 0
        return
    with localcontext() as context:
        context.prec = 60
        assert ulp_error(found, Decimal(x).ln() / Decimal(2).ln()) < Decimal("0.501")


@pytest.mark.parametrize(("op", "x", "want"), [
    ("EX2", 0xFF800000, 0), ("EX2", 0x7F800000, 0x7F800000), ("EX2", 0x43000000, 0x7F800000), ("EX2", 0xC3150000, 1),
    ("EX2", 0x80000000, 0x3F800000), ("LG2", 0, 0xFF800000), ("LG2", 0x80000000, 0xFF800000), ("LG2", 0xBF800000, QUIET),
    ("LG2", 0x7F800000, 0x7F800000), ("LG2", 1, 0xC3150000), ("RCP", 0x80000000, 0xFF800000), ("RCP", 0xFF800000, 0x80000000),
    ("RSQ", 0x80000000, 0xFF800000), ("RSQ", 0x7F800000, 0), ("RSQ", 0xBF800000, QUIET), ("SQR", 0x80000000, 0x80000000),
    ("SQR", 0xBF800000, QUIET), ("SQR", 0x40800000, 0x40000000),
])
def test_functions_of_special_values(op: str, x: int, want: int) -> None:
    assert bits_of(meaning(op, "fp32", (single(x),))) == want


def _is_nearest(x: int, result: int, power: int) -> bool:
    """Whether `result` is the fp32 nearest to x^(1/power) or, negative, to its inverse: by exact comparison with the midpoints."""
    below, above = ((exact(result) + exact(result + step)) / 2 for step in (-1, 1))
    target = exact(x) if power > 0 else 1 / exact(x)
    return below ** abs(power) <= target <= above ** abs(power)


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 0x7F7FFFFF))
def test_rcp_rsq_and_sqr_are_the_nearest(x: int) -> None:
    for op, power in (("SQR", 2), ("RSQ", -2), ("RCP", -1)):
        result = bits_of(meaning(op, "fp32", (single(x),)))
        if 1 < result < 0x7F7FFFFF:
            assert _is_nearest(x, result, power), op


def test_no_reciprocal_root_is_near_a_midpoint_but_one() -> None:
    """Every eighth of the blocks of [1, 4) holds none within 4 units of double; the one that exists is rounded rightly."""
    assert _is_nearest(0x403A18E3, bits_of(meaning("RSQ", "fp32", (single(0x403A18E3),))), -2)
    for begin in range(0x3F800000, 0x40800000, 1 << 21):
        x = np.arange(begin, begin + (1 << 18), dtype=np.int32).view(np.float32)
        y = 1 / np.sqrt(x.astype(np.float64))
        exponent = np.frexp(y)[1]
        gap = np.abs(np.abs(y - y.astype(np.float32)) - np.ldexp(0.5, exponent - 24)) / np.ldexp(1.0, exponent - 53)
        assert gap[x.view(np.int32) != 0x403A18E3].min() > 4


# --- over time -------------------------------------------------------------------------------------------------------------


def test_a_fold_over_time_keeps_the_order() -> None:
    big = np.array([[1e8], [1], [-1e8], [1], [1], [2], [3], [4]], np.float32)
    assert meaning("TRED.add", "fp32", (big,), every=4).tolist() == [[1.0], [10.0]]
    start = np.array([[1], [9], [9], [9], [-1], [9], [9], [9]], np.float32)
    assert meaning("TRED.max", "fp32", (big, start), every=4).tolist() == [[1e8], [4.0]]
    assert meaning("TRED.xor", "uint8", (np.arange(8, dtype=np.uint8)[:, None],), every=8).tolist() == [[0]]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 5), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_fold_is_its_operation_step_by_step(every: int, groups: int, started: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(every * groups, 3)).astype(np.float32)
    c = rng.normal(size=(every * groups, 3)).astype(np.float32)
    found = meaning("TRED.add", "fp32", (x, c) if started else (x,), every=every)
    for g in range(groups):
        total = c[g * every] if started else x[g * every]
        for i in range(0 if started else 1, every):
            total = total + x[g * every + i]
        assert found[g].tolist() == total.tolist()
