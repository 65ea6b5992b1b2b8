"""Exact floats as fractions, and their rounding, bit by bit: an oracle that shares nothing with the simulator's arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

# Bits, mantissa bits, bias (IEEE 754-2019, table 3.5).
FORMATS = {"f16": (16, 10, 15), "f32": (32, 23, 127), "f64": (64, 52, 1023)}
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
UNSIGNED = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
NAN = -1
"""Stands for every NaN in results that are compared."""


def value(pattern: int, fmt: str) -> float:
    """What a pattern stands for; every format here is exact in a Python float."""
    bits = FORMATS[fmt][0]
    return float(np.array(pattern, UNSIGNED[bits]).view(NUMPY[fmt]))


def pattern(x: float, fmt: str, mode: str = "rn", negative: bool | None = None) -> int:
    """A float or Fraction rounded to a format: its pattern, or NAN. `negative` gives the sign of a zero Fraction."""
    bits, mantissa, bias = FORMATS[fmt]
    if isinstance(x, float) and math.isnan(x):
        return NAN
    minus = math.copysign(1, x) < 0 if isinstance(x, float) else x < 0 or bool(negative and x == 0)
    sign = int(minus) << (bits - 1)
    if isinstance(x, float) and math.isinf(x):
        return sign | _infinity(fmt)
    size = abs(Fraction(x))
    if size == 0:
        return sign
    exponent = max(_exponent(size), 1 - bias)
    units = size / Fraction(2) ** (exponent - mantissa)
    whole = math.floor(units)
    whole += _rounds_up(units - whole, whole % 2 == 1, minus, mode)
    # A subnormal has exponent field 0 and no leading one: adding fields makes the carry come out right.
    field = whole + ((exponent + bias - 1) << mantissa)
    if field < _infinity(fmt):
        return sign | field
    stays = mode == "rz" or (mode == "rp" and minus) or (mode == "rm" and not minus)
    return sign | (_infinity(fmt) - 1 if stays else _infinity(fmt))


def _infinity(fmt: str) -> int:
    bits, mantissa, _ = FORMATS[fmt]
    return (1 << (bits - 1)) - (1 << mantissa)


def _exponent(size: Fraction) -> int:
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if Fraction(2) ** guess <= size else guess - 1


def _rounds_up(rest: Fraction, odd: bool, minus: bool, mode: str) -> bool:
    if mode == "rn":
        return rest > Fraction(1, 2) or (rest == Fraction(1, 2) and odd)
    return rest > 0 and {"rz": False, "rp": not minus, "rm": minus}[mode]


def flush(bits_pattern: int, fmt: str) -> int:
    """Subnormals to zero of their sign."""
    bits, mantissa, _ = FORMATS[fmt]
    size = bits_pattern & ((1 << (bits - 1)) - 1)
    return bits_pattern - size if bits_pattern != NAN and size < 1 << mantissa else bits_pattern


def fused(a: float, b: float, c: float, fmt: str, mode: str = "rn") -> int:
    """a * b + c rounded once."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return pattern(a * b + c, fmt)
    if not math.isfinite(c):
        return pattern(c, fmt)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact != 0:
        return pattern(exact, fmt, mode)
    signs = {math.copysign(1, a) * math.copysign(1, b), math.copysign(1, c)}
    return pattern(Fraction(0), fmt, mode, signs == {-1} or (len(signs) == 2 and mode == "rm"))


def product(a: float, b: float, fmt: str, mode: str = "rn") -> int:
    """a * b rounded once."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return pattern(a * b, fmt)
    return pattern(Fraction(a) * Fraction(b), fmt, mode, math.copysign(1, a) * math.copysign(1, b) < 0)


def same(pattern_: int, fmt: str) -> int:
    """A pattern, with all NaN made one."""
    return NAN if math.isnan(value(pattern_, fmt)) else pattern_


def specials(fmt: str) -> list[int]:
    """Zeros, subnormals, powers, neighbours of one, the largest, infinities, quiet and signaling NaN, with both signs."""
    bits, mantissa, bias = FORMATS[fmt]
    one, infinity = bias << mantissa, _infinity(fmt)
    sizes = [0, 1, 2, (1 << mantissa) - 1, 1 << mantissa, one - 1, one, one + 1, (bias + 1) << mantissa, one | 1 << (mantissa - 1),
             (bias - 1) << mantissa, infinity - 1, infinity, infinity | 1 << (mantissa - 1), infinity | 1, pattern(0.1, fmt)]
    return sizes + [size | 1 << (bits - 1) for size in sizes]


def samples(fmt: str, count: int, seed: int = 1) -> np.ndarray:
    """The special patterns, then random bits and random numbers of usual size, mixed."""
    bits = FORMATS[fmt][0]
    rng = np.random.default_rng(seed)
    random = rng.integers(0, (1 << bits) - 1, count, np.uint64, endpoint=True)
    usual = (rng.standard_normal(count) * 2.0 ** rng.integers(-9, 9, count)).astype(NUMPY[fmt]).view(UNSIGNED[bits])
    mixed = np.where(rng.random(count) < 0.5, random.astype(UNSIGNED[bits]), usual)
    return np.concatenate([np.array(specials(fmt), UNSIGNED[bits]), mixed])


def crossed(*columns: np.ndarray, limit: int = 4096, seed: int = 2) -> tuple[np.ndarray, ...]:
    """Rows that pair everything with everything, cut to a random `limit` of them."""
    sizes = [len(c) for c in columns]
    total = math.prod(sizes)
    rng = np.random.default_rng(seed)
    chosen = np.arange(total) if total <= limit else rng.integers(0, total, limit)
    return tuple(c[i] for c, i in zip(columns, np.unravel_index(chosen, sizes), strict=True))
