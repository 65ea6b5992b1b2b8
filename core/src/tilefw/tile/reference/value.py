"""The interpreter's values: numbers of many programs at once, with an error bound and a mask of undecided elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.tile import numbers

Array = np.ndarray[Any, np.dtype[Any]]


Marks = dict[str, Array]  # by check, which op made an element that should not be stored (origins.py)


class EvaluatedValue:
    """Elements of one SSA value for a group of programs: shape (programs or 1, *tile shape), 1 where all programs agree.

    `x` holds float64 for floats, NumPy's integers of the width (bool for i1, int8 for i4) and int64 byte addresses for
    pointers. A chip's result is right when it is within `err` of `x` (None: equal to it); where `free` is set, the
    reference cannot tell (for floats: anything within `err`, when that is finite). `product` is an unrounded x·y that an
    add may take in place of `x` when the compiler fuses the two; it is known to within `product_err`, which is not `err`: all
    products that the factors' bounds allow may round to one number. `wrapped` marks signed arithmetic that left its width, `marks`
    what the launch's checks of programs follow (`origins.py`).
    """

    __slots__ = ("err", "free", "marks", "product", "product_err", "wrapped", "x")

    def __init__(
        self, x: Array, err: Array | None = None, free: Array | None = None, product: Array | None = None,
        wrapped: Array | None = None, product_err: Array | None = None, marks: Marks | None = None,
    ) -> None:
        self.x = x
        self.err = err
        self.free = free
        self.product = product
        self.product_err = product_err
        self.wrapped = wrapped
        self.marks = marks

    def apply(self, function: Any) -> EvaluatedValue:
        """The value with one function of shape applied to each of its arrays."""
        parts = (self.err, self.free, self.product, self.wrapped, self.product_err)
        marks = None if self.marks is None else {check: function(part) for check, part in self.marks.items()}
        return EvaluatedValue(function(self.x), *(None if part is None else function(part) for part in parts), marks=marks)

    def take(self, programs: Array) -> EvaluatedValue:
        """The value of some of the group's programs."""
        return self.apply(lambda part: part if part.shape[0] == 1 else part[programs])

    def spread(self, count: int) -> EvaluatedValue:
        """The value with its program axis at full length."""
        return self.apply(lambda part: np.broadcast_to(part, (count, *part.shape[1:])))


def constant(value: int | float, dtype: DType) -> EvaluatedValue:
    """A literal as a scalar value of `dtype`: wrapped, or rounded."""
    if dtype.is_float:
        return EvaluatedValue(numbers.in_format(np.array([float(value)]), dtype))
    low = int(value) & ((1 << dtype.bits) - 1)
    low -= (1 << dtype.bits) if dtype.bits > 1 and low >> (dtype.bits - 1) else 0
    return EvaluatedValue(np.array([low]).astype(numbers.int_type(dtype.bits)))


def merge(parts: list[tuple[Array, EvaluatedValue]], count: int) -> EvaluatedValue:
    """Values of disjoint sets of programs as one value of all `count` programs."""
    first = parts[0][1]
    shape = (count, *first.x.shape[1:])
    if len(parts) == 1 and len(parts[0][0]) == count:
        return first

    def gather(name: str, default: Any, dtype: Any) -> Array | None:
        found = [getattr(value, name) for _, value in parts]
        if name != "x" and all(part is None for part in found):
            return None
        result = np.full(shape, default, dtype)
        for (programs, value), part in zip(parts, found, strict=True):
            if part is not None:
                result[programs] = np.broadcast_to(part, (len(programs), *value.x.shape[1:]))
        return result

    x = gather("x", 0, first.x.dtype)
    assert x is not None
    wrapped = gather("wrapped", False, np.bool_)
    return EvaluatedValue(
        x, gather("err", 0.0, np.float64), gather("free", False, np.bool_), None, wrapped, marks=_merged_marks(parts, shape)
    )


def _merged_marks(parts: list[tuple[Array, EvaluatedValue]], shape: tuple[int, ...]) -> Marks | None:
    found: Marks = {}
    for programs, value in parts:
        for check, marks in (value.marks or {}).items():
            found.setdefault(check, np.zeros(shape, np.int32))[programs] = np.broadcast_to(marks, (len(programs), *shape[1:]))
    return found or None


def concatenated(pieces: Sequence[EvaluatedValue], axis: int) -> EvaluatedValue:
    """Values one after the other along an axis of their arrays."""
    programs = max(piece.x.shape[0] for piece in pieces)

    def joined(name: str, absent: Any) -> Array | None:
        found = [getattr(piece, name) for piece in pieces]
        if all(part is None for part in found):
            return None
        there = [piece.x if absent is None else absent for piece in pieces]
        full = [
            np.broadcast_to(other if part is None else part, (programs, *piece.x.shape[1:]))
            for part, other, piece in zip(found, there, pieces, strict=True)
        ]
        return np.concatenate(full, axis)

    x = joined("x", None)
    assert x is not None
    return EvaluatedValue(x, joined("err", 0.0), joined("free", False), joined("product", None), joined("wrapped", False))


def either(a: Array | None, b: Array | None) -> Array | None:
    """The union of two optional masks."""
    return a if b is None else b if a is None else a | b


def some(mask: Array | None) -> Array | None:
    """The mask, or None when nothing is set in it."""
    return mask if mask is not None and mask.any() else None


def settle(value: EvaluatedValue, free: Array | None) -> EvaluatedValue:
    """Drop bounds and masks that say nothing; what has no finite bound is free, what has bound 0 is not."""
    value.free = either(value.free, free)
    err = value.err
    if err is None or not err.any():
        value.err = None
        if value.free is not None:
            value.free = None
        return value
    value.err = np.broadcast_to(err, value.x.shape)
    value.free = either(value.free, some(~np.isfinite(value.err)))
    if value.free is not None:
        value.free = some(value.free & (value.err != 0))
    return value
