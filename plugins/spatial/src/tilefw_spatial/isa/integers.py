"""What the integer rows compute: on arrays of the width's own NumPy type, whose arithmetic wraps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _wide(x: Array) -> Array:
    """Wide enough for a product: int64 or uint64."""
    return x.astype(np.int64 if x.dtype.kind == "i" else np.uint64)


def saturated(exact: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """The sum or difference, in int64, ended at the type's ends."""

    def meaning(x: Array, y: Array) -> Array:
        ends = np.iinfo(x.dtype)
        return np.clip(exact(x.astype(np.int64), y.astype(np.int64)), ends.min, ends.max).astype(x.dtype)

    return meaning


def product_saturated(x: Array, y: Array) -> Array:
    """x · y ended at the type's ends."""
    ends = np.iinfo(x.dtype)
    wide = _wide(x)
    return np.clip(wide * _wide(y), wide.dtype.type(ends.min), wide.dtype.type(ends.max)).astype(x.dtype)


def product_high(x: Array, y: Array) -> Array:
    """The high half of x · y, in the operands' signedness."""
    bits = 8 * x.dtype.itemsize
    wide = _wide(x)
    return (wide * _wide(y) >> wide.dtype.type(bits)).astype(x.dtype)


def _distance(y: Array) -> Array:
    """A shift's distance: unsigned, in the operand's own width."""
    return y.view(f"u{y.dtype.itemsize}").astype(np.uint64)


def shift_left(x: Array, y: Array) -> Array:
    """x << y; 0 from the width on."""
    bits, distance = 8 * x.dtype.itemsize, _distance(y)
    wide = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    return np.where(distance < bits, wide << np.minimum(distance, bits), 0).astype(f"u{x.dtype.itemsize}").view(x.dtype)


def shift_right(x: Array, y: Array) -> Array:
    """x >> y, zeros from above; 0 from the width on."""
    bits, distance = 8 * x.dtype.itemsize, _distance(y)
    wide = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    return (wide >> np.minimum(distance, bits)).astype(f"u{x.dtype.itemsize}").view(x.dtype)


def shift_arithmetic(x: Array, y: Array) -> Array:
    """x >> y, the sign bit from above; all sign from the width on."""
    bits, distance = 8 * x.dtype.itemsize, _distance(y)
    wide = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    return (wide >> np.minimum(distance, bits).astype(np.int64)).astype(f"i{x.dtype.itemsize}").view(x.dtype)
