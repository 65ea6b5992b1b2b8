"""What a row of the table computes on values that carry error bounds: the bridge from rows to the interpreter and the folder.

An op that is exact or correctly rounded, on exact operands, gives an exact result. On inexact operands the interval of
operands is carried through the op, as the row's error rule says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import numbers
from tilefw.tile.elementwise import ROWS, ElementwiseRow
from tilefw.tile.elementwise import meaning as m
from tilefw.tile.elementwise.error import ErrorRule
from tilefw.tile.reference.value import Array, EvaluatedValue, either, settle, some

# Python's f64 functions are themselves off by up to this many ulp; it matters for f64 kernels only.
_OWN_ULPS = 2.0
_LEAST = 5e-324  # the smallest bound there is
_BITWISE = frozenset({"andi", "ori", "xori", "eqi", "nei"})  # NumPy's bool has these


def evaluate(
    row: ElementwiseRow, operands: Sequence[EvaluatedValue], source: DType | None, result: DType | None, *,
    rounding: numbers.Rounding = "rtne",
    fusion: bool = True, watch_wrap: bool = False, keep_rounding: bool = False,
) -> EvaluatedValue:
    """The row on values of element type `source`, giving `result` (both None for pointers).

    `fusion` lets an add take a product unrounded; `watch_wrap` marks signed arithmetic that leaves its width. `keep_rounding`
    leaves a correctly rounded result unrounded, with its rounding as the bound: for what may be computed in another order.
    """
    with np.errstate(all="ignore"):
        if row.name in _CASTS:
            return _CASTS[row.name](operands[0], source, result, rounding)
        if row.name == "select":
            return select(*operands)
        if source is None:
            raise TypeError(f"{row.name} takes no pointers")
        if not source.is_float:
            return _integer(row, operands, source, watch_wrap)
        return _compare(row, operands) if row.result == "bool" else _float(row, operands, source, fusion, keep_rounding)


# Integers --------------------------------------------------------------------------------------------------------------


def _integer(row: ElementwiseRow, operands: Sequence[EvaluatedValue], dtype: DType, watch_wrap: bool) -> EvaluatedValue:
    bits = dtype.bits
    assert row.meaning is not None
    if bits == 1 and row.name in _BITWISE:
        arrays = [o.x for o in operands]
    elif row.unsigned:
        arrays = [numbers.as_unsigned(o.x, bits) for o in operands]
    else:
        arrays = [-o.x.astype(np.int8) if bits == 1 else o.x for o in operands]
    found = row.meaning(*arrays, *((bits,) if row.wants_bits else ()))
    free = _any_free(operands)
    if free is not None and row.absorbing is not None:
        free = _undecided(row.absorbing, operands, free)
    if row.result == "bool":
        return EvaluatedValue(found, free=free)
    x = _canonical(found, bits)
    wrapped = _wrapped(row, operands, x, bits) if watch_wrap else None
    return EvaluatedValue(x, free=free, wrapped=wrapped)


def _undecided(absorbing: float, operands: Sequence[EvaluatedValue], free: Array) -> Array | None:
    """Which results may be anything: none where a certain operand decides it, whatever the other is."""
    for operand in operands:
        decides = operand.x == (bool(absorbing) if operand.x.dtype == np.bool_ else absorbing)
        free = free & ~(decides if operand.free is None else decides & ~operand.free)
    return some(free)


def _canonical(x: Array, bits: int) -> Array:
    if bits in (1, 4):
        return numbers.wrap(x, bits)
    kind = numbers.int_type(bits)
    return x if x.dtype == kind else x.view(kind)


def _wrapped(row: ElementwiseRow, operands: Sequence[EvaluatedValue], x: Array, bits: int) -> Array | None:
    wrapped = None
    for operand in operands:
        wrapped = either(wrapped, operand.wrapped)
    if row.name in ("addi", "subi", "muli", "shl") and bits > 4:
        left, right = (o.x for o in operands)
        wrapped = either(wrapped, some(_left_range(row.name, left, right, x, bits)))
    return wrapped


def _left_range(name: str, a: Array, b: Array, x: Array, bits: int) -> Array:
    if name == "addi":
        return ((a ^ x) & (b ^ x)) < 0
    if name == "subi":
        return ((a ^ b) & (a ^ x)) < 0
    if name == "shl":
        return m.shift_right_signed(x, b, bits) != a
    if bits == 64:
        return (a != 0) & ((b != m.divide_truncating(x, a)) | ((a == -1) & (b == np.iinfo(np.int64).min)))
    return x != a.astype(np.int64) * b.astype(np.int64)


def _any_free(operands: Sequence[EvaluatedValue]) -> Array | None:
    free = None
    for operand in operands:
        free = either(free, operand.free)
    return free


# Floats ----------------------------------------------------------------------------------------------------------------


def _float(
    row: ElementwiseRow, operands: Sequence[EvaluatedValue], dtype: DType, fusion: bool, keep_rounding: bool
) -> EvaluatedValue:
    function = m.fused_wide if row.name == "fma" and dtype.bits == 64 else row.meaning
    assert function is not None
    exact = function(*[o.x for o in operands])
    errors = [_flushed(o, dtype) if row.error.flush else o.err for o in operands]
    spread, lost = _error_spread(row.error, function, operands, errors, exact)
    free = either(_any_free(operands), lost)
    if row.error.kind == "ulp":
        value = _approximate(row.error, operands, exact, spread, dtype)
    elif row.error.kind == "rounded":
        value = _unrounded(exact, spread, dtype) if keep_rounding else _rounded(exact, spread, dtype)
    else:
        value = EvaluatedValue(exact, spread, None if spread is None or not row.error.jumps else spread > 0)
    if fusion:
        _contract(row, operands, exact, value, spread, dtype)
    return settle(value, free)


def _flushed(operand: EvaluatedValue, dtype: DType) -> Array | None:
    """The operand's error, allowing a subnormal to be taken as zero."""
    magnitude = np.abs(operand.x)
    tiny = (magnitude < numbers.smallest_normal(dtype)) & (magnitude > 0)
    if not tiny.any():
        return operand.err
    err = 0.0 if operand.err is None else operand.err
    return np.where(tiny, np.maximum(magnitude, err), err)


def _error_spread(
    rule: ErrorRule, function: Callable[..., Array], operands: Sequence[EvaluatedValue], errors: Sequence[Array | None],
    exact: Array,
) -> tuple[Array | None, Array | None]:
    """How far operand errors can move the result, and where nothing can be said."""
    known = [error for error in errors if error is not None]
    if not known:
        return None, None
    inexact = np.zeros(exact.shape, np.bool_)
    for error in known:
        inexact |= error > 0
    if rule.spread == "none":
        return np.where(inexact, np.inf, 0.0), inexact
    if rule.spread == "unit":
        return np.where(inexact, sum(known), 0.0), None
    ends = [(o.x,) if e is None else (o.x - e, o.x + e) for o, e in zip(operands, errors, strict=True)]
    spread = np.zeros(exact.shape)
    lost = np.zeros(exact.shape, np.bool_)
    for corner in product(*ends):
        found = function(*corner)
        agree = (found == exact) | (np.isnan(found) & np.isnan(exact))
        distance = np.where(agree, 0.0, np.abs(found - exact))
        lost |= np.isnan(distance)
        spread = np.fmax(spread, distance)
    for operand, error in zip(operands, errors, strict=True):
        if error is not None:  # a NaN that may as well be a number: no end of an interval shows it
            lost |= np.isnan(operand.x) & (error > 0)
    if rule.kind == "ulp" and len(operands) == 2 and errors[1] is not None:  # a divisor that may be zero
        lost |= (np.abs(operands[1].x) <= errors[1]) & (errors[1] > 0)
    lost &= inexact
    return np.where(lost, np.inf, np.where(inexact, spread, 0.0)), some(lost)


def _rounded(exact: Array, spread: Array | None, dtype: DType, rounding: numbers.Rounding = "rtne") -> EvaluatedValue:
    """Correctly rounded: the reachable results are the roundings of the interval's ends and what lies between."""
    nearest = numbers.round_to(exact, dtype, rounding)
    if spread is None:
        return EvaluatedValue(nearest)
    if dtype.bits == 64:  # the interval itself was computed in f64
        spread = np.where(spread > 0, spread + 2 * numbers.ulp(np.abs(exact) + spread, dtype), 0.0)
    low = numbers.round_to(exact - spread, dtype, rounding)
    high = numbers.round_to(exact + spread, dtype, rounding)
    settled = (spread == 0) | ((low == high) & (np.signbit(low) == np.signbit(high)))
    x = np.where(settled, np.where(spread == 0, nearest, high), exact)
    # Where only the sign of a zero is open, any bound says so: zeros of both signs are equal under one (accuracy.py).
    err = np.where(settled, 0.0, np.maximum(np.maximum(high - x, x - low), _LEAST))
    tiny = dtype.bits <= 8
    return EvaluatedValue(x, np.where(np.isnan(err), np.inf, err), ~settled if tiny else None)


def _unrounded(exact: Array, spread: Array | None, dtype: DType) -> EvaluatedValue:
    """Within a rounding of what the operands' interval gives; exact where nothing is rounded."""
    nearest = numbers.round_to(exact, dtype)
    inexact = (nearest != exact) & ~np.isnan(exact) if dtype.bits < 64 else np.isfinite(exact) & (exact != 0)
    spread = np.zeros(()) if spread is None else spread
    inexact, reach = inexact | (spread > 0), np.abs(exact) + spread
    step = numbers.ulp(reach, dtype) * (0.5 if dtype.bits < 64 else 1.0)  # f64: `exact` itself was rounded
    err = np.where(inexact, spread + step, 0.0)
    return EvaluatedValue(exact, np.where(inexact & ~(reach <= numbers.largest(dtype)), np.inf, err))


def _approximate(
    rule: ErrorRule, operands: Sequence[EvaluatedValue], exact: Array, spread: Array | None, dtype: DType
) -> EvaluatedValue:
    """Within the rule's ulp of what the operands' interval gives."""
    ulps = rule.ulps(dtype.mantissa_bits)
    first = np.abs(operands[0].x)
    reach = np.abs(exact) if spread is None else np.abs(exact) + spread
    unit = numbers.ulp(np.where(np.isfinite(reach), reach, 0.0), dtype)
    known = np.where(np.isfinite(first), first, 0.0)
    allowed = (ulps.constant + ulps.per_x * known) * unit + ulps.drift * known
    if ulps.window is not None:
        allowed = np.where((first >= ulps.window[0]) & (first <= ulps.window[1]), np.maximum(allowed, ulps.absolute), allowed)
    else:
        allowed = allowed + ulps.absolute
    if dtype.bits == 64:
        allowed = allowed + _OWN_ULPS * unit
    err = allowed if spread is None else allowed + spread
    if ulps.within is not None:
        divisor = np.abs(operands[-1].x)
        outside = (divisor > 0) & np.isfinite(divisor) & ((divisor < ulps.within[0]) | (divisor > ulps.within[1]))
        err = np.where(outside, np.inf, err)
    magnitude = np.abs(exact)
    err = np.where(magnitude - err < numbers.smallest_normal(dtype), np.maximum(err, magnitude), err)
    top = numbers.largest(dtype)
    over = np.isfinite(exact) & (magnitude + err > top)
    x = np.where(over & (magnitude - err > top + numbers.ulp(np.array(top), dtype)), numbers.round_to(exact, dtype), exact)
    err = np.where(over, np.where(x == exact, np.inf, 0.0), err)
    # What infinity makes is exact: the zero of 1 / inf, rsqrt(inf), exp(-inf) (C11, F.10.3, F.10.4), and the one of
    # erf(inf) (F.10.5.1).
    limit = np.isin(magnitude, (0, 1)) & (np.isinf(operands[0].x) | np.isinf(operands[-1].x))
    decided = ~np.isfinite(exact) | limit if spread is None else (~np.isfinite(exact) | limit) & (spread == 0)
    return EvaluatedValue(x, np.where(decided, 0.0, err))


def _contract(
    row: ElementwiseRow, operands: Sequence[EvaluatedValue], exact: Array, value: EvaluatedValue, spread: Array | None, dtype: DType
) -> None:
    """Products that stay unrounded in a following add: the bound admits the fused and the separate result."""
    if row.name == "mulf":
        kept = dtype.bits == 64 or not np.array_equal(exact, value.x, equal_nan=True)
        if dtype.bits == 64:  # the product of finite factors that is infinite here may be finite in a fused sum
            left = np.isinf(exact) & np.isfinite(operands[0].x) & np.isfinite(operands[1].x)
            spread = np.where(left, np.inf, 0.0 if spread is None else spread) if left.any() else spread
        value.product, value.product_err = (exact, spread) if kept else (None, None)
    elif row.name == "negf" and operands[0].product is not None:
        value.product, value.product_err = -operands[0].product, operands[0].product_err
    elif row.name in ("addf", "subf"):
        for index, operand in enumerate(operands):
            if operand.product is not None:
                _admit_fused(row, operands, index, value, dtype)


def _admit_fused(row: ElementwiseRow, operands: Sequence[EvaluatedValue], index: int, value: EvaluatedValue, dtype: DType) -> None:
    """Widen the bound to what the sum is with the operand's product unrounded, anywhere in the operands' interval."""
    terms = [o.product if i == index else o.x for i, o in enumerate(operands)]
    x, y = terms[0], terms[1]
    product = operands[index].product
    assert x is not None and y is not None and product is not None
    err = np.zeros(value.x.shape) if value.err is None else value.err
    if dtype.bits == 64:
        reach = numbers.ulp(product, dtype) + numbers.ulp(value.x, dtype)
        known = operands[index].product_err
        unbounded = False if known is None else ~np.isfinite(known)
        special = ~np.isfinite(x) | ~np.isfinite(y)  # an infinite term stays one, fused or not
        deviation = np.where(unbounded, np.inf, np.where(special, err, err + reach))
    else:
        fused = m.add_odd(x, -y if row.name == "subf" else y)
        errors = [error for error in (operands[index].product_err, operands[1 - index].err) if error is not None]
        ends = (fused - sum(errors), fused + sum(errors)) if errors else (fused,)
        deviation = err
        for end in ends:
            rounded = numbers.round_to(end, dtype)
            same = (rounded == value.x) | (np.isnan(rounded) & np.isnan(value.x))
            deviation = np.maximum(deviation, np.where(same, 0.0, np.abs(rounded - value.x)))
    value.err = np.where(np.isnan(deviation), np.inf, deviation)


def _compare(row: ElementwiseRow, operands: Sequence[EvaluatedValue]) -> EvaluatedValue:
    assert row.meaning is not None
    found = row.meaning(*[o.x for o in operands])
    errors = [o.err for o in operands if o.err is not None]
    if not errors:
        return EvaluatedValue(found)
    slack = np.zeros(found.shape)
    for error in errors:
        slack = slack + error
    if len(operands) == 1:  # isnan
        return EvaluatedValue(found, free=some(~np.isfinite(slack)))
    undecided = (slack > 0) & ~(np.abs(operands[0].x - operands[1].x) > slack)
    undecided &= ~(np.isnan(operands[0].x) | np.isnan(operands[1].x)) | ~np.isfinite(slack)
    return EvaluatedValue(found, free=some(undecided))


def select(condition: EvaluatedValue, a: EvaluatedValue, b: EvaluatedValue) -> EvaluatedValue:
    """Elements of `a` where the condition holds, else of `b`; the interval over both where it is undecided."""
    x = np.where(condition.x, a.x, b.x)

    def pick(name: str, default: float | bool) -> Array | None:
        left, right = getattr(a, name), getattr(b, name)
        if left is None and right is None:
            return None
        return np.where(condition.x, default if left is None else left, default if right is None else right)

    err, free = pick("err", 0.0), pick("free", False)
    if condition.free is not None:
        if x.dtype == np.float64:
            errors = 0.0 if a.err is None else a.err, 0.0 if b.err is None else b.err
            same = (a.x == b.x) | (np.isnan(a.x) & np.isnan(b.x))
            distance = np.where(same, np.maximum(*errors), np.abs(a.x - b.x) + errors[0] + errors[1])
            err = np.where(condition.free, np.where(np.isnan(distance), np.inf, distance), 0.0 if err is None else err)
            free = either(free, some(condition.free & (err > 0)))
        else:
            free = either(free, some(condition.free & (a.x != b.x)))
    return EvaluatedValue(x, err, some(free), wrapped=pick("wrapped", False))


# Casts -----------------------------------------------------------------------------------------------------------------

_Cast = Callable[[EvaluatedValue, DType | None, DType | None, numbers.Rounding], EvaluatedValue]


def _extend_signed(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert source is not None and result is not None
    x = -value.x.astype(np.int8) if source.bits == 1 else value.x
    return EvaluatedValue(numbers.wrap(x, result.bits), free=value.free, wrapped=value.wrapped)


def _extend_unsigned(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert source is not None and result is not None
    return EvaluatedValue(numbers.wrap(numbers.as_unsigned(value.x, source.bits), result.bits), free=value.free)


def _truncate(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert result is not None
    return EvaluatedValue(numbers.wrap(value.x, result.bits), free=value.free)


def _cast_float(value: EvaluatedValue, source: DType | None, result: DType | None, rounding: numbers.Rounding) -> EvaluatedValue:
    assert result is not None
    return settle(_rounded(value.x, value.err, result, rounding), value.free)


def _from_signed(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert source is not None and result is not None
    x = -value.x.astype(np.int8) if source.bits == 1 else value.x
    return _from_integer(x, value, result)


def _from_unsigned(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert source is not None and result is not None
    return _from_integer(numbers.as_unsigned(value.x, source.bits), value, result)


def _from_integer(x: Array, value: EvaluatedValue, result: DType) -> EvaluatedValue:
    if x.dtype.itemsize == 8:  # wider than f64's fraction: round to odd, then once to the format
        high = (x >> x.dtype.type(32)).astype(np.float64) * 2.0**32
        low = (x & x.dtype.type(0xFFFFFFFF)).astype(np.float64)
        wide = high + low if result.bits == 64 else m.add_odd(high, low)
    else:
        wide = x.astype(np.float64)
    found = numbers.round_to(wide, result)
    return EvaluatedValue(found, None if value.free is None else np.where(value.free, np.inf, 0.0), value.free)


def _to_signed(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert result is not None
    return _to_integer(value, result.bits, -(1 << (result.bits - 1)), (1 << (result.bits - 1)) - 1)


def _to_unsigned(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert result is not None
    return _to_integer(value, result.bits, 0, (1 << result.bits) - 1)


def _to_integer(value: EvaluatedValue, bits: int, low: int, high: int) -> EvaluatedValue:
    wide = np.int64 if low < 0 else np.uint64

    def convert(x: Array) -> Array:
        whole = np.trunc(np.where(np.isnan(x), 0.0, x))
        inside = (whole >= float(low)) & (whole < float(high + 1))
        clamped = np.where(whole < 0, wide(low), wide(high))
        return np.where(inside, np.where(inside, whole, 0.0).astype(wide), clamped)

    x = convert(value.x)
    free = None
    if value.err is not None:
        free = some((convert(value.x - value.err) != x) | (convert(value.x + value.err) != x) | ~np.isfinite(value.err))
    return EvaluatedValue(numbers.wrap(x, bits), free=free)


def _bitcast(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    if source is None or result is None:  # pointers to pointers of another element
        return value
    if source.is_float == result.is_float and (source == result or not source.is_float):
        return EvaluatedValue(numbers.wrap(value.x, result.bits), free=value.free) if not source.is_float else value
    free = value.free
    if source.is_float:
        codes = numbers.encode(numbers.round_to(value.x, source, saturate=False), source)
        # The bits of a NaN, and of a value that is not exactly known, are anybody's.
        free = either(free, some(np.isnan(value.x)))
        free = either(free, None if value.err is None else some(value.err > 0))
    else:
        codes = numbers.as_unsigned(value.x, source.bits)
    if result.is_float:
        return EvaluatedValue(numbers.decode(codes, result), None if free is None else np.where(free, np.inf, 0.0), free)
    return EvaluatedValue(numbers.wrap(codes, result.bits), free=free)


def _from_pointer(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert result is not None
    return EvaluatedValue(numbers.wrap(value.x, result.bits), free=value.free)


def _to_pointer(value: EvaluatedValue, source: DType | None, result: DType | None, _: numbers.Rounding) -> EvaluatedValue:
    assert source is not None
    return EvaluatedValue(numbers.as_unsigned(value.x, source.bits).astype(np.int64), free=value.free)


_CASTS: dict[str, _Cast] = {
    "exts": _extend_signed,
    "extu": _extend_unsigned,
    "trunci": _truncate,
    "castf": _cast_float,
    "s2f": _from_signed,
    "u2f": _from_unsigned,
    "f2s": _to_signed,
    "f2u": _to_unsigned,
    "bitcast": _bitcast,
    "ptr_to_int": _from_pointer,
    "int_to_ptr": _to_pointer,
}


def has_meaning(name: str) -> bool:
    """Whether the row can be evaluated: the table's self-test asks it of every row."""
    return name in _CASTS or name == "select" or ROWS[name].meaning is not None
