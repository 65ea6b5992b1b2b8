"""Reductions and scans by one row of the table: sums and products bounded for every order, extremes and integers exact.

A scan's results are reductions of prefixes, so each has the bound of its own length.
"""

from __future__ import annotations

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import numbers
from tilefw.tile.elementwise import ElementwiseRow
from tilefw.tile.reference.combine_function import AxisCombiner
from tilefw.tile.reference.rounding_bounds import (
    F64_UNIT,
    beyond,
    doubtful,
    finite_errors,
    fits,
    growth,
    lowest_bit,
    overflowed,
    unit,
    without_infinities,
)
from tilefw.tile.reference.value import Array, EvaluatedValue, settle, some

# Rows whose meaning is a NumPy function that is associative and commutative on integers of a width that wraps.
_INTEGERS = frozenset({"addi", "muli", "andi", "ori", "xori", "mins", "maxs", "minu", "maxu"})


def combine_by_row(
    row: ElementwiseRow, value: EvaluatedValue, along: AxisCombiner, dtype: DType, fusion: bool
) -> EvaluatedValue | None:
    """`value` combined by `row` in any order; None for a row whose bound has no closed form.

    All parts of `value` have their full length along the axis.
    """
    with np.errstate(all="ignore"):
        if not dtype.is_float:
            return _integers(row, value, along, dtype) if dtype.bits >= 8 and row.name in _INTEGERS else None
        if row.name == "addf":
            return _sum(value, along, dtype, fusion)
        if row.name == "mulf":
            return _product(value, along, dtype)
        extreme = _EXTREMES.get(row.name)
        return None if extreme is None else _extreme(*extreme, value, along)


def _any(mask: Array | None, along: AxisCombiner) -> Array | None:
    return None if mask is None else some(along(np.logical_or, mask))


def _integers(row: ElementwiseRow, value: EvaluatedValue, along: AxisCombiner, dtype: DType) -> EvaluatedValue:
    x = numbers.as_unsigned(value.x, dtype.bits) if row.unsigned else value.x
    assert isinstance(row.meaning, np.ufunc)  # what stands in _INTEGERS
    found = along(row.meaning, x, x.dtype)
    return EvaluatedValue(
        found.view(numbers.int_type(dtype.bits)), free=_any(value.free, along), wrapped=_any(value.wrapped, along)
    )


def _sum(value: EvaluatedValue, along: AxisCombiner, dtype: DType, fusion: bool) -> EvaluatedValue:
    x, count = value.x, along.counts(value.x)
    total = along(np.add, x)
    errors = value.err
    if fusion and value.product is not None:  # the first add of a chain may take its product unrounded
        deviation = np.abs(value.product - x)
        deviation = np.where(np.isnan(deviation), 0.0, deviation) + (0.0 if value.product_err is None else value.product_err)
        errors = deviation if errors is None else errors + deviation
    clean = without_infinities(x)
    magnitude = along(np.add, np.abs(clean))
    carried = 0.0 if errors is None else along(np.add, finite_errors(x, errors))
    reach = magnitude + carried
    rounding = (growth(count - 1, unit(dtype)) + growth(count, F64_UNIT)) * reach
    exact = fits(magnitude, along(np.minimum, lowest_bit(clean)), dtype)
    err = carried + np.where(exact & (np.asarray(carried) == 0), 0.0, rounding)
    if not np.isfinite(total).all() or beyond(reach + err, dtype).any():
        total, err = _sum_with_infinities(x, 0.0 if errors is None else errors, total, err, along, dtype)
    total = np.where(total == 0, np.where(along(np.logical_and, np.signbit(x)), -0.0, 0.0), total)
    return settle(EvaluatedValue(total, err), _any(value.free, along))


def _sum_with_infinities(
    x: Array, errors: Array | float, total: Array, err: Array, along: AxisCombiner, dtype: DType
) -> tuple[Array, Array]:
    """A sum and its bound where terms are infinite or NaN, or where partial sums may overflow.

    An infinity or NaN that is sure decides the sum in every order, unless an infinity of the other sign can come up: as a term,
    or from finite terms that add up beyond the format. A sum that is itself beyond it is infinite where only one sign can come.
    """
    finite = np.isfinite(x)
    doubt = along(np.logical_or, doubtful(x, errors))
    sure = along(np.add, np.where(finite | doubtful(x, errors), 0.0, x))
    # The farthest that partial sums may come above and below zero; from terms of one sign none comes to the other side.
    up, down = (along(np.add, np.where(finite, np.maximum(errors + x * sign, 0.0), 0.0)) for sign in (1, -1))
    up, down = ((side > 0) & beyond(side + err, dtype) for side in (up, down))
    settled = np.isnan(sure) | ((sure == total) & ~doubt & ~np.where(sure > 0, down, up))
    limit = overflowed(total, err, dtype) & ~doubt & ~np.where(total > 0, down, up)
    found = np.where(limit, np.copysign(np.inf, total), np.where(np.isnan(sure), np.nan, total))
    open_end = np.where(np.isfinite(total) & ~up & ~down, err, np.inf)
    return found, np.where(limit | (settled & ~np.isfinite(found)), 0.0, open_end)


def _product(value: EvaluatedValue, along: AxisCombiner, dtype: DType) -> EvaluatedValue:
    x, count = value.x, along.counts(value.x)
    total = along(np.multiply, x)
    clean = without_infinities(x)
    magnitude = np.abs(clean)
    errors = np.zeros(x.shape) if value.err is None else finite_errors(x, value.err)
    wide, narrow = magnitude + errors, magnitude - errors
    reached = along(np.multiply, wide)
    carried = reached - along(np.multiply, magnitude)
    exact = (along(np.add, _odd_bits(clean)) <= dtype.mantissa_bits + 1) & (np.asarray(carried) == 0)
    rounding = growth(count - 1, unit(dtype)) + growth(count, 2 * F64_UNIT)
    err = carried + np.where(exact, 0.0, rounding * reached)
    # The largest and the least magnitudes that a partial product can have: within the format no order overflows or loses bits.
    reach = along(np.multiply, np.maximum(wide, 1.0))
    least = along(np.multiply, np.where(narrow > 0, np.minimum(narrow, 1.0), 1.0))
    zero = along(np.logical_or, (magnitude == 0) & np.isfinite(x)) & (np.asarray(carried) == 0)
    kept = (least >= numbers.smallest_normal(dtype)) | (zero & np.isfinite(total))
    # A product below the normal numbers is off by up to half of the least number; what it is multiplied by then is within reach.
    lost = count * numbers.smallest_normal(dtype) * unit(dtype) * 2 * (1 + growth(count, unit(dtype))) * reach
    err = np.where(kept, err, err + lost)
    # A factor that may have either sign leaves a zero's open: any bound but none allows both zeros.
    signed = along(np.logical_and, (narrow > 0) | (errors == 0))
    err = np.where((total == 0) & ~signed, np.fmax(err, numbers.smallest_normal(dtype) * unit(dtype)), err)
    # The sign is sure and no partial product vanishes: an infinity then stays one in every order.
    steady = (least >= numbers.smallest_normal(dtype)) & along(np.logical_and, (narrow > 0) | ~np.isfinite(x))
    doubt = doubtful(x, 0.0 if value.err is None else value.err)
    nan = _surely_nan(x, doubt | (errors > 0), along)
    doubt = along(np.logical_or, doubt)
    limit = ((np.isinf(total) & along(np.logical_or, np.isinf(x))) | overflowed(total, err, dtype)) & steady & ~doubt
    found = np.where(nan, np.nan, np.where(limit, np.copysign(np.inf, total), total))
    err = np.where(beyond(reach + err, dtype) | doubt | ~np.isfinite(total), np.inf, err)
    return settle(EvaluatedValue(found, np.where(nan | limit, 0.0, err)), _any(value.free, along))


def _surely_nan(x: Array, inexact: Array, along: AxisCombiner) -> Array:
    """Where a factor is NaN, or one is zero and one infinite, without doubt: the product is NaN in every order."""
    nan, zero, infinite = (along(np.logical_or, found & ~inexact) for found in (np.isnan(x), x == 0, np.isinf(x)))
    return nan | (zero & infinite)


def _odd_bits(x: Array) -> Array:
    """Significant bits of each number beyond a power of two; a product's are no more than its factors' together."""
    _, top = np.frexp(x)
    bits = top - lowest_bit(x)
    return np.where((x == 0) | (bits <= 1), 0, bits)


# The NumPy function, and whether the sign bit of a zero wins by being set.
_EXTREMES: dict[str, tuple[np.ufunc, bool]] = {
    "minf": (np.fmin, True),
    "minf_nan": (np.minimum, True),
    "maxf": (np.fmax, False),
    "maxf_nan": (np.maximum, False),
}


def _extreme(function: np.ufunc, negative_zero_wins: bool, value: EvaluatedValue, along: AxisCombiner) -> EvaluatedValue:
    x = value.x
    found = along(function, x)
    negative = (x == 0) & np.signbit(x)
    signed = along(np.logical_or, negative) if negative_zero_wins else ~along(np.logical_or, (x == 0) & ~negative)
    found = np.where(found == 0, np.where(signed, -0.0, 0.0), found)
    if value.err is None:
        return EvaluatedValue(found)
    low, high = along(function, x - value.err), along(function, x + value.err)
    err = np.fmax(numbers.apart(high, found), numbers.apart(low, found))
    err = np.where(along(np.logical_and, np.isfinite(value.err)), err, np.inf)
    return settle(EvaluatedValue(found, err), _any(value.free, along))
