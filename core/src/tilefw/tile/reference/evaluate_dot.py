"""Matrix products on values that carry error bounds: BLAS in f64, and the bound by products of magnitudes.

The bound holds for every order of the sum over K, for products fused into it or rounded before, and for matrix units that cut what
is below their accumulator's last place instead of rounding it: each of K + 1 additions may be off by one unit in the last place of
what all magnitudes add up to. (Public models of matrix units: MMA-Sim, arXiv 2511.10909; they cut no more than that.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import numbers
from tilefw.tile.reference.rounding_bounds import F64_UNIT, beyond, doubtful, fits, growth, lowest_bit, without_infinities
from tilefw.tile.reference.value import Array, EvaluatedValue, either, settle

_LEAST = 5e-324
_SHORT_BITS = 13  # of imprecise sums, behind the leading one of the largest (MMA-Sim, arXiv 2511.10909: products of e4m3 and e5m2)
_FLUSHED = 2.0**-126  # below, f32 may have no number left after a rounding of its own


@dataclass(frozen=True, slots=True)
class _Split:
    """How an input precision takes an f32 apart: parts of `bits` mantissa bits, `products` of which are added up.

    `lost` bounds what the products left out are of the whole, as an error of each factor relative to it.
    """

    bits: int
    products: int
    lost: float | None = None


# With u = 2^-bits, parts that are cut off are at most 1, u, u^2, … of the number (rounded ones at most half of that). Three
# products leave out low·low and what two parts leave of each factor, 3u^2 in all, and a fourth u^2 covers the rest. Six leave out
# four products of order u^3, and a fifth u^3 covers the rest. Half of that goes to either factor.
_SPLITS = {
    "tf32": _Split(10, 1),
    "tf32x3": _Split(10, 3, 2.0 * 2.0**-20),
    "bf16x3": _Split(7, 3, 2.0 * 2.0**-14),
    "bf16x6": _Split(7, 6, 2.5 * 2.0**-21),
}


def dot(
    a: EvaluatedValue, b: EvaluatedValue, acc: EvaluatedValue, result: DType, *, unsigned: bool = False, precision: str = "ieee",
    extra_steps: int = 0, imprecise: bool = False,
) -> EvaluatedValue:
    """`a` · `b` + `acc` for `acc` of element type `result`; floats are f64 arrays, i8 its NumPy type.

    `extra_steps` are roundings that a sum may take besides those of its additions; `imprecise`: sums are kept shorter.
    """
    with np.errstate(all="ignore"):
        if not result.is_float:
            return _integers(a, b, acc, result, unsigned)
        return _floats(a, b, acc, result, _SPLITS.get(precision), extra_steps, imprecise)


def summed_onto(
    x: EvaluatedValue, factors: tuple[EvaluatedValue, EvaluatedValue], product: EvaluatedValue, result: DType, precision: str
) -> Array | None:
    """What is added to the bound of `x` + `product`, the dot of `factors`, because a matrix unit may add the products onto `x` one
    after the other, as compilers have it do: each of these additions rounds a number of `x`'s size, and of the products' size,
    which the bound of a dot that is exact by itself says nothing of. None for nothing.
    """
    if not result.is_float:
        return None
    a, b = factors
    split = _SPLITS.get(precision)
    with np.errstate(all="ignore"):
        known = np.ones((), np.bool_) if x.err is None else x.err == 0
        plain = known.any() and _off(a, split) is None and _off(b, split) is None
        onto = np.abs(without_infinities(x.x)) + (0.0 if x.err is None else np.where(np.isfinite(x.err), x.err, 0.0))
        left, right = (np.abs(without_infinities(v.x)) for v in (a, b))
        reach = a.x.shape[-1] * left.max(-1, keepdims=True) * right.max(-2, keepdims=True) + onto  # at most
        exact = known & _exact(a.x, b.x, x.x, reach, result, imprecise=False) if plain else np.zeros((), np.bool_)
        if exact.all():
            return None
        rate = growth(_steps(a, split), 2.0**-result.mantissa_bits)
        bounded = np.zeros((), np.bool_) if product.err is None else product.err > _LEAST
        if not (exact | bounded).all() or beyond(reach + rate * reach, result).any():
            reach = np.matmul(left, right) + onto
            exact = known & _exact(a.x, b.x, x.x, reach, result, imprecise=False) if plain else exact
        more = np.where(exact, 0.0, rate * np.where(bounded, onto, reach))
        more = np.where(beyond(reach + more, result), np.inf, more)  # an order may overflow
        more = np.where(np.isfinite(x.x + product.x), more, 0.0)  # infinities and NaN come of every order
    return more if more.any() else None


def _steps(a: EvaluatedValue, split: _Split | None) -> int:
    """The additions of one element's products and the accumulator."""
    return a.x.shape[-1] * (1 if split is None else split.products) + 1


def _integers(a: EvaluatedValue, b: EvaluatedValue, acc: EvaluatedValue, result: DType, unsigned: bool) -> EvaluatedValue:
    left, right = (numbers.as_unsigned(v.x, 8) if unsigned else v.x for v in (a, b))
    # 16-bit products: sums of up to 2^37 of them are exact in f64.
    total = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64) + acc.x
    rows = None if a.free is None else np.asarray(a.free.any(-1, keepdims=True))
    columns = None if b.free is None else np.asarray(b.free.any(-2, keepdims=True))
    free = either(either(rows, columns), acc.free)
    x = numbers.wrap(total, result.bits)
    return EvaluatedValue(x, free=None if free is None else np.broadcast_to(free, x.shape))


def _floats(
    a: EvaluatedValue, b: EvaluatedValue, acc: EvaluatedValue, result: DType, split: _Split | None, extra_steps: int,
    imprecise: bool,
) -> EvaluatedValue:
    size = a.x.shape[-1]
    total = np.matmul(a.x, b.x) + acc.x
    left, right = (np.abs(without_infinities(v.x)) for v in (a, b))
    off_left, off_right = _off(a, split), _off(b, split)
    magnitude = np.matmul(left, right)
    reach, carried = magnitude, np.zeros(()) if acc.err is None else np.where(_unknown(acc), np.inf, acc.err)
    if off_left is not None or off_right is not None:
        reach = np.matmul(_widened(left, off_left), _widened(right, off_right))
        # The difference is right up to the rounding of the two products themselves.
        carried = carried + np.where(reach > magnitude, reach - magnitude + growth(size, F64_UNIT) * reach, 0.0)
        carried = _unbounded(_unbounded(carried, off_left, -1), off_right, -2)
    reach = reach + np.abs(without_infinities(acc.x)) + (0.0 if acc.err is None else acc.err)
    steps = _steps(a, split) + extra_steps
    rounding = (growth(steps, 2.0 ** -_kept_bits(result, imprecise)) + growth(size + 1, F64_UNIT)) * reach
    rounding = rounding + steps * numbers.ulp(np.zeros(()), result)  # products may underflow, each on its own
    if not carried.all():
        rounding = np.where((carried == 0) & _exact(a.x, b.x, acc.x, reach, result, imprecise), 0.0, rounding)
    err = carried + rounding
    err = np.where(beyond(reach + err, result), np.inf, err)
    if not np.isfinite(total).all():
        # What is left of an infinity when its first part is taken away is NaN: sums of several products may take it or leave it.
        whole = split is None or split.products == 1
        settled = _surely_nan(a, b, acc) | (np.isfinite(err) & (whole | (carried == 0)) & ~_doubtful(a, b, off_left, off_right))
        err = np.where(np.isfinite(total), err, np.where(settled, 0.0, np.inf))
    error = np.where((total == 0) & (err == 0), _LEAST, err)  # units differ in the sign of a zero
    return settle(EvaluatedValue(total, error), None)


def _surely_nan(a: EvaluatedValue, b: EvaluatedValue, acc: EvaluatedValue) -> Array:
    """Where a row of `a`, a column of `b` or the accumulator has a NaN that cannot be anything else."""
    left, right, sums = (np.isnan(v.x) & ~_unknown(v) for v in (a, b, acc))
    return left.any(-1, keepdims=True) | right.any(-2, keepdims=True) | sums


def _unknown(value: EvaluatedValue) -> Array:
    return doubtful(value.x, 0.0 if value.err is None else value.err)


def _doubtful(a: EvaluatedValue, b: EvaluatedValue, off_left: Array | None, off_right: Array | None) -> Array:
    """Where an infinity meets a factor whose sign is not sure, or which may be zero."""
    met = np.zeros((), np.float64)
    for special, factor, off, turned in ((a, b, off_right, False), (b, a, off_left, True)):
        if off is None or np.isfinite(special.x).all():
            continue
        unsure = (off > 0) & ~(np.abs(factor.x) > np.maximum(off, _FLUSHED)) & np.isfinite(factor.x)
        pair = (~np.isfinite(special.x)).astype(np.float64), unsure.astype(np.float64)
        met = met + np.matmul(*(pair[::-1] if turned else pair))
    return met > 0


def _widened(magnitude: Array, off: Array | None) -> Array:
    return magnitude if off is None else magnitude + np.where(np.isfinite(off), off, 0.0)


def _unbounded(carried: Array, off: Array | None, axis: int) -> Array:
    """The bound without limit in the rows (axis -1) or columns (-2) where a factor has none."""
    if off is None or np.isfinite(off).all():
        return carried
    return np.where((~np.isfinite(off)).any(axis, keepdims=True), np.inf, carried)


def _off(value: EvaluatedValue, split: _Split | None) -> Array | None:
    """How far what is multiplied may be from each element of an operand; None for nowhere."""
    if split is None:
        return None if value.err is None else np.where(_unknown(value), np.inf, value.err)
    x, err = without_infinities(value.x), 0.0 if value.err is None else np.where(_unknown(value), np.inf, value.err)
    magnitude = np.abs(x)
    cut = np.where(np.asarray(err) > 0, 2.0**-split.bits * (magnitude + err), np.abs(x - _shortened(x, split.bits)))
    if split.lost is not None:
        cut = np.where(cut > 0, split.lost * (magnitude + err), 0.0)
    # Parts have f32's exponents: what is left of small numbers falls below their least place.
    least = 2.0 ** (-126 - split.bits)
    cut = np.where((cut > 0) & (cut < 2.0**-100), cut + 2 * least, cut)
    cut = np.where((magnitude > 0) & (magnitude < 2.0**-126), np.maximum(cut, 2 * least), cut)
    cut = np.where(magnitude >= (2.0 - 2.0**-split.bits) * 2.0**127, np.inf, cut)  # rounded up to infinity
    off = cut + err
    return off if off.any() else None


def _shortened(x: Array, bits: int) -> Array:
    """x cut off after `bits` mantissa bits."""
    codes = np.ascontiguousarray(x).view(np.int64)
    return (codes & ~np.int64((1 << (52 - bits)) - 1)).view(np.float64)


def _kept_bits(result: DType, imprecise: bool) -> int:
    return min(_SHORT_BITS, result.mantissa_bits) if imprecise else result.mantissa_bits


def _exact(a: Array, b: Array, acc: Array, reach: Array, result: DType, imprecise: bool) -> Array:
    """Where all products and the accumulator are multiples of one power of two that no order rounds."""
    rows = lowest_bit(without_infinities(a)).min(-1)[..., :, None]
    columns = lowest_bit(without_infinities(b)).min(-2)[..., None, :]
    if not (reach <= np.ldexp(1.0, int(rows.max()) + int(columns.max()) + result.mantissa_bits + 1)).any():
        return np.zeros((), np.bool_)
    lowest = np.minimum(rows + columns, lowest_bit(without_infinities(acc)))
    short = np.ones((), np.bool_) if not imprecise else np.asarray(reach <= np.exp2(lowest + _kept_bits(result, imprecise)))
    return fits(reach, lowest, result) & short
