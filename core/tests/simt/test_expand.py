"""Expansions on a chip that has only the base set: integers and casts exactly, functions within the table's error."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw.simt.expand import BASE_ROWS, legal
from tilefw.simt.expand.builder import TYPES
from tilefw.simt.expand.formats import SMALL
from tilefw.testing.numpy_chip import Lanes, NumpyChip
from tilefw.tile import numbers
from tilefw.tile.elementwise import ROWS

INTEGER_WORD = {"i8": np.uint32, "i16": np.uint32, "i32": np.uint32, "i64": np.uint64}


def on_base_chip(row: str, *operands: tuple[Any, str], to: str | None = None) -> Any:
    chip = NumpyChip(BASE_ROWS, len(operands[0][0]))
    return legal(chip)(row, *(Lanes(data, t) for data, t in operands), to=to).data


def truncated_quotient(n: int, d: int) -> int:
    return -1 if d == 0 else (abs(n) // abs(d)) * (1 if (n < 0) == (d < 0) else -1)


def remainder(n: int, d: int) -> int:
    return n if d == 0 else n - d * truncated_quotient(n, d)


# Row to its meaning on exact integers, read as signed or not, with the width at hand.
INTEGER_ROWS: dict[str, tuple[bool, Callable[[int, int, int], int]]] = {
    "addi": (False, lambda x, y, w: x + y), "subi": (False, lambda x, y, w: x - y), "muli": (False, lambda x, y, w: x * y),
    "mulhu": (False, lambda x, y, w: x * y >> w), "mulhs": (True, lambda x, y, w: x * y >> w),
    "divu": (False, lambda x, y, w: truncated_quotient(x, y)), "remu": (False, lambda x, y, w: remainder(x, y)),
    "divs": (True, lambda x, y, w: truncated_quotient(x, y)), "rems": (True, lambda x, y, w: remainder(x, y)),
    "andi": (False, lambda x, y, w: x & y), "ori": (False, lambda x, y, w: x | y), "xori": (False, lambda x, y, w: x ^ y),
    "mins": (True, lambda x, y, w: min(x, y)), "maxs": (True, lambda x, y, w: max(x, y)),
    "minu": (False, lambda x, y, w: min(x, y)), "maxu": (False, lambda x, y, w: max(x, y)),
    "shl": (False, lambda x, y, w: 0 if y >= w else x << y), "shru": (False, lambda x, y, w: 0 if y >= w else x >> y),
    "eqi": (False, lambda x, y, w: x == y), "nei": (False, lambda x, y, w: x != y),
    "lts": (True, lambda x, y, w: x < y), "les": (True, lambda x, y, w: x <= y),
    "gts": (True, lambda x, y, w: x > y), "ges": (True, lambda x, y, w: x >= y),
    "ltu": (False, lambda x, y, w: x < y), "leu": (False, lambda x, y, w: x <= y),
    "gtu": (False, lambda x, y, w: x > y), "geu": (False, lambda x, y, w: x >= y),
}


def as_signed(x: int, width: int) -> int:
    return x - (1 << width) if x >> (width - 1) else x


def integers(width: int) -> st.SearchStrategy[int]:
    edges = st.sampled_from([0, 1, 2, width, width - 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1])
    return st.one_of(edges, st.integers(0, (1 << width) - 1), st.integers(0, 99))


@pytest.mark.parametrize("type_", INTEGER_WORD)
@pytest.mark.parametrize("row", INTEGER_ROWS)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(data=st.data())
def test_integer_rows_are_exact(row: str, type_: str, data: st.DataObject) -> None:
    width = TYPES[type_].bits
    pairs = data.draw(st.lists(st.tuples(integers(width), integers(width)), min_size=16, max_size=16))
    signed, meaning = INTEGER_ROWS[row]
    read = (lambda v: as_signed(v, width)) if signed else (lambda v: v)
    expected = [int(meaning(read(x), read(y), width)) % (1 << width) for x, y in pairs]
    x, y = (np.array(column, INTEGER_WORD[type_]) for column in zip(*pairs, strict=True))
    assert [int(v) for v in on_base_chip(row, (x, type_), (y, type_))] == expected


@pytest.mark.parametrize("type_", INTEGER_WORD)
@pytest.mark.parametrize(("row", "meaning"), [
    ("clz", lambda x, w: w - x.bit_length()), ("popc", lambda x, w: x.bit_count()),
    ("absi", lambda x, w: abs(as_signed(x, w)) % (1 << w)),
])
def test_integer_rows_of_one_operand_are_exact(row: str, meaning: Callable[[int, int], int], type_: str) -> None:
    width = TYPES[type_].bits
    values = [0, 1, (1 << width) - 1, 1 << (width - 1), *(3 << k for k in range(width - 2))]
    got = on_base_chip(row, (np.array(values, INTEGER_WORD[type_]), type_))
    assert [int(v) for v in got] == [meaning(v, width) for v in values]


def float_codes(type_: str) -> Any:
    return np.arange(1 << TYPES[type_].bits, dtype=np.uint32)


def decoded(codes: Any, type_: str) -> Any:
    word = {8: np.uint8, 16: np.uint16}[TYPES[type_].storage_bits]
    return numbers.decode(codes.astype(word), TYPES[type_])


def some_f32(count: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    near = (rng.normal(size=count) * np.exp2(rng.integers(-24, 24, count))).astype(np.float32)
    special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2**-149, 2**-126, 3.4e38, 0.5, 1.5, 2.5, -2.5], np.float32)
    return np.concatenate([patterns, near, special])


def assert_same_values(got: Any, expected: Any) -> None:
    same = ((got == expected) & (np.signbit(got) == np.signbit(expected))) | (np.isnan(got) & np.isnan(expected))
    assert same.all(), (got[~same][:4], expected[~same][:4])


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("type_", SMALL)
def test_every_code_of_a_small_format_becomes_its_f32(type_: str) -> None:
    codes = float_codes(type_)
    assert_same_values(on_base_chip("castf", (codes, type_), to="f32").astype(np.float64), decoded(codes, type_))


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("row", "rounding"), [("castf", "rtne"), ("castf_rtz", "rtz")])
@pytest.mark.parametrize("type_", SMALL)
def test_f32_rounds_once_to_a_small_format(type_: str, row: str, rounding: Any) -> None:
    x = some_f32(4000)
    expected = numbers.encode(numbers.round_to(x.astype(np.float64), TYPES[type_], rounding), TYPES[type_])
    assert (on_base_chip(row, (x, "f32"), to=type_) == expected).all()


def rounded_integer(value: int, type_: str) -> float:
    """The nearest value of the type, by way of the f64 rounded to odd."""
    near = float(value)
    if Fraction(near) != value:
        near = float(np.nextafter(near, 0.0)) if abs(Fraction(near)) > abs(value) else near
        near = float((np.array(near).view(np.int64) | 1).view(np.float64))
    return float(numbers.round_to(np.array([near]), TYPES[type_])[0])


@pytest.mark.parametrize("row", ["s2f", "u2f"])
@pytest.mark.parametrize("source", INTEGER_WORD)
@pytest.mark.parametrize("type_", ["f32", "f16", "bf16", "f8E4M3FN", "f8E5M2"])
def test_integers_round_once_to_floats(row: str, source: str, type_: str) -> None:
    width = TYPES[source].bits
    rng = np.random.default_rng(1)
    edges = [0, 1, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1]
    values = edges + [int(rng.integers(0, 1 << 62)) >> int(rng.integers(0, 62)) & ((1 << width) - 1) for _ in range(300)]
    got = on_base_chip(row, (np.array(values, INTEGER_WORD[source]), source), to=type_)
    got = got.astype(np.float64) if type_ == "f32" else decoded(got, type_)
    read = (lambda v: as_signed(v, width)) if row == "s2f" else (lambda v: v)
    assert got.tolist() == [rounded_integer(read(v), type_) for v in values]


@pytest.mark.parametrize("row", ["f2s", "f2u"])
@pytest.mark.parametrize("to", INTEGER_WORD)
def test_floats_truncate_and_saturate_to_integers(row: str, to: str) -> None:
    width = TYPES[to].bits
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if row == "f2s" else (0, (1 << width) - 1)
    spread = (np.random.default_rng(2).normal(size=500) * np.exp2(np.arange(500) % 70)).astype(np.float32)
    x = np.concatenate([some_f32(500), spread])

    def meaning(v: float) -> int:
        if math.isnan(v):
            return 0
        return (high if v > 0 else low) if math.isinf(v) else min(max(int(v), low), high)

    got = on_base_chip(row, (x, "f32"), to=to)
    assert [int(v) for v in got] == [meaning(v) % (1 << width) for v in x.tolist()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", ["addf", "subf", "mulf", "div_rn"])
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_arithmetic_of_halves_rounds_once(row: str, type_: str) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 65536, 20000).astype(np.uint32) for _ in range(2))
    a, b = decoded(x, type_), decoded(y, type_)
    exact = {"addf": a + b, "subf": a - b, "mulf": a * b, "div_rn": a / b}[row]
    got = decoded(on_base_chip(row, (x, type_), (y, type_)), type_)
    assert np.array_equal(got, numbers.round_to(exact, TYPES[type_]), equal_nan=True)


def _nearest(exact: Fraction, type_: str) -> float:
    """The nearest number of a format with f32's exponents, ties to even."""
    dtype = TYPES[type_]
    if exact == 0:
        return 0.0
    exponent = max(math.frexp(abs(float(exact)))[1] - 1 if abs(exact) > Fraction(2) ** -1000 else -1000, 1 - dtype.bias)
    unit = Fraction(2) ** (exponent - dtype.mantissa_bits)
    rounded = round(exact / unit) * unit
    return math.copysign(math.inf, rounded) if abs(rounded) > numbers.largest(dtype) else float(rounded)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_a_fused_product_of_halves_rounds_once_however_large_or_small(type_: str) -> None:
    """Random operands, and those where z all but undoes the product or where the product breaks z's tie."""
    rng = np.random.default_rng(3)
    x, y, z = (rng.integers(0, 1 << 16, 3000, dtype=np.uint32) for _ in range(3))
    product = decoded(x, type_) * decoded(y, type_)
    opposite = numbers.encode(numbers.round_to(-product / 2, TYPES[type_]), TYPES[type_]).astype(np.uint32)
    z = np.where(np.arange(3000) % 3 == 0, opposite, np.where(np.arange(3000) % 3 == 1, z & 0x80FF, z)).astype(np.uint32)
    got = decoded(on_base_chip("fma", (x, type_), (y, type_), (z, type_)), type_)
    for i in range(3000):
        a, b, c = (float(decoded(v, type_)[i]) for v in (x, y, z))
        if not math.isfinite(a + b + c) or a * b + c != a * b + c:
            continue
        expected = _nearest(Fraction(a) * Fraction(b) + Fraction(c), type_)
        assert got[i] == expected, (a, b, c)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_a_fused_product_of_halves_has_ieees_zeros_infinities_and_nan(type_: str) -> None:
    """Every triple of special and extreme numbers, where f64's own product and sum are right but for the last rounding."""
    top, least = numbers.largest(TYPES[type_]), numbers.smallest_normal(TYPES[type_])
    values = [sign * v for v in (0.0, least * 2.0**-TYPES[type_].mantissa_bits, least, 1.0, top, math.inf) for sign in (1, -1)]
    codes = numbers.encode(np.array([*values, math.nan]), TYPES[type_]).astype(np.uint32)
    x, y, z = (part.ravel() for part in np.meshgrid(codes, codes, codes))
    a, b, c = (decoded(part, type_) for part in (x, y, z))
    exact = a * b + c
    nearest = numbers.round_to(exact, TYPES[type_], saturate=False)
    product_and_sum_are_exact = ~np.isfinite(exact) | (a == 0) | (b == 0) | (c == 0) | (np.abs(a * b) == top) & (np.abs(c) < 1)
    got = decoded(on_base_chip("fma", (x, type_), (y, type_), (z, type_)), type_)
    assert_same_values(got[product_and_sum_are_exact], nearest[product_and_sum_are_exact])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("row", "meaning"), [("div_rn", np.divide), ("remf", np.fmod)])
def test_division_and_remainder_of_f32_are_exact(row: str, meaning: Any) -> None:
    x = some_f32(6000)
    y = some_f32(6000, seed=4)
    assert np.array_equal(on_base_chip(row, (x, "f32"), (y, "f32")), meaning(x, y), equal_nan=True)


class _OnePlaceOff(NumpyChip):
    """A chip whose approximate quotient is the number next to the nearest, towards zero or away from it."""

    def __init__(self, lanes: int, towards: float) -> None:
        super().__init__(BASE_ROWS, lanes)
        self._towards = np.float32(towards)

    def _compute(self, row: str, values: list[Any], result: str) -> Any:
        exact = super()._compute(row, values, result)
        return np.nextafter(exact, self._towards) if row == "divf" and result == "f32" else exact


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("towards", [0, 4])
def test_a_number_by_itself_is_one_however_rough_the_quotient_is(towards: float) -> None:
    """The place below 1 is half a step away from it, not a whole one as everywhere above."""
    x = some_f32(2000)
    x = x[np.isfinite(x) & (x != 0)]
    got = legal(_OnePlaceOff(len(x), towards))("div_rn", Lanes(x, "f32"), Lanes(x, "f32")).data
    assert (got == 1).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("row", "meaning"), [
    ("sqrt_rn", np.sqrt), ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc),
    ("round_even", np.rint), ("negf", np.negative), ("absf", np.abs),
])
def test_exact_functions_of_f32_are_exact(row: str, meaning: Any) -> None:
    x = some_f32(6000)
    got, expected = on_base_chip(row, (x, "f32")), meaning(x)
    assert_same_values(np.where(np.isnan(got), np.nan, got), np.where(np.isnan(expected), np.nan, expected))


# Bounds in ulp: the OpenCL C specification's table "ULP values for single precision built-in math functions".
OPENCL_ULP = {
    "exp": (np.exp, 3), "exp2": (np.exp2, 3), "expm1": (np.expm1, 3),
    "log": (np.log, 3), "log2": (np.log2, 3), "log1p": (np.log1p, 2),
    "sin": (np.sin, 4), "cos": (np.cos, 4), "tanh": (np.tanh, 5), "rsqrt": (lambda v: 1 / np.sqrt(v), 2),
    "erf": (np.vectorize(math.erf), 16),
}


def ulps_off(got: Any, exact: Any) -> float:
    rounded = exact.astype(np.float32)
    step = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1))).astype(np.float64)
    off = np.abs(got.astype(np.float64) - exact) / step
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return float(np.where(same, 0, np.where(np.isnan(off), np.inf, off)).max())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", OPENCL_ULP)
def test_functions_of_f32_keep_their_bound_everywhere(row: str) -> None:
    meaning, bound = OPENCL_ULP[row]
    x = some_f32(10000)
    assert ulps_off(on_base_chip(row, (x, "f32")), meaning(x.astype(np.float64))) <= bound


# What chips have instructions for that are no better than the table asks.
ROUGH = {"divf": np.divide, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sqrt": np.sqrt}


class RoughChip(NumpyChip):
    """A chip with rough functions of its own: each is off by all that the table allows, in one direction."""

    def __init__(self, lanes: int, direction: float) -> None:
        super().__init__(BASE_ROWS | {f"{row}.f32" for row in ROUGH}, lanes)
        self._direction = direction

    def _compute(self, row: str, values: list[Any], result: str) -> Any:
        if row not in ROUGH or result != "f32":
            return super()._compute(row, values, result)
        wide = [value.astype(np.float64) for value in values]
        exact = ROUGH[row](*wide)
        return (exact + self._direction * _allowed(row, wide, exact)).astype(np.float32)


def _allowed(row: str, operands: list[Any], exact: Any) -> Any:
    """How far the table lets a result be from the exact one."""
    rule = ROWS[row].error.ulps(23)
    units = (rule.constant + rule.per_x * np.abs(operands[0])) * np.spacing(np.abs(exact.astype(np.float32))).astype(np.float64)
    if rule.window is not None:
        low, high = rule.window
        units = np.where((np.abs(operands[0]) > low) & (np.abs(operands[0]) < high), rule.absolute, units)
    return np.where(np.isfinite(units), units, 0.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("direction", [-0.99, 0.99])
@pytest.mark.parametrize("row", ["expm1", "log1p", "tanh", "erf"])
def test_functions_keep_their_bound_on_a_chip_whose_own_are_rough(row: str, direction: float) -> None:
    """An H200's lg2.approx is off by 2**-22 near 1, and log1p of small numbers was wrong by hundreds of ulp on it."""
    meaning, bound = OPENCL_ULP[row]
    x = np.concatenate([some_f32(10000), np.random.default_rng(1).uniform(-0.5, 2.0, 10000).astype(np.float32)])
    got = legal(RoughChip(len(x), direction))(row, Lanes(x, "f32")).data
    assert ulps_off(got, meaning(x.astype(np.float64))) <= bound


def _near_multiples(width: int, count: int) -> tuple[Any, Any]:
    """Dividends at, just below and just above multiples of divisors, which are of every length and near powers of two."""
    rng, most = random.Random(width), (1 << width) - 1
    pairs: list[tuple[int, int]] = []
    for _ in range(count):
        some = rng.getrandbits(rng.randint(1, width))
        near_power = (1 << rng.randrange(width)) + rng.randint(-2, 2)
        divisor = rng.choice([some, near_power, most - some, most // max(some, 1)]) & most or 1
        times = rng.choice([rng.getrandbits(rng.randint(1, width)), most // divisor - rng.randint(0, 3)])
        dividend = rng.choice([times * divisor + rng.choice([-1, 0, 1, divisor - 1]), rng.getrandbits(width), most]) & most
        pairs.append((dividend, divisor))
    dividends, divisors = zip(*pairs, strict=True)
    return np.array(dividends, f"u{width // 8}"), np.array(divisors, f"u{width // 8}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("direction", [-0.99, 0.0, 0.99])
@pytest.mark.parametrize("width", [32, 64])
def test_integers_divide_exactly_however_rough_the_reciprocal_is(width: int, direction: float) -> None:
    n, d = _near_multiples(width, 20000)
    build = legal(RoughChip(len(n), direction))
    operands = Lanes(n, f"i{width}"), Lanes(d, f"i{width}")
    assert (build("divu", *operands).data == n // d).all()
    assert (build("remu", *operands).data == n % d).all()


@pytest.mark.filterwarnings("ignore")
def test_pow_keeps_its_bound_and_its_special_cases() -> None:
    x, y = some_f32(10000), some_f32(10000, seed=5)
    assert ulps_off(on_base_chip("pow", (x, "f32"), (y, "f32")), np.power(x.astype(np.float64), y.astype(np.float64))) <= 16
    special = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan], np.float32)
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    got = on_base_chip("pow", (a, "f32"), (b, "f32"))
    exact = np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    assert_same_values(np.where(np.isnan(got), np.nan, got), np.where(np.isnan(exact), np.nan, exact))


def test_the_base_set_is_small_and_expansions_use_nothing_else() -> None:
    chip = NumpyChip(BASE_ROWS, 4)
    builder = legal(chip)
    x = Lanes(np.array([1, 2, 3, 4], np.float32), "f32")
    for row in OPENCL_ULP:
        builder(row, x)
    assert len(BASE_ROWS) <= 29  # + 4 ways to look at bits, 6 memory accesses and a barrier: at most 40


DOUBLES = BASE_ROWS | {"castf.f64.f32", "castf.f32.f64", "ltf.f64", "eqf.f64"}


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(width=64) | st.floats(width=32), min_size=1, max_size=16))
def test_f64_is_cut_to_f32_towards_zero_on_a_chip_that_only_rounds_to_nearest(values: list[float]) -> None:
    x = np.array(values)
    with np.errstate(over="ignore"):
        nearest = x.astype(np.float32)
    wanted = np.where(np.abs(nearest.astype(np.float64)) > np.abs(x), np.nextafter(nearest, np.float32(0)), nearest)
    chip = NumpyChip(DOUBLES, len(x))
    cut = legal(chip)("castf_rtz", Lanes(x, "f64"), to="f32").data
    np.testing.assert_array_equal(cut, wanted)
    assert not {row for row in chip.used if "rtz" in row}


@pytest.mark.parametrize("small", SMALL)
def test_f64_is_rounded_once_to_a_small_float_without_a_row_that_cuts(small: str) -> None:
    x = np.array([1.0, 1 + 2**-8 + 2**-40, -(1 + 2**-8 + 2**-40), 1 + 2**-11 + 2**-40, 0.1, -2.5, 1e-3, 448.0, 1e300, -1e300, 0.0])
    chip = NumpyChip(DOUBLES, len(x))
    found = decoded(legal(chip)("castf", Lanes(x, "f64"), to=small).data, small)
    np.testing.assert_array_equal(found, numbers.round_to(x, TYPES[small]))
    assert not {row for row in chip.used if "rtz" in row}
