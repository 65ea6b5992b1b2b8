"""Linear algebra over the field of two elements: a matrix is a tuple of columns, a column an int whose bits are its rows."""

from __future__ import annotations

from collections.abc import Sequence

Columns = Sequence[int]


def apply(columns: Columns, x: int) -> int:
    """The matrix times the vector `x`: the XOR of the columns that x's bits choose."""
    result = 0
    for i, column in enumerate(columns):
        if x >> i & 1:
            result ^= column
    return result


def compose(outer: Columns, inner: Columns) -> tuple[int, ...]:
    """The matrix product outer · inner."""
    return tuple(apply(outer, column) for column in inner)


def rank(columns: Columns) -> int:
    """The dimension of the span of the columns."""
    return sum(1 for pivot in _reduce(columns) if pivot[0])


def kernel(columns: Columns) -> tuple[int, ...]:
    """A basis of the vectors that the matrix sends to zero."""
    return tuple(combination for value, combination in _reduce(columns) if not value)


def solve(columns: Columns, target: int) -> int | None:
    """Some x with matrix · x = target, using as few columns as elimination finds; None when there is none."""
    x = 0
    for value, combination in sorted((p for p in _reduce(columns) if p[0]), key=lambda p: -p[0].bit_length()):
        if target >> (value.bit_length() - 1) & 1:
            target ^= value
            x ^= combination
    return None if target else x


def invert(columns: Columns) -> tuple[int, ...]:
    """The inverse of a square matrix; raises ValueError when it is singular."""
    found = [solve(columns, 1 << i) for i in range(len(columns))]
    if any(x is None for x in found):
        raise ValueError("the matrix is singular")
    return tuple(found)  # type: ignore[arg-type]


def _reduce(columns: Columns) -> list[tuple[int, int]]:
    """Gaussian elimination: (reduced column, which input columns sum to it); leading bits of nonzero ones differ."""
    pivots: dict[int, tuple[int, int]] = {}
    result: list[tuple[int, int]] = []
    for i, column in enumerate(columns):
        value, combination = column, 1 << i
        while value and value.bit_length() in pivots:
            other, used = pivots[value.bit_length()]
            value ^= other
            combination ^= used
        if value:
            pivots[value.bit_length()] = (value, combination)
        result.append((value, combination))
    return result
