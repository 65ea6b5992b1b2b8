"""Linear maps between the flat indices of shapes (row-major, powers of two), as the images of the bits of the first."""

from __future__ import annotations

from functools import lru_cache

from tilefw.api.integers import log2

Shape = tuple[int, ...]


def bit_starts(shape: Shape) -> list[int]:
    """The bit of the flat index at which each dim's index begins."""
    starts, at = [], 0
    for size in reversed(shape):
        starts.append(at)
        at += log2(size)
    return starts[::-1]


@lru_cache(maxsize=1024)
def without(shape: Shape, axis: int) -> tuple[int, ...]:
    """To the shape without `axis`."""
    return grouped(shape, axis, log2(shape[axis]))


@lru_cache(maxsize=1024)
def grouped(shape: Shape, axis: int, bits: int) -> tuple[int, ...]:
    """To the shape whose index along `axis` counts groups of 2^`bits`."""
    low = bit_starts(shape)[axis]
    total = sum(log2(s) for s in shape)
    return tuple(1 << i if i < low else 0 if i < low + bits else 1 << (i - bits) for i in range(total))


@lru_cache(maxsize=1024)
def shrunk(shape: Shape, small: Shape) -> tuple[int, ...]:
    """To `small`, which has 1 where a dim of `shape` is not kept."""
    matrix: list[int] = []
    starts = bit_starts(small)
    for d in reversed(range(len(shape))):
        matrix += [0 if small[d] == 1 else 1 << (starts[d] + k) for k in range(log2(shape[d]))]
    return tuple(matrix)


@lru_cache(maxsize=1024)
def grown(small: Shape, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """From `small` to `shape`, of which it has 1 in some dims; and the bases of the dims it lacks, fastest dim first."""
    kept: list[int] = []
    new: list[int] = []
    starts = bit_starts(shape)
    for d in reversed(range(len(shape))):
        (kept if small[d] == shape[d] else new).extend(1 << (starts[d] + k) for k in range(log2(shape[d])))
    return tuple(kept), tuple(new)


@lru_cache(maxsize=1024)
def permuted(shape: Shape, order: tuple[int, ...]) -> tuple[int, ...]:
    """To the shape whose dim i is dim order[i]."""
    starts = bit_starts(tuple(shape[d] for d in order))
    where = {d: starts[i] for i, d in enumerate(order)}
    return tuple(1 << (where[d] + k) for d in reversed(range(len(shape))) for k in range(log2(shape[d])))


@lru_cache(maxsize=1024)
def embedding(tile: Shape, shape: Shape, low: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """From `tile` to `shape` where it stands at the origin; and from shape/low to `shape` where each index counts tiles."""
    starts = bit_starts(shape)
    inner: list[int] = []
    outer: list[int] = []
    for d in reversed(range(len(shape))):
        inner += [1 << (starts[d] + k) for k in range(log2(tile[d]))]
        outer += [1 << (starts[d] + k) for k in range(log2(low[d]), log2(shape[d]))]
    return tuple(inner), tuple(outer)
