"""What a product of several waves is: an operand in shared memory as a matrix unit finds it, and the shapes and formats of the
rest.

A group of `waves` neighbouring waves multiplies A (waves * rows of a wave x k) by B (k x n). B, and A unless registers hold it,
lie in shared memory, and one word, the descriptor, says where and how. C and D lie in registers: each wave holds its rows, in
blocks of columns one behind the other, each block as a `Fragment` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tilefw.sim.matrix.fragments import Accumulation, Fragment

if TYPE_CHECKING:
    from tilefw.sim.floats import Array

CHUNK = 16
"""Bytes of shared memory that a unit reads in one piece."""


class DescribedTile(Protocol):
    """An operand in shared memory; hashable, and equal where it says the same."""

    @property
    def fmt(self) -> str:
        """The format of its elements, as a `Fragment` names it."""
        ...

    @property
    def rows(self) -> int:
        """Rows of A, or columns of B."""
        ...

    @property
    def along_k(self) -> bool:
        """Whether a chunk of `CHUNK` bytes runs along k; else along the rows."""
        ...

    @property
    def negated(self) -> bool:
        """Whether the unit changes the sign of its elements."""
        ...

    def places(self, descriptor: int) -> Array:
        """The byte address of each chunk: [rows, chunks along k], or [k, chunks along the rows]."""
        ...


@dataclass(frozen=True, slots=True)
class GroupProduct:
    """D = A x B + C of a group of waves. `a` is a tile or, where registers hold A, the fragment of one wave's rows; `negated`:
    with the sign changed. `c` is the fragment of one block of the accumulators, whose lowest lane bits are columns; `n` columns in
    all. `saturating` sums of integers and the rounding of others are in `accumulation`."""

    waves: int
    n: int
    a: DescribedTile | Fragment
    b: DescribedTile
    c: Fragment
    accumulation: Accumulation
    negated: bool = False

    @property
    def a_format(self) -> str:
        """The format of A's elements."""
        return self.a.fmt

    @property
    def changes_sign(self) -> bool:
        """Whether the product counts negative: one of its factors does."""
        of_a = self.negated if isinstance(self.a, Fragment) else self.a.negated
        return of_a != self.b.negated
