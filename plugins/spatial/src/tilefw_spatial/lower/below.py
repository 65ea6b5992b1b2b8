"""Where a sum of integers is below a bound, in closed form: the masks of blocks that end with their array.

The sum's terms are over few axes each; its truth over all of them together is as large as the launch. It is made only if something
asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from math import prod

import numpy as np

from tilefw.api import DTYPES, DType
from tilefw_spatial.index_tables import check_size
from tilefw_spatial.lower.constant_tile import Array, ConstantTerm, ConstantTile, Key, fits, of_term, splat, total

_BOOL, _INT64 = DTYPES["int1"], DTYPES["int64"]
_SMALL = 1 << 20  # sums of terms that are looked at one by one, to find whether another term matters
_FAR = 1 << 62  # numbers nearer to 0 have sums and differences of two that 64 bits hold


class Below(ConstantTerm):
    """Whether the sum of `sums` is below `bound`. No two of the terms have a key in common, and each has one."""

    __slots__ = ("bound", "sums")
    sums: tuple[ConstantTerm, ...]
    bound: int

    def __init__(self, sums: tuple[ConstantTerm, ...], bound: int) -> None:
        object.__setattr__(self, "sums", sums)
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "keys", tuple(key for term in sums for key in term.keys))

    @property
    def data(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]  # made when it is asked for
        """The truth values, over all keys. Raises TooLarge."""
        check_size(prod(term.data.size for term in self.sums))
        return reduce(np.add, (term.over(self.keys) for term in self.sums)) < self.bound

    def rekeyed(self, keys: Sequence[Key]) -> ConstantTerm:
        named = dict(zip(self.keys, keys, strict=True))
        return Below(tuple(term.rekeyed([named[key] for key in term.keys]) for term in self.sums), self.bound)

    def renamed(self, dims: Mapping[int, int]) -> ConstantTerm:
        return Below(tuple(term.renamed(dims) for term in self.sums), self.bound)

    def identical(self, other: ConstantTerm) -> bool:
        return isinstance(other, Below) and (self.bound, len(self.sums)) == (other.bound, len(other.sums)) and all(
            a.identical(b) for a, b in zip(self.sums, other.sums, strict=True)
        )

    def parts(self) -> tuple[ConstantTerm, ...] | None:
        """The same as a conjunction of terms of one key each, None where it is no such one."""
        if any(len(term.keys) > 1 for term in self.sums) or len(self.sums) != 2:
            return None
        (a, b), bound = self.sums, self.bound
        parts = tuple(ConstantTerm(x.data + int(y.data.min()) < bound, x.keys) for x, y in ((a, b), (b, a)))
        true = int(np.searchsorted(np.sort(b.data), bound - a.data, side="left").sum())
        return parts if true == prod(int(part.data.sum()) for part in parts) else None


def negative(tile: ConstantTile) -> ConstantTile | None:
    """Where a sum of integers, which does not wrap, is below 0; None where its terms depend on each other, or where those that
    vary may reach further than the sum of some does in 64 bits: what brings the whole sum back, a constant, is in the bound."""
    bound = -sum(int(term.data) for term in tile.terms if not term.keys)
    terms = [term for term in tile.terms if term.keys]
    if any(set(a.keys) & set(b.keys) for a, b in combinations(terms, 2)):
        return None
    if sum(max(-int(term.data.min()), int(term.data.max())) for term in terms) >= _FAR:
        return None
    terms, bound = _needed(terms, bound)
    if not terms:
        return splat(bound > 0, _BOOL, tile.shape)
    if len(terms) == 1:
        return of_term(_BOOL, tile.shape, ConstantTerm(terms[0].data < bound, terms[0].keys))
    return ConstantTile(_BOOL, tile.shape, (Below(tuple(terms), bound),))


def _needed(terms: Sequence[ConstantTerm], bound: int) -> tuple[list[ConstantTerm], int]:
    """The terms on which it depends whether their sum is below the bound; the bound less what the others add at least."""
    kept = list(terms)
    for term in terms:
        others = [other for other in kept if other is not term]
        if not _matters(term, others, bound):
            kept, bound = others, bound - int(term.data.min())
    return kept, bound


def _matters(term: ConstantTerm, others: Sequence[ConstantTerm], bound: int) -> bool:
    """Whether the sum of the others is below the bound with the term's least number, and not with its greatest."""
    least, greatest = bound - int(term.data.max()), bound - int(term.data.min())
    low, high = sum(int(other.data.min()) for other in others), sum(int(other.data.max()) for other in others)
    if high < least or low >= greatest:
        return False
    if prod(other.data.size for other in others) > _SMALL and len(others) > 1:
        return True
    found = reduce(np.add.outer, (other.data.reshape(-1) for other in others), np.zeros((), np.int64))
    return bool(((found >= least) & (found < greatest)).any())


# Comparisons as signs of differences: which operand is taken from which, and what is added to be below 0.
_SIDES = {"lt": (0, 1, 0), "gt": (1, 0, 0), "le": (0, 1, -1), "ge": (1, 0, -1)}


def compared(row: str, operands: Sequence[ConstantTile], result: DType) -> ConstantTile | None:
    """A comparison of integers in closed form, None where it has none."""
    signed = row[2] == "s"
    if operands[0].dtype.bits == 1 or not all(fits(operand, operand.dtype, signed) for operand in operands):
        return None
    first, second, more = _SIDES[row[:2]]
    left, right = (operands[side].as_type(_INT64) for side in (first, second))
    (low, high), (least, most) = left.bounds(), right.bounds()
    if low - most + more < -(1 << 63) or high - least + more >= 1 << 63:
        return None  # numbers of 64 bits are further apart than their differences can tell
    return negative(total(total(left, right, -1), splat(more, _INT64, left.shape)))
