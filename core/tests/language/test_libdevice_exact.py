"""libdevice's exact functions: bits, classes, neighbours, exponents, remainders, directed rounding, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from libdevice_calls import FLOATS, called, numbers, rounded, same, special

from tilefw.api.errors import CompileError, KernelError
from tilefw.runtime.plugins.loader import find_target

WAYS = ("rn", "rd", "ru", "rz")
INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
SIZE = 128


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def words(rng: np.random.Generator, dtype: Any) -> np.ndarray:
    """Integers of every length, and the ends of the type."""
    info = np.iinfo(dtype)
    any_bits = rng.integers(info.min, info.max, SIZE, dtype, endpoint=True)
    short = any_bits >> rng.integers(0, info.bits - 1, SIZE).astype(dtype)
    return np.concatenate([short, np.array([0, 1, info.max, info.max - 1, info.min], dtype)])


def each(function: Callable[..., Any], *operands: np.ndarray) -> list[Any]:
    return [function(*(x.item() for x in group)) for group in zip(*operands, strict=True)]


# Integers ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_ffs_finds_the_lowest_one(rng: np.random.Generator, dtype: Any) -> None:
    x = words(rng, dtype)
    assert same(called("ffs", np.int32, x), each(lambda v: (v & -v).bit_length(), x))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_brev_reverses_the_bits(rng: np.random.Generator, dtype: Any) -> None:
    x = words(rng, dtype)
    width = np.iinfo(dtype).bits
    expected = each(lambda v: int(f"{v % 2**width:0{width}b}"[::-1], 2), x)
    assert same(called("brev", dtype, x), np.array(expected, f"u{width // 8}").view(dtype))


def permuted(x: int, y: int, selectors: int) -> int:
    """PTX ISA, `prmt`."""
    source = x.to_bytes(4, "little", signed=True) + y.to_bytes(4, "little", signed=True)
    nibbles = [(selectors >> (4 * k)) & 15 for k in range(4)]
    chosen = [(255 if source[n & 7] & 128 else 0) if n & 8 else source[n & 7] for n in nibbles]
    return int.from_bytes(bytes(chosen), "little", signed=True)


def test_byte_perm_is_prmt(rng: np.random.Generator) -> None:
    x, y, s = words(rng, np.int32), rng.permutation(words(rng, np.int32)), rng.permutation(words(rng, np.int32))
    assert same(called("byte_perm", np.int32, x, y, s), each(permuted, x, y, s))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_integer_arithmetic(rng: np.random.Generator, dtype: Any) -> None:
    x, y = words(rng, dtype), rng.permutation(words(rng, dtype))
    z = rng.permutation(words(rng, np.uint32))
    bias = 2**23 if dtype is np.int32 else 0

    def low(v: int) -> int:
        return (v + bias) % 2**24 - bias

    assert same(called("hadd", dtype, x, y), each(lambda a, b: (a + b) >> 1, x, y))
    assert same(called("rhadd", dtype, x, y), each(lambda a, b: (a + b + 1) >> 1, x, y))
    products = each(lambda a, b: low(a) * low(b) % 2**32, x, y)
    assert same(called("mul24", dtype, x, y), np.array(products, np.uint32).view(dtype))
    sums = each(lambda a, b, c: (abs(a - b) + c) % 2**32, x, y, z)
    assert same(called("sad", dtype, x, y, z), np.array(sums, np.uint32).view(dtype))


# Floats --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_classes(rng: np.random.Generator, dtype: Any) -> None:
    x = numbers(rng, dtype, SIZE)
    assert same(called("isinf", np.bool_, x), np.isinf(x))
    assert same(called("finitef" if dtype is np.float32 else "isfinited", np.bool_, x), np.isfinite(x))
    known = x[~np.isnan(x)]  # the sign of a NaN is nobody's
    assert same(called("signbit", np.int32, known), np.signbit(known))


NUMPY = {
    "copysign": np.copysign, "nextafter": np.nextafter, "fmod": np.fmod,
    "fdim": lambda x, y: np.where(x <= y, x.dtype.type(0), x - y),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NUMPY)
def test_functions_of_two_floats(rng: np.random.Generator, name: str, dtype: Any) -> None:
    x, y = (np.concatenate([a.ravel(), numbers(rng, dtype, SIZE)]) for a in np.meshgrid(special(dtype), special(dtype)))
    x, y = (np.where(np.isnan(a) & (name == "copysign"), dtype(1), a) for a in (x, y))
    with np.errstate(all="ignore"):
        assert same(called(name, dtype, x, y), NUMPY[name](x, y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainder_is_ieees(rng: np.random.Generator, dtype: Any) -> None:
    def expected(x: float, y: float) -> float:
        return math.nan if math.isnan(x + y) or math.isinf(x) or y == 0 else math.remainder(x, y)

    x, y = (np.concatenate([a.ravel(), numbers(rng, dtype, SIZE)]) for a in np.meshgrid(special(dtype), special(dtype)))
    assert same(called("remainder", dtype, x, y), each(expected, x, y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp_rounds_once(rng: np.random.Generator, dtype: Any) -> None:
    x = numbers(rng, dtype, 3 * SIZE)
    reach = 2 * int(np.finfo(dtype).maxexp)
    n = np.concatenate([rng.integers(-reach, reach, x.size - 2), [2**31 - 1, -(2**31)]]).astype(np.int32)
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, np.clip(n, -5000, 5000))
    assert same(called("ldexp", dtype, x, n), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exponents(rng: np.random.Generator, dtype: Any) -> None:
    def exponent(x: float) -> int:
        return math.frexp(x)[1] - 1 if math.isfinite(x) and x else 2**31 - 1 if math.isinf(x) else -(2**31)

    def as_float(x: float) -> float:
        return exponent(x) if math.isfinite(x) and x else abs(x) if x else -math.inf

    x = numbers(rng, dtype, SIZE)
    assert same(called("ilogb", np.int32, x), each(exponent, x))
    assert same(called("logb", dtype, x), each(as_float, x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_whole_numbers(rng: np.random.Generator, dtype: Any) -> None:
    def away(x: float) -> float:
        if not math.isfinite(x):
            return x
        return math.copysign(math.floor(abs(Fraction(x)) + Fraction(1, 2)), x)

    x = numbers(rng, dtype, SIZE)
    assert same(called("round", dtype, x), each(away, x))
    x = x[np.abs(x) < 2.0**62]
    assert same(called("llround", np.int64, x), each(lambda v: int(away(v)), x))
    assert same(called("llrint", np.int64, x), np.rint(x).astype(np.int64))


def test_halves_of_doubles(rng: np.random.Generator) -> None:
    high, low = words(rng, np.int32), rng.permutation(words(rng, np.int32))
    joined = (high.astype(np.int64) << 32 | low.view(np.uint32)).view(np.float64)
    assert same(called("hiloint2double", np.float64, high, low), joined)
    known = ~np.isnan(joined)
    assert same(called("double2hiint", np.int32, joined[known]), high[known])
    assert same(called("double2loint", np.int32, joined[known]), low[known])


def test_saturatef_clamps() -> None:
    x = special(np.float32)
    assert same(called("saturatef", np.float32, x), np.clip(np.nan_to_num(x, nan=0.0), 0.0, 1.0) + 0.0)


# Directions of rounding ----------------------------------------------------------------------------------------------------

EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "fma": lambda x, y, z: x * y + z,
}


def arithmetic(name: str, way: str, dtype: Any, *operands: float) -> Any:
    """What IEEE 754 says: the exact result of finite operands, rounded; zeros by their signs (6.3)."""
    signs = [math.copysign(1.0, x) < 0 for x in operands]
    product = signs[0] != signs[1]
    if name in ("mul", "div"):
        negative = product
    else:
        terms = (product, signs[2]) if name == "fma" else (signs[0], signs[1] != (name == "sub"))
        negative = any(terms) if way == "rd" else all(terms)
    return rounded(EXACT[name](*map(Fraction, operands)), way, dtype, negative)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EXACT)
def test_arithmetic_is_rounded_in_its_direction(rng: np.random.Generator, name: str, way: str, dtype: Any) -> None:
    operands = [numbers(rng, dtype, 3 * SIZE) for _ in range(3 if name == "fma" else 2)]
    operands[-1][: SIZE // 4] = -operands[0][: SIZE // 4]  # cancellation
    finite = np.logical_and.reduce([np.isfinite(x) for x in operands])
    finite &= operands[1] != 0
    operands = [x[finite] for x in operands]
    expected = each(lambda *values: arithmetic(name, way, dtype, *values), *operands)
    assert same(called(f"{name}_{way}", dtype, *operands), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_what_is_not_finite_is_not_rounded(name: str, dtype: Any) -> None:
    x, y = (a.ravel() for a in np.meshgrid(special(dtype), special(dtype)))
    infinite = ~(np.isfinite(x) & np.isfinite(y))
    x, y = x[infinite], y[infinite]
    operands = (x, y, np.ones_like(x))[: 3 if name == "fma" else 2]
    with np.errstate(all="ignore"):
        expected = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "fma": x * y + 1}[name]
    for way in WAYS:
        assert same(called(f"{name}_{way}", dtype, *operands), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_roots_and_reciprocals_are_rounded_in_their_direction(rng: np.random.Generator, dtype: Any) -> None:
    x = np.abs(numbers(rng, dtype, SIZE))
    x = x[np.isfinite(x) & (x > 0)]
    one = 2**2400

    def root(v: float, way: str) -> Any:
        scaled = Fraction(v) * one * one
        found = math.isqrt(int(scaled))
        return rounded(Fraction(2 * found + (found * found != scaled), 2 * one), way, dtype)

    for way in WAYS[1:]:
        assert same(called(f"sqrt_{way}", dtype, x), [root(v.item(), way) for v in x])
        assert same(called(f"rcp_{way}", dtype, x), [rounded(1 / Fraction(v.item()), way, dtype) for v in x])


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("source", ["float", "double"])
def test_floats_become_integers_in_each_direction(rng: np.random.Generator, source: str, integer: str) -> None:
    x = numbers(rng, np.float32 if source == "float" else np.float64, SIZE)
    info = np.iinfo(INTEGERS[integer])
    for way, whole in (("rn", round), ("rd", math.floor), ("ru", math.ceil)):
        def expected(v: float, whole: Callable[[float], int] = whole) -> int:
            if not math.isfinite(v):
                return 0 if math.isnan(v) else int(info.max if v > 0 else info.min)
            return min(max(whole(v), int(info.min)), int(info.max))

        assert same(called(f"{source}2{integer}_{way}", INTEGERS[integer], x), np.array(each(expected, x), info.dtype))


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("target", ["float", "double"])
def test_integers_become_floats_in_each_direction(rng: np.random.Generator, target: str, integer: str) -> None:
    x = words(rng, INTEGERS[integer])
    dtype = np.float32 if target == "float" else np.float64
    for way in WAYS if target == "float" or integer.endswith("ll") else ("rn",):
        found = called(f"{integer}2{target}_{way}", dtype, x)
        assert same(found, [rounded(Fraction(v.item()), way, dtype) for v in x])


@pytest.mark.parametrize("way", ["rd", "ru"])
def test_doubles_become_floats_in_each_direction(rng: np.random.Generator, way: str) -> None:
    x = numbers(rng, np.float64, 2 * SIZE)
    x = np.concatenate([x, numbers(rng, np.float32, SIZE).astype(np.float64)])
    x = x[np.isfinite(x)]
    expected = [rounded(Fraction(v.item()), way, np.float32, bool(np.signbit(v))) for v in x]
    assert same(called(f"double2float_{way}", np.float32, x), expected)


# Chips ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["nvidia-sm80", "amd-cdna3", "spatial-sdm1"])
@pytest.mark.parametrize("name", ["nextafter", "fma_rd", "float2uint_ru", "brev"])
def test_machine_code_is_exact_too(rng: np.random.Generator, name: str, target: str) -> None:
    try:
        find_target(target)
    except KernelError:
        pytest.skip(f"{target} is not installed")
    x, y, z = (numbers(rng, np.float32, 64) for _ in range(3))
    operands = {"fma_rd": (x, y, z), "float2uint_ru": (x,), "brev": (rng.integers(-(2**31), 2**31, 64).astype(np.int32),)}
    result = {"float2uint_ru": np.uint32, "brev": np.int32}.get(name, np.float32)
    arguments = operands.get(name, (x, y))
    assert same(called(name, result, *arguments, target=target), called(name, result, *arguments))


def test_nothing_is_promoted() -> None:
    with pytest.raises(CompileError, match=r"libdevice.ldexp takes \(fp32, int32\) or \(fp64, int32\), not fp32, fp32"):
        called("ldexp", np.float32, np.ones(32, np.float32), np.ones(32, np.float32))
