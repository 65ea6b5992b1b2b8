"""How a kernel reaches the elements of a tensor from the dims of an index space: a linear place in memory, and what guards it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineMap

from tilefw.graph.index_maps import bounds, rows_of


@dataclass(frozen=True, slots=True)
class CoordinateGuard:
    """`0 <= sum of factors · dims + offset < extent` must hold where an element is read."""

    factors: tuple[int, ...]
    offset: int
    extent: int
    low: bool
    high: bool


@dataclass(frozen=True, slots=True)
class TensorAccess:
    """The number of an element in row-major order, and the guards of those coordinates that may be outside."""

    factors: tuple[int, ...]
    offset: int
    guards: tuple[CoordinateGuard, ...] = ()

    def plain(self, dim: int) -> bool:
        """Whether a dim is in no guard."""
        return not any(guard.factors[dim] for guard in self.guards)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """How many elements apart neighbours along each dim are."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def access(map: AffineMap, sizes: Sequence[int], shape: Sequence[int]) -> TensorAccess:
    """The access of a tensor of this shape at the places that a map gives over dims of these sizes."""
    factors, offset = [0] * len(sizes), 0
    guards: list[CoordinateGuard] = []
    for (row, constant), stride, extent in zip(rows_of(map), row_major(shape), shape, strict=True):
        factors = [held + factor * stride for held, factor in zip(factors, row, strict=True)]
        offset += constant * stride
        low, high = bounds((row, constant), sizes)
        if low < 0 or high >= extent:
            guards.append(CoordinateGuard(row, constant, extent, low < 0, high >= extent))
    return TensorAccess(tuple(factors), offset, tuple(guards))


def merged(dims: Sequence[int], sizes: Mapping[int, int], accesses: Sequence[TensorAccess]) -> list[tuple[int, int]]:
    """The dims with their sizes, where neighbours that every access walks as one dim are one: it is called by the last of them.
    Dims of one element fall away."""
    found: list[tuple[int, int]] = []
    for dim in dims:
        size = sizes[dim]
        if size == 1:
            continue
        if found and all(
            one.plain(dim) and one.plain(found[-1][0]) and one.factors[found[-1][0]] == one.factors[dim] * size for one in accesses
        ):
            size *= found.pop()[1]
        found.append((dim, size))
    return found


@dataclass(frozen=True, slots=True)
class IndexWords:
    """What kernels call the dims of an index space: by each word a number in row-major order over dims of these sizes."""

    words: Mapping[str, Sequence[tuple[int, int]]]

    def linear(self, factors: Sequence[int], offset: int) -> str:
        """A linear expression as text; dims of no word are 0. Neighbours that the expression walks as one dim are one in it."""
        terms = [text for word, dims in self.words.items() for text in _terms(word, dims, factors)]
        if offset or not terms:
            terms.append(str(offset))
        return " + ".join(terms)

    def guards(self, found: TensorAccess) -> list[str]:
        """The conditions of an access's guards."""
        texts: list[str] = []
        for guard in found.guards:
            place = self.linear(guard.factors, guard.offset)
            if guard.low:
                texts.append(f"({place} >= 0)")
            if guard.high:
                texts.append(f"({place} < {guard.extent})")
        return texts


def _terms(word: str, dims: Sequence[tuple[int, int]], factors: Sequence[int]) -> Iterator[str]:
    """The coordinates of a number in row-major order over dims of these sizes, times their factors."""
    strides = row_major([size for _, size in dims])
    first = 0
    for last, (dim, _) in enumerate(dims):
        factor = factors[dim]
        if last + 1 < len(dims) and factor == factors[dims[last + 1][0]] * dims[last + 1][1]:
            continue
        if factor:
            text = word if strides[last] == 1 else f"({word} // {strides[last]})"
            if first:
                text = f"({text} % {prod(size for _, size in dims[first : last + 1])})"
            yield text if factor == 1 else f"{text} * {factor}"
        first = last + 1
