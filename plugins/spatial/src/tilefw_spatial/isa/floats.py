"""What the fp32 rows compute beyond NumPy's own operations: one rounding of products and sums, extremes, one NaN.

Every result that is a NaN is the one with the sign clear and the highest fraction bit alone set (`quiet`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.isa.types import TYPES

Array = NDArray[Any]

# The NaN that operations make, by element type. fp8e4nv has one code for NaN beside the sign (OFP8, "E4M3").
QUIET = {"fp32": 0x7FC00000, "bf16": 0x7FC0, "fp16": 0x7E00, "fp8e5": 0x7E, "fp8e4nv": 0x7F}


def quiet(dtype: str, x: Array) -> Array:
    """x with every NaN as the operations make it."""
    bits = x.view(f"u{x.dtype.itemsize}")
    return np.where(np.isnan(x), bits.dtype.type(QUIET[dtype]), bits).view(TYPES[dtype].numpy)


def rounded_to_odd(high: NDArray[np.float64], low: NDArray[np.float64]) -> NDArray[np.float64]:
    """high + low, of which `high` is the nearest double and `low` the rest, rounded to odd: cut, the last bit set where anything
    was cut. Rounding that to fp32 is rounding the exact sum (S. Boldo, G. Melquiond, "Emulation of a FMA and correctly rounded
    sums: proved algorithms using rounding to odd", IEEE Transactions on Computers, 2008).
    """
    bits = high.view(np.int64)
    inexact = (low != 0) & np.isfinite(high) & (bits & 1 == 0)
    inward = np.signbit(high) != np.signbit(low)
    return np.where(inexact, np.where(inward, bits - 1, bits + 1), bits).view(np.float64)


def fused(x: Array, y: Array, z: Array) -> Array:
    """x · y + z, rounded once: the product of two fp32 is exact in a double, the sum's error is one (D. Knuth's two-sum)."""
    product, addend = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    return rounded_to_odd(total, error).astype(np.float32)


def minimum(x: Array, y: Array) -> Array:
    """IEEE 754-2019 minimum: NaN wins, -0 is below +0."""
    return np.where(_both_zero(x, y), np.where(np.signbit(x), x, y), np.minimum(x, y))


def maximum(x: Array, y: Array) -> Array:
    """IEEE 754-2019 maximum: NaN wins, +0 is above -0."""
    return np.where(_both_zero(x, y), np.where(np.signbit(x), y, x), np.maximum(x, y))


def minimum_number(x: Array, y: Array) -> Array:
    """IEEE 754-2019 minimumNumber: the number wins."""
    return _number_wins(x, y, minimum(x, y))


def maximum_number(x: Array, y: Array) -> Array:
    """IEEE 754-2019 maximumNumber: the number wins."""
    return _number_wins(x, y, maximum(x, y))


def _number_wins(x: Array, y: Array, both: Array) -> Array:
    """NumPy's fmin and fmax give NaN for a signalling one on some processors."""
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, both))


def _both_zero(x: Array, y: Array) -> NDArray[np.bool_]:
    return (x == 0) & (y == 0)


def modified(x: Array, negate: bool, absolute: bool) -> Array:
    """An operand with its modifiers: |x| first, then -x; of the sign bit alone, NaN's too."""
    bits = x.view(f"u{x.dtype.itemsize}")
    sign = bits.dtype.type(1 << 8 * x.dtype.itemsize - 1)
    if absolute:
        bits = bits & ~sign
    if negate:
        bits = bits ^ sign
    return bits.view(x.dtype)
