"""Compile-time constant tiles: sums of terms over few axes each, so that an address over thousands of programs stays small.

A constant tile is a function of the launch's axes (programs, loops) and of its own dims. Integers are sums of terms modulo 2^64, of
which the tile's own width is the low part; i1 is the conjunction of its terms; a float is one term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw.api import DType
from tilefw.api.ir import numbers
from tilefw_spatial.graph import Axis
from tilefw_spatial.index_tables import check_size

Array = NDArray[Any]
Key = Axis | int  # an axis of the launch, or a dim of the tile by its position

_MOST_TERMS = 6  # of a product that is multiplied out


@dataclass(frozen=True, slots=True, eq=False)
class ConstantTerm:
    """Numbers over some keys: `data` has one dim for each."""

    data: Array
    keys: tuple[Key, ...] = ()

    def over(self, keys: Sequence[Key]) -> Array:
        """The numbers with a dim for each of `keys`, of extent 1 where the term does not depend on it."""
        order = [self.keys.index(key) for key in keys if key in self.keys]
        shape = [self.data.shape[self.keys.index(key)] if key in self.keys else 1 for key in keys]
        return self.data.transpose(order).reshape(shape)

    def rekeyed(self, keys: Sequence[Key]) -> ConstantTerm:
        """The same numbers under other keys."""
        return ConstantTerm(self.data, tuple(keys))

    def renamed(self, dims: Mapping[int, int]) -> ConstantTerm:
        """The numbers under other dims; one that `dims` lacks has extent 1 and goes."""
        keep = [i for i, key in enumerate(self.keys) if isinstance(key, Axis) or key in dims]
        data = self.data.reshape([self.data.shape[i] for i in keep])
        return ConstantTerm(data, tuple(_key(self.keys[i], dims) for i in keep))

    def identical(self, other: ConstantTerm) -> bool:
        """Whether another term surely has the same numbers over the same keys."""
        return self is other or (self.keys == other.keys and (self.data is other.data or np.array_equal(self.data, other.data)))

    def minimal(self) -> ConstantTerm:
        """The term without keys that it does not depend on."""
        data, keys = self.data, list(self.keys)
        for position in range(len(keys) - 1, -1, -1):
            first = data.take([0], axis=position)
            if data.shape[position] == 1 or _identical(data, first):
                data = first.squeeze(position)
                del keys[position]
        return ConstantTerm(data, tuple(keys))


def _identical(data: Array, first: Array) -> bool:
    return bool((data == first).all())


@dataclass(frozen=True, slots=True, eq=False)
class ConstantTile:
    """A tile of `shape` (a scalar: none) whose elements are compile-time constants."""

    dtype: DType
    shape: tuple[int, ...]
    terms: tuple[ConstantTerm, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """All that the elements depend on."""
        return tuple(dict.fromkeys(key for term in self.terms for key in term.keys))

    @property
    def number(self) -> Any:
        """The one number that all elements are; None where they differ."""
        if any(term.keys for term in self.terms):
            return None
        return self.whole().data.item()

    def whole(self) -> ConstantTerm:
        """One term, its elements as the tile has them: wrapped to the width."""
        keys = self.keys
        if len(self.terms) == 1:
            return ConstantTerm(_canonical(self.terms[0].data, self.dtype), keys)
        shape = np.broadcast_shapes(*(term.over(keys).shape for term in self.terms))
        check_size(prod(shape))
        join = np.logical_and if self.dtype.bits == 1 else np.add
        return ConstantTerm(_canonical(reduce(join, (term.over(keys) for term in self.terms)), self.dtype), keys)

    def bounds(self) -> tuple[int, int]:
        """The least and the greatest that a sum of integers may be, before it wraps."""
        return sum(int(term.data.min()) for term in self.terms), sum(int(term.data.max()) for term in self.terms)

    def renamed(self, dims: Mapping[int, int], shape: tuple[int, ...]) -> ConstantTile:
        """The elements under other dims; a dim that `dims` lacks has extent 1 and goes."""
        return ConstantTile(self.dtype, shape, tuple(term.renamed(dims) for term in self.terms))

    def mapped(self, change: Callable[[ConstantTerm], ConstantTerm], shape: tuple[int, ...]) -> ConstantTile:
        """Each term changed in the same way: right for all that only selects and reorders elements."""
        return ConstantTile(self.dtype, shape, tuple(change(term) for term in self.terms))

    def as_type(self, dtype: DType) -> ConstantTile:
        """A sum of integers read as wider or narrower ones of its low bits."""
        return replace(self, dtype=dtype)


def _key(key: Key, dims: Mapping[int, int]) -> Key:
    return key if isinstance(key, Axis) else dims[key]


def _canonical(data: Array, dtype: DType) -> Array:
    """Elements in the type that the table's meanings take."""
    if dtype.is_float:
        return data
    if dtype.bits == 1:
        return data.astype(np.bool_)
    return numbers.wrap(data, dtype.bits)


def of_term(dtype: DType, shape: tuple[int, ...], term: ConstantTerm) -> ConstantTile:
    """A constant tile of elements in the type of the table's meanings."""
    term = term.minimal()
    if dtype.is_int and dtype.bits > 1:
        term = ConstantTerm(term.data.astype(np.int64), term.keys)
    return ConstantTile(dtype, shape, (term,))


def splat(value: int | float, dtype: DType, shape: tuple[int, ...] = ()) -> ConstantTile:
    """A tile of one number."""
    if dtype.is_float:
        return ConstantTile(dtype, shape, (ConstantTerm(np.asarray(float(value))),))
    return ConstantTile(
        dtype, shape, (ConstantTerm(np.asarray(canonical(value, dtype), np.bool_ if dtype.bits == 1 else np.int64)),)
    )


def canonical(value: int | float, dtype: DType) -> int | float:
    """A number as its type holds it: integers with the sign of their highest bit, truth values as 0 and 1."""
    if dtype.is_float:
        return float(value)
    if dtype.bits == 1:
        return int(bool(value))
    half = 1 << (dtype.bits - 1)
    return (int(value) + half) % (2 * half) - half


def iota(dtype: DType, shape: tuple[int, ...], key: Key, count: int, first: int = 0, step: int = 1) -> ConstantTile:
    """first, first + step, … along one key."""
    if count == 1:
        return splat(first, dtype, shape)
    check_size(count)
    return ConstantTile(dtype, shape, (ConstantTerm(first + step * np.arange(count, dtype=np.int64), (key,)),))


def total(a: ConstantTile, b: ConstantTile, sign: int = 1) -> ConstantTile:
    """a + b or a - b."""
    negated = b.terms if sign > 0 else tuple(ConstantTerm(-term.data, term.keys) for term in b.terms)
    return replace(a, terms=merged((*a.terms, *negated), np.add))


def both(a: ConstantTile, b: ConstantTile) -> ConstantTile:
    """a and b, of i1."""
    for one, other in ((a, b), (b, a)):
        if one.number is not None:
            return other if one.number else one
    return replace(a, terms=merged((*a.terms, *b.terms), np.logical_and))


def product(a: ConstantTile, b: ConstantTile) -> ConstantTile | None:
    """a · b multiplied out; None where that has too many terms."""
    if len(a.terms) * len(b.terms) > _MOST_TERMS:
        return None
    terms: list[ConstantTerm] = []
    for left in a.terms:
        for right in b.terms:
            keys = tuple(dict.fromkeys((*left.keys, *right.keys)))
            if len(keys) > max(len(left.keys), len(right.keys)) and len(a.terms) + len(b.terms) > 2:
                return None  # a sum would lose its form: terms of one key each are what keeps addresses separable
            terms.append(ConstantTerm(left.over(keys) * right.over(keys), keys))
    return replace(a, terms=merged(tuple(terms), np.add))


def merged(terms: tuple[ConstantTerm, ...], join: Callable[[Array, Array], Array]) -> tuple[ConstantTerm, ...]:
    """Terms with those joined into another whose keys are among the other's; those in closed form stay as they are."""
    kept: list[ConstantTerm] = []
    for term in sorted(terms, key=lambda term: -len(term.keys)):
        for index, other in enumerate(kept):
            if set(term.keys) <= set(other.keys) and type(term) is type(other) is ConstantTerm:
                kept[index] = ConstantTerm(join(other.data, term.over(other.keys)), other.keys)
                break
        else:
            kept.append(term)
    return tuple(kept)


def fits(tile: ConstantTile, dtype: DType, signed: bool = True) -> bool:
    """Whether a sum of integers surely lies within a type, so that it does not wrap."""
    low, high = tile.bounds()
    if not signed:
        return low >= 0 and high < 1 << dtype.bits
    return low >= -(1 << (dtype.bits - 1)) and high < 1 << (dtype.bits - 1)


def separated(term: ConstantTerm) -> tuple[ConstantTerm, ...]:
    """A sum's term as terms of one key each, where it is such a sum."""
    if len(term.keys) < 2:
        return (term,)
    origin = term.data[(0,) * term.data.ndim]
    parts: list[ConstantTerm] = [ConstantTerm(np.asarray(origin))]
    for position, key in enumerate(term.keys):
        index = tuple(slice(None) if i == position else 0 for i in range(term.data.ndim))
        parts.append(ConstantTerm(term.data[index] - origin, (key,)))
    rebuilt = reduce(np.add, (part.over(term.keys) for part in parts))
    return tuple(parts) if np.array_equal(rebuilt, term.data) else (term,)
