"""The NumPy meaning of the rows that are not one NumPy function.

Integer meanings get arrays of the width's own NumPy type (signed, or unsigned for the rows that say so), whose arithmetic
wraps; float meanings get float64 arrays and give the result before it is rounded to the op's format.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def divide_truncating(x: Array, y: Array) -> Array:
    """C's signed division; the smallest integer over -1 wraps to itself, and anything over 0 is -1."""
    safe = np.where((y == 0) | (y == -1), 1, y).astype(x.dtype)
    quotient = x // safe
    quotient += (quotient < 0) & (quotient * safe != x)  # floor to truncation
    return np.where(y == 0, -1, np.where(y == -1, np.negative(x), quotient)).astype(x.dtype)


def remainder_truncating(x: Array, y: Array) -> Array:
    """C's signed remainder: x - y * trunc(x / y), which is x for y = 0."""
    safe = np.where((y == 0) | (y == -1), 1, y).astype(x.dtype)
    rest = np.where(y == -1, 0, x - divide_truncating(x, safe) * safe)
    return np.where(y == 0, x, rest).astype(x.dtype)


def divide_unsigned(x: Array, y: Array) -> Array:
    """Unsigned quotient; all ones for y = 0."""
    zero = y == 0
    return np.where(zero, ~np.zeros_like(x), x // np.where(zero, 1, y).astype(x.dtype))


def remainder_unsigned(x: Array, y: Array) -> Array:
    """Unsigned remainder; x for y = 0."""
    zero = y == 0
    return np.where(zero, x, x % np.where(zero, 1, y).astype(x.dtype))


def multiply_high(x: Array, y: Array, bits: int) -> Array:
    """The high half of the product, in the operands' signedness."""
    if bits <= 32:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return ((x.astype(wide) * y.astype(wide)) >> bits).astype(x.dtype)
    # Schoolbook on 32-bit halves; the high halves carry the sign (Hacker's Delight, §8-2).
    mask = x.dtype.type(0xFFFFFFFF)
    shift = x.dtype.type(32)
    xl, xh, yl, yh = x & mask, x >> shift, y & mask, y >> shift
    low = (xl.view(np.uint64) * yl.view(np.uint64)) >> np.uint64(32)
    middle = xh * yl + low.view(x.dtype)
    carry = xl * yh + (middle & mask)
    return xh * yh + (middle >> shift) + (carry >> shift)


def shift_left(x: Array, y: Array, bits: int) -> Array:
    """x << y; 0 when the unsigned y reaches the width."""
    far = y >= bits
    return np.where(far, 0, x << np.where(far, 0, y).astype(x.dtype)).astype(x.dtype)


def shift_right_unsigned(x: Array, y: Array, bits: int) -> Array:
    """x >> y, zero filled; 0 when the unsigned y reaches the width."""
    far = y >= bits
    return np.where(far, 0, x >> np.where(far, 0, y).astype(x.dtype)).astype(x.dtype)


def shift_right_signed(x: Array, y: Array, bits: int) -> Array:
    """x >> y, sign filled; all sign when y, read as unsigned, reaches the width."""
    far = (y < 0) | (y >= bits)
    return x >> np.where(far, bits - 1, y).astype(x.dtype)


def leading_zeros(x: Array, bits: int) -> Array:
    """Zero bits above the highest one bit of unsigned x; the width for 0."""
    zeros = np.full(x.shape, bits, dtype=x.dtype)
    rest = x.copy()
    for step in (32, 16, 8, 4, 2, 1):
        if step < bits:
            high = rest >> x.dtype.type(step)
            found = high != 0
            zeros = np.where(found, zeros - x.dtype.type(step), zeros).astype(x.dtype)
            rest = np.where(found, high, rest)
    return (zeros - (rest != 0)).astype(x.dtype)


def population_count(x: Array, bits: int) -> Array:
    """One bits of unsigned x."""
    as_bytes = np.unpackbits(np.ascontiguousarray(x)[..., None].view(np.uint8), axis=-1)
    return as_bytes.sum(axis=-1).astype(x.dtype)


def minimum_number(x: Array, y: Array) -> Array:
    """IEEE 754-2019 minimumNumber: the number wins over NaN, -0 is below +0."""
    return np.where(_zeros(x, y), np.where(np.signbit(x), x, y), np.fmin(x, y))


def maximum_number(x: Array, y: Array) -> Array:
    """IEEE 754-2019 maximumNumber: the number wins over NaN, +0 is above -0."""
    return np.where(_zeros(x, y), np.where(np.signbit(x), y, x), np.fmax(x, y))


def minimum_nan(x: Array, y: Array) -> Array:
    """IEEE 754-2019 minimum: NaN wins."""
    return np.where(_zeros(x, y), np.where(np.signbit(x), x, y), np.minimum(x, y))


def maximum_nan(x: Array, y: Array) -> Array:
    """IEEE 754-2019 maximum: NaN wins."""
    return np.where(_zeros(x, y), np.where(np.signbit(x), y, x), np.maximum(x, y))


def _zeros(x: Array, y: Array) -> Array:
    return (x == 0) & (y == 0)


def clamp(x: Array, low: Array, high: Array) -> Array:
    """min(max(x, low), high) with the number winning."""
    return minimum_number(maximum_number(x, low), high)


def clamp_nan(x: Array, low: Array, high: Array) -> Array:
    """min(max(x, low), high); NaN for a NaN x."""
    return np.where(np.isnan(x), x, clamp(x, low, high))


def reciprocal_sqrt(x: Array) -> Array:
    """1 / sqrt(x)."""
    return 1.0 / np.sqrt(x)


def power(x: Array, y: Array) -> Array:
    """C's pow; NaN for a negative x and a y that is not an integer."""
    return np.power(x, y)


def erf(x: Array) -> Array:
    """The error function, by the C library's own (NumPy has none), once for each distinct value where values repeat."""
    flat = np.ascontiguousarray(x).ravel()
    return np.fromiter(map(math.erf, flat.tolist()), np.float64, flat.size).reshape(x.shape)


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y in f64 and its exact rounding error (Knuth)."""
    total = x + y
    shifted = total - x
    return total, (x - (total - shifted)) + (y - shifted)


def add_odd(x: Array, y: Array) -> Array:
    """x + y rounded to odd in f64: rounding it again to a format of at most 51 bits gives the sum rounded once.

    Boldo & Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    """
    total, error = two_sum(x, y)
    inexact = np.isfinite(total) & np.isfinite(error) & (error != 0)
    even = (np.atleast_1d(total).view(np.int64).reshape(np.shape(total)) & 1) == 0
    away = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(inexact & even, away, total)


def fused(x: Array, y: Array, z: Array) -> Array:
    """x * y + z with one rounding, for operands of f32 or narrower, whose product is exact in f64."""
    return add_odd(x * y, z)


def fused_wide(x: Array, y: Array, z: Array) -> Array:
    """x * y + z rounded once in f64: Boldo & Melquiond's algorithm; in rationals where an intermediate leaves its range."""
    product, error = two_product(x, y)
    high, low = two_sum(z, error)
    top, rest = two_sum(product, high)
    result = top + add_odd(low, rest)
    result = np.where((product == 0) & (z == 0), product + z, result)  # the sums above lose the sign of -0
    magnitude = np.abs(product)
    safe = (magnitude < 2.0**960) & (np.abs(x) < 2.0**960) & (np.abs(y) < 2.0**960) & (np.abs(z) < 2.0**960)
    safe &= (magnitude > 2.0**-900) | (x == 0) | (y == 0)
    return result if safe.all() else _fused_exactly(x, y, z, result, safe)


def two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """x * y in f64 and its exact rounding error (Dekker, with Veltkamp's split)."""
    product = x * y
    (xh, xl), (yh, yl) = _split_double(x), _split_double(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _split_double(x: Array) -> tuple[Array, Array]:
    scaled = 134217729.0 * x  # 2^27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _fused_exactly(x: Array, y: Array, z: Array, result: Array, safe: Array) -> Array:
    from fractions import Fraction

    x, y, z, result, safe = (np.array(a) for a in np.broadcast_arrays(x, y, z, result, safe))
    for index in zip(*np.nonzero(~safe), strict=True):
        a, b, c = float(x[index]), float(y[index]), float(z[index])
        if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
            result[index] = a * b + c
            continue
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        try:
            result[index] = float(exact) if exact else a * b + c
        except OverflowError:
            result[index] = math.inf if exact > 0 else -math.inf
    return result
