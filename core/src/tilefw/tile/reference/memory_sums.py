"""Float sums that many programs add up in memory: values with a bound that holds for every order of the additions.

The computed sum of n numbers, in any order, is within γ(n) · Σ|x| of the exact one, γ(n) = n·u / (1 - n·u) with the
format's unit roundoff u (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., equation 4.4). Numbers that are
multiples of a common power of two, and together no more than the format's precision of it, add exactly in every order.
"""

from __future__ import annotations

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import numbers
from tilefw.tile.reference.value import Array, EvaluatedValue

_OWN_ROUNDOFF = 2.0**-53  # the reference adds in f64
# An fp32 addition of a chip's memory unit may take subnormal operands and results as zero: two operands, one result.
_FLUSHED_PER_ADD = 3


class ElementSums:
    """What is known of an element's sum since it was last stored: additions, Σ|x|, the addends' grain and their own errors.

    The grain is the largest power of two of which every addend is a multiple.
    """

    __slots__ = ("count", "given", "grain", "magnitude")

    def __init__(self, elements: int) -> None:
        self.count = np.zeros(elements, np.int64)
        self.magnitude = np.zeros(elements)
        self.grain = np.zeros(elements)
        self.given = np.zeros(elements)

    def forget(self, index: Array) -> None:
        """Elements got new values by other means: what is there is a sum's first addend again."""
        self.count[index] = 0

    def add(self, index: Array, before: EvaluatedValue, addend: EvaluatedValue, dtype: DType) -> EvaluatedValue:
        """The elements `index`, each at most once, with the addend added.

        An addend is a number of the format on every machine, so it counts as the nearest one, within what the others are off.
        """
        addend = _of_format(addend, dtype)
        fresh = self.count[index] == 0
        self.count[index] += 1
        for field, start, more in (
            (self.magnitude, _magnitude(before.x), _magnitude(addend.x)), (self.given, _errors(before), _errors(addend)),
        ):
            field[index] = np.where(fresh, start, field[index]) + more
        self.grain[index] = np.minimum(np.where(fresh, _grain(before.x), self.grain[index]), _grain(addend.x))
        with np.errstate(all="ignore"):
            x = before.x + addend.x
            err = self._bound(index, x, dtype)
        free = ~np.isfinite(err)
        return EvaluatedValue(x, err if err.any() else None, free if free.any() else None)

    def _bound(self, index: Array, x: Array, dtype: DType) -> Array:
        count, given = self.count[index].astype(np.float64), self.given[index]
        grain, reach = self.grain[index], self.magnitude[index] + given
        roundoff = count * 2.0 ** -(dtype.mantissa_bits + 1)
        relative = np.where(roundoff < 1, roundoff / (1 - roundoff), np.inf) + count * _OWN_ROUNDOFF
        tiny = (grain < numbers.smallest_normal(dtype)) & (dtype.name == "fp32")
        exact = (given == 0) & ~tiny & (reach <= grain * 2.0 ** (dtype.mantissa_bits + 1))
        flushed = np.where(tiny, _FLUSHED_PER_ADD * count * numbers.smallest_normal(dtype), 0.0)
        err = np.where(exact, 0.0, given + relative * reach + flushed)
        alone = (count == 1) & (given == 0) & ~tiny  # one addition has no order: its rounding is known
        err = np.where(alone, np.abs(x - numbers.round_to(x, dtype)), err)
        err = np.where(np.isfinite(x), err, np.where(np.isfinite(given), 0.0, np.inf))
        return np.where(self.magnitude[index] + np.where(np.isfinite(x), err, 0.0) > numbers.largest(dtype), np.inf, err)


def _of_format(value: EvaluatedValue, dtype: DType) -> EvaluatedValue:
    """The nearest number of the format, with the distance of the farthest one that its bound admits."""
    if value.err is None:
        return value
    x, err = numbers.round_to(value.x, dtype), value.err
    with np.errstate(all="ignore"):
        low, high = numbers.round_to(value.x - err, dtype), numbers.round_to(value.x + err, dtype)
        farthest = np.maximum(high - x, x - low)
    known = np.isfinite(x) & np.isfinite(farthest) & (err > 0)
    return EvaluatedValue(np.where(known, x, value.x), np.where(known, farthest, err), value.free)


def _magnitude(x: Array) -> Array:
    """|x|, 0 for infinities and NaN, which decide a sum in whatever order they come."""
    return np.where(np.isfinite(x), np.abs(x), 0.0)


def _errors(value: EvaluatedValue) -> Array:
    return np.zeros(value.x.shape) if value.err is None else value.err


def _grain(x: Array) -> Array:
    """The lowest bit of each number as a power of two; infinity where there is none."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.where(whole == 0, np.inf, np.ldexp(lowest, exponent - 53))
