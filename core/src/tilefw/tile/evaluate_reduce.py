"""Reductions by one row of the table: sums and products bounded for every order, extremes and integers exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import numbers
from tilefw.tile.elementwise import Row
from tilefw.tile.rounding_bounds import F64_UNIT, decided, fits, growth, lowest_bit, unit, without_infinities
from tilefw.tile.value import Array, Value, settle, some

# Rows whose meaning is a NumPy function that is associative and commutative on integers of a width that wraps.
_INTEGERS = frozenset({"addi", "muli", "andi", "ori", "xori", "mins", "maxs", "minu", "maxu"})


def reduce_by_row(row: Row, value: Value, axis: int, dtype: DType, fusion: bool) -> Value | None:
    """`value` combined along NumPy's `axis` by `row` in any order; None for a row whose bound has no closed form.

    All parts of `value` have their full length along the axis.
    """
    with np.errstate(all="ignore"):
        if not dtype.is_float:
            return _integers(row, value, axis, dtype) if dtype.bits >= 8 and row.name in _INTEGERS else None
        if row.name == "addf":
            return _sum(value, axis, dtype, fusion)
        if row.name == "mulf":
            return _product(value, axis, dtype)
        extreme = _EXTREMES.get(row.name)
        return None if extreme is None else _extreme(*extreme, value, axis)


def _any(mask: Array | None, axis: int) -> Array | None:
    return None if mask is None else some(np.asarray(mask.any(axis)))


def _integers(row: Row, value: Value, axis: int, dtype: DType) -> Value:
    x = numbers.as_unsigned(value.x, dtype.bits) if row.unsigned else value.x
    assert isinstance(row.meaning, np.ufunc)  # what stands in _INTEGERS
    found = row.meaning.reduce(x, axis=axis, dtype=x.dtype)
    return Value(found.view(numbers.int_type(dtype.bits)), free=_any(value.free, axis), wrapped=_any(value.wrapped, axis))


def _sum(value: Value, axis: int, dtype: DType, fusion: bool) -> Value:
    x, count = value.x, value.x.shape[axis]
    total = x.sum(axis)
    errors = value.err
    if fusion and value.product is not None:  # the first add of a chain may take its product unrounded
        deviation = np.abs(value.product - x)
        deviation = np.where(np.isnan(deviation), 0.0, deviation)
        errors = deviation if errors is None else errors + deviation
    clean = without_infinities(x)
    magnitude = np.abs(clean).sum(axis)
    carried = 0.0 if errors is None else errors.sum(axis)
    reach = magnitude + carried
    rounding = (growth(count - 1, unit(dtype)) + growth(count, F64_UNIT)) * reach
    exact = fits(magnitude, lowest_bit(clean).min(axis), dtype)
    err = decided(total, carried + np.where(exact & (np.asarray(carried) == 0), 0.0, rounding), reach, carried, dtype)
    total = np.where(total == 0, np.where(np.signbit(x).all(axis), -0.0, 0.0), total)
    return settle(Value(total, err), _any(value.free, axis))


def _product(value: Value, axis: int, dtype: DType) -> Value:
    x, count = value.x, value.x.shape[axis]
    total = x.prod(axis)
    clean = without_infinities(x)
    magnitude = np.abs(clean)
    errors = 0.0 if value.err is None else value.err
    wide, narrow = magnitude + errors, magnitude - errors
    carried = wide.prod(axis) - magnitude.prod(axis)
    exact = (_odd_bits(clean).sum(axis) <= dtype.mantissa_bits + 1) & (np.asarray(carried) == 0)
    rounding = growth(count - 1, unit(dtype)) + growth(count, 2 * F64_UNIT)
    err = carried + np.where(exact, 0.0, rounding * wide.prod(axis))
    # The largest and the least magnitudes that a partial product can have: within the format no order overflows or loses bits.
    reach = np.maximum(wide, 1.0).prod(axis)
    least = np.where(narrow > 0, np.minimum(narrow, 1.0), 1.0).prod(axis)
    zero = ((magnitude == 0) & np.isfinite(x)).any(axis) & (np.asarray(carried) == 0)
    kept = (least >= numbers.smallest_normal(dtype)) | (zero & np.isfinite(total))
    return settle(Value(total, np.where(kept, decided(total, err, reach, carried, dtype), np.inf)), _any(value.free, axis))


def _odd_bits(x: Array) -> Array:
    """Significant bits of each number beyond a power of two; a product's are no more than its factors' together."""
    _, top = np.frexp(x)
    bits = top - lowest_bit(x)
    return np.where((x == 0) | (bits <= 1), 0, bits)


_Reducer = Callable[..., Array]
# The NumPy function, and whether the sign bit of a zero wins by being set.
_EXTREMES: dict[str, tuple[_Reducer, bool]] = {
    "minf": (np.fmin.reduce, True),
    "minf_nan": (np.minimum.reduce, True),
    "maxf": (np.fmax.reduce, False),
    "maxf_nan": (np.maximum.reduce, False),
}


def _extreme(reduce: _Reducer, negative_zero_wins: bool, value: Value, axis: int) -> Value:
    x = value.x
    found = reduce(x, axis=axis)
    negative = (x == 0) & np.signbit(x)
    signed = negative.any(axis) if negative_zero_wins else ~((x == 0) & ~negative).any(axis)
    found = np.where(found == 0, np.where(signed, -0.0, 0.0), found)
    if value.err is None:
        return Value(found)
    low, high = reduce(x - value.err, axis=axis), reduce(x + value.err, axis=axis)
    err = np.fmax(_distance(high, found), _distance(low, found))
    err = np.where(np.isfinite(value.err).all(axis), err, np.inf)
    return settle(Value(found, err), _any(value.free, axis))


def _distance(x: Array, y: Array) -> Array:
    distance = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
    return np.where(np.isnan(distance), np.inf, distance)
