"""What the tests of libdevice share: one call of a function on arrays, floats worth trying, exact rounding of fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.language.extra import libdevice

FLOATS = (np.float32, np.float64)


@tilefw.jit
def one(x_ptr, out_ptr, F: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, getattr(libdevice, F)(tl.load(x_ptr + at)))


@tilefw.jit
def two(x_ptr, y_ptr, out_ptr, F: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, getattr(libdevice, F)(tl.load(x_ptr + at), tl.load(y_ptr + at)))


@tilefw.jit
def three(x_ptr, y_ptr, z_ptr, out_ptr, F: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, getattr(libdevice, F)(tl.load(x_ptr + at), tl.load(y_ptr + at), tl.load(z_ptr + at)))


@tilefw.jit
def four(x_ptr, y_ptr, z_ptr, w_ptr, out_ptr, F: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y, z, w = tl.load(x_ptr + at), tl.load(y_ptr + at), tl.load(z_ptr + at), tl.load(w_ptr + at)
    tl.store(out_ptr + at, getattr(libdevice, F)(x, y, z, w))


def called(name: str, result: Any, *operands: Any, target: str = "reference") -> np.ndarray:
    """libdevice.`name` of arrays of one length, as an array of type `result`."""
    size = operands[0].size
    padded = max(256, 1 << (size - 1).bit_length())  # one size for most: each is a kernel to compile
    arrays = [np.resize(operand, padded) for operand in operands]
    out = np.zeros(padded, result)
    with tilefw.target(target):
        (one, two, three, four)[len(arrays) - 1][(1,)](*arrays, out, F=name, N=padded)
    return out[:size]


def special(dtype: Any) -> np.ndarray:
    """Zeros, infinities, NaN, the ends of the range, halves."""
    info = np.finfo(dtype)
    ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    found = [0.0, 1.0, math.inf, 0.5, 1.5, 2.5, *ends]
    return np.array([math.nan, *found, *(-x for x in found)], dtype)


def numbers(rng: np.random.Generator, dtype: Any, size: int) -> np.ndarray:
    """Special values, any bits, and values near 1, in random order."""
    info = np.finfo(dtype)
    any_bits = rng.integers(0, 2**info.bits, size // 3, np.uint64).astype(f"u{info.bits // 8}").view(dtype)
    near = (rng.standard_normal(size) * np.exp(rng.uniform(-6, 6, size))).astype(dtype)
    return rng.permutation(np.concatenate([special(dtype), any_bits, near])[:size])


def rounded(exact: Fraction, way: str, dtype: Any, negative_zero: bool = False) -> Any:
    """A fraction as a float, rounded `rn`, `rd`, `ru` or `rz`; an exact zero has the sign that is named."""
    if not exact:
        return dtype(-0.0 if negative_zero else 0.0)
    info = np.finfo(dtype)
    size, negative = abs(exact), exact < 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    step = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    whole, rest = divmod(size, step)
    half = rest * 2 > step or (rest * 2 == step and whole % 2 == 1)
    away = {"rn": half, "rz": False, "ru": rest > 0 and not negative, "rd": rest > 0 and negative}[way]
    found = (whole + away) * step
    largest = Fraction(float(info.max))
    if found > largest:
        beyond = way == "rn" or (way == "ru" and not negative) or (way == "rd" and negative)
        return dtype((-1 if negative else 1) * (math.inf if beyond else float(info.max)))
    return dtype(-float(found) if negative else float(found))


def same(found: np.ndarray, expected: Any) -> bool:
    """Equal, zeros of one sign; any NaN is any other."""
    expected = np.asarray(expected, found.dtype)
    if found.dtype.kind != "f":
        return np.array_equal(found, expected)
    signs = np.isnan(expected) | (np.signbit(found) == np.signbit(expected))
    return np.array_equal(found, expected, equal_nan=True) and bool(signs.all())
