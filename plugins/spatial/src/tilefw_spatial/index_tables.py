"""Index tables in closed form: affine offsets, and masks that are one interval.

An axis may have as many indices as the chip has bytes, and an access that is refused for its size many more: what a first number
and a step describe is never written out, unless the table is requested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

LARGEST = 1 << 26
"""Numbers of one table: 512 MiB of offsets."""


class TooLarge(Exception):
    """A table of more numbers than the compiler keeps."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


def check_size(count: int) -> None:
    """Raises TooLarge where a table of so many numbers is not kept."""
    if count > LARGEST:
        raise TooLarge(count)


@dataclass(frozen=True, slots=True)
class AffineTable:
    """`first + i · step` for each of `count` indices. NumPy takes it as that array."""

    first: int
    step: int
    count: int

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> NDArray[np.int64]:
        check_size(self.count)
        return (self.first + self.step * np.arange(self.count, dtype=np.int64)).astype(dtype or np.int64, copy=False)

    def __len__(self) -> int:
        return self.count

    def __mul__(self, factor: int) -> AffineTable:
        return AffineTable(self.first * factor, self.step * factor, self.count)

    @overload
    def __getitem__(self, index: slice) -> AffineTable: ...
    @overload
    def __getitem__(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]: ...
    def __getitem__(self, index: slice | NDArray[np.int64] | NDArray[np.bool_]) -> AffineTable | NDArray[np.int64]:
        if isinstance(index, slice):
            taken = range(self.count)[index]
            return AffineTable(self.first + taken.start * self.step, self.step * taken.step, len(taken))
        numbers = np.flatnonzero(index) if index.dtype == np.bool_ else np.where(index < 0, index + self.count, index)
        return self.first + self.step * numbers

    def any(self) -> bool:
        """Whether a number is not 0."""
        return self.count > 0 and (self.first != 0 or (self.step != 0 and self.count > 1))

    def min(self) -> int:
        """The least number."""
        return min(self.first, self.first + self.step * (self.count - 1))

    def max(self) -> int:
        """The greatest number."""
        return max(self.first, self.first + self.step * (self.count - 1))


@dataclass(frozen=True, slots=True)
class IndexInterval:
    """True for the indices from `low` up to `high` of `count`, 0 ≤ low ≤ high ≤ count. NumPy takes it as that array."""

    low: int
    high: int
    count: int

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> NDArray[np.bool_]:
        check_size(self.count)
        found = np.zeros(self.count, dtype or np.bool_)
        found[self.low : self.high] = True
        return found

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.bool_]:
        numbers = np.flatnonzero(index) if index.dtype == np.bool_ else np.where(index < 0, index + self.count, index)
        return (numbers >= self.low) & (numbers < self.high)

    def any(self) -> bool:
        """Whether one is true."""
        return self.low < self.high

    def all(self) -> bool:
        """Whether each is true."""
        return self.high - self.low == self.count

    def sum(self) -> int:
        """How many are true."""
        return self.high - self.low


Offsets = NDArray[np.int64] | AffineTable
Valid = NDArray[np.bool_] | IndexInterval


def even(offsets: NDArray[np.int64]) -> Offsets:
    """A table in closed form, where it is affine."""
    if offsets.ndim != 1 or not offsets.size:
        return offsets
    step = int(offsets[1]) - int(offsets[0]) if offsets.size > 1 else 0
    if offsets.size > 2 and (np.diff(offsets) != step).any():
        return offsets
    return AffineTable(int(offsets[0]), step, offsets.size)


def together(a: Valid | None, b: Valid | None) -> Valid | None:
    """The indices that both have; None where all."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, IndexInterval) and isinstance(b, IndexInterval):
        low = max(a.low, b.low)
        return IndexInterval(low, max(low, min(a.high, b.high)), a.count)
    return np.asarray(a) & np.asarray(b)


def taken(table: Offsets, valid: Valid) -> Offsets:
    """A table without the indices that do not count."""
    return table[valid.low : valid.high] if isinstance(valid, IndexInterval) else table[valid]


def taken_valid(table: Valid, valid: Valid) -> Valid | None:
    """Which of the indices that count are among those of `table`, of the others none; None where all are."""
    if isinstance(table, IndexInterval) and isinstance(valid, IndexInterval):
        low, high = (min(max(end, valid.low), valid.high) - valid.low for end in (table.low, table.high))
        found: Valid = IndexInterval(low, high, valid.sum())
    else:
        found = np.asarray(table)[np.asarray(valid)]
    return None if found.all() else found


def run(valid: NDArray[np.bool_]) -> Valid:
    """A table of truth values in closed form, where those that are true follow one another."""
    if valid.ndim != 1:
        return valid
    found = np.flatnonzero(valid)
    if found.size and int(found[-1]) - int(found[0]) + 1 != found.size:
        return valid
    return IndexInterval(int(found[0]), int(found[-1]) + 1, valid.size) if found.size else IndexInterval(0, 0, valid.size)


def either(a: Valid, b: Valid) -> Valid:
    """The indices that one of both has."""
    if isinstance(a, IndexInterval) and isinstance(b, IndexInterval) and max(a.low, b.low) <= min(a.high, b.high):
        return IndexInterval(min(a.low, b.low), max(a.high, b.high), a.count)
    return np.asarray(a) | np.asarray(b)
