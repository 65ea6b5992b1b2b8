"""Linear algebra over the field of two elements: a matrix is a tuple of columns, a column an int whose bits are its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Columns = Sequence[int]


def apply(columns: Columns, x: int) -> int:
    """The matrix times the vector `x`: the XOR of the columns that x's bits choose."""
    result = 0
    while x:
        low = x & -x
        result ^= columns[low.bit_length() - 1]
        x ^= low
    return result


def table(columns: Columns) -> tuple[int, ...]:
    """The matrix times every vector in turn, 2^columns of them, at one XOR each."""
    values = [0]
    for column in columns:
        values += [v ^ column for v in values]
    return tuple(values)


def compose(outer: Columns, inner: Columns) -> tuple[int, ...]:
    """The matrix product outer · inner."""
    return tuple([apply(outer, column) for column in inner])


def identity(size: int) -> tuple[int, ...]:
    """The unit matrix."""
    return tuple(1 << i for i in range(size))


class Subspace:
    """The span of the columns added so far, in echelon form; each vector of it is known as a sum of those columns."""

    __slots__ = ("_pivots", "count")

    def __init__(self, columns: Iterable[int] = ()) -> None:
        self._pivots: dict[int, tuple[int, int]] = {}
        self.count = 0
        for column in columns:
            self.add(column)

    @property
    def rank(self) -> int:
        return len(self._pivots)

    def reduce(self, vector: int) -> tuple[int, int]:
        """What is left of `vector` after elimination (0 when it lies in the span), and the columns that were taken, as a mask."""
        used, rest, pivots = 0, 0, self._pivots
        while vector:
            top = vector.bit_length()
            if top in pivots:
                column, taken = pivots[top]
                vector ^= column
                used ^= taken
            else:
                bit = 1 << (top - 1)
                rest |= bit
                vector ^= bit
        return rest, used

    def add(self, column: int) -> bool:
        """Adds a column; False when it lay in the span."""
        rest, used = self.reduce(column)
        used ^= 1 << self.count
        self.count += 1
        if rest:
            self._pivots[rest.bit_length()] = (rest, used)
        return rest != 0

    def __contains__(self, vector: int) -> bool:
        return self.reduce(vector)[0] == 0

    def solve(self, target: int) -> int | None:
        """Some x with columns · x = target; None when there is none."""
        rest, used = self.reduce(target)
        return None if rest else used

    def solve_all(self, targets: Iterable[int]) -> tuple[int, ...] | None:
        """X with columns · X = targets; None when one of them lies outside."""
        found = []
        for target in targets:
            rest, used = self.reduce(target)
            if rest:
                return None
            found.append(used)
        return tuple(found)


def rank(columns: Columns) -> int:
    """The dimension of the span of the columns."""
    basis: dict[int, int] = {}  # by the number of their leading bit
    for column in columns:
        while column:
            top = column.bit_length()
            if top not in basis:
                basis[top] = column
                break
            column ^= basis[top]
    return len(basis)


def kernel(columns: Columns) -> tuple[int, ...]:
    """A basis of the vectors that the matrix sends to zero."""
    span, found = Subspace(), []
    for i, column in enumerate(columns):
        rest, used = span.reduce(column)
        span.add(column)
        if not rest:
            found.append(used | 1 << i)
    return tuple(found)


def solve(columns: Columns, target: int) -> int | None:
    """Some x with matrix · x = target; None when there is none."""
    return Subspace(columns).solve(target)


def right_inverse(columns: Columns, rows: int) -> tuple[int, ...]:
    """R with matrix · R = 1: the chosen preimage of each unit vector; columns that depend on earlier ones are not used.

    Raises ValueError when the matrix does not reach all of its `rows` dimensions.
    """
    found = Subspace(columns).solve_all(identity(rows))
    if found is None:
        raise ValueError("the matrix does not reach every row")
    return found


def invert(columns: Columns) -> tuple[int, ...]:
    """The inverse of a square matrix; raises ValueError when it is singular."""
    return right_inverse(columns, len(columns))


def echelon(columns: Columns) -> tuple[int, ...]:
    """The one reduced basis of the columns' span, ascending: equal for two matrices exactly when their spans are equal."""
    basis: dict[int, int] = {}
    for column in columns:
        for top, b in basis.items():
            if column >> top & 1:
                column ^= b
        if column:
            new = column.bit_length() - 1
            for top, b in basis.items():
                if b >> new & 1:
                    basis[top] = b ^ column
            basis[new] = column
    return tuple(sorted(basis.values()))


def intersection(a: Columns, b: Columns) -> tuple[int, ...]:
    """A basis of the vectors in both spans. Columns that are in both as they stand come first, in a's order."""
    inside, span = set(b), Subspace()
    common = [c for c in a if c in inside and span.add(c)]
    independent = [c for c, new in zip(a, map(Subspace().add, a), strict=True) if new]
    for relation in kernel((*independent, *b)):
        vector = apply(independent, relation & ((1 << len(independent)) - 1))
        if vector and span.add(vector):
            common.append(vector)
    return tuple(common)


def complete(columns: Columns, rows: int) -> tuple[int, ...]:
    """Unit vectors, lowest first, that together with the columns span all `rows` dimensions."""
    span = Subspace(columns)
    return tuple(1 << i for i in range(rows) if span.add(1 << i))
