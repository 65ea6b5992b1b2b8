"""How far a chip's sum or product of many numbers may be from the exact one, whatever order it takes: the pieces all bounds share.

A sum of n terms in any order makes each term pass at most n - 1 roundings: |computed - exact| <= ((1 + u)^(n - 1) - 1)·Σ|x|
(Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 4.2). Where all terms are multiples of one power of two
and Σ|x| fits the format's significand above it, no order rounds at all, and the bound is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import numbers
from tilefw.tile.reference.value import Array

_FRACTION = (1 << 52) - 1
_ZERO_EXPONENT = 1 << 14  # the lowest bit of a zero: above every other
F64_UNIT = 2.0**-53  # of the reference's own sums


def unit(dtype: DType) -> float:
    """The relative error of one correctly rounded operation."""
    return 2.0 ** -(dtype.mantissa_bits + 1)


def growth(roundings: Any, relative: float) -> Any:
    """(1 + relative)^roundings - 1, for a number of roundings or an array of them."""
    return np.expm1(roundings * np.log1p(relative))


def lowest_bit(x: Array) -> Array:
    """The exponent of the lowest one bit of each finite number: x is a multiple of two to it and of no higher power."""
    codes = np.ascontiguousarray(x).view(np.int64)
    fields = (codes >> 52) & 0x7FF
    significands = (codes & _FRACTION) | np.where(fields > 0, _FRACTION + 1, 0)
    _, trailing = np.frexp((significands & -significands).astype(np.float64))
    found = np.maximum(fields, 1) - 1075 + trailing - 1
    return np.where(significands == 0, _ZERO_EXPONENT, found).astype(np.int32)


def fits(total: Array, lowest: Array, dtype: DType) -> Array:
    """Whether sums of multiples of 2^`lowest` whose magnitudes add up to `total` are exact in the format in every order."""
    reach = np.minimum(lowest, _ZERO_EXPONENT - dtype.mantissa_bits) + dtype.mantissa_bits + 1
    return (total <= np.ldexp(1.0, reach)) & (total <= numbers.largest(dtype))


def without_infinities(x: Array) -> Array:
    """The numbers with infinities and NaN as zeros."""
    finite = np.isfinite(x)
    return x if finite.all() else np.where(finite, x, 0.0)


def beyond(reach: Array, dtype: DType) -> Array:
    """Where magnitudes are more than the format has, or nobody knows how large they are."""
    return ~(reach <= numbers.largest(dtype))


def overflowed(total: Array, err: Array, dtype: DType) -> Array:
    """Where all that lies within the bound rounds to infinity."""
    top = numbers.largest(dtype)
    return np.isfinite(total) & (np.abs(total) - err > top + numbers.ulp(np.array(top), dtype))


def doubtful(x: Array, err: Array | float) -> Array:
    """Where an infinity or NaN may as well be something else."""
    return ~np.isfinite(x) & (np.asarray(err) > 0)


def finite_errors(x: Array, err: Array) -> Array:
    """The errors of the finite elements, 0 elsewhere."""
    return np.where(np.isfinite(x), err, 0.0)
