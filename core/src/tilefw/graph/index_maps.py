"""Index maps: affine maps from the indices of a result to those of a source, evaluated on arrays and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

Array = np.ndarray[Any, Any]


def linear_map(rows: Sequence[Sequence[int]], offsets: Sequence[int], dims: int) -> AffineMap:
    """The map whose result `r` is the sum of `rows[r][d]` times dim `d`, and `offsets[r]`."""
    return AffineMap(dims, 0, tuple(_sum(row, offset) for row, offset in zip(rows, offsets, strict=True)))


def own_places(rank: int, axis: int) -> AffineMap:
    """Each element's own place, but the first along `axis`, where an index tensor says which."""
    return linear_map([[int(d == k and k != axis) for d in range(rank)] for k in range(rank)], [0] * rank, rank)


def _sum(row: Sequence[int], offset: int) -> AffineExpr:
    found: AffineExpr | None = None
    for dim, factor in enumerate(row):
        if not factor:
            continue
        term = AffineExpr.dimension(dim) if factor == 1 else AffineExpr.dimension(dim) * factor
        found = term if found is None else found + term
    if found is None:
        return AffineExpr.constant(offset)
    return found + offset if offset else found


def linear_terms(expression: AffineExpr, dims: int) -> tuple[tuple[int, ...], int] | None:
    """The factor of each dim and the constant of a linear expression; None for one that is not."""
    if isinstance(expression, AffineConstantExpr):
        return (0,) * dims, expression.value
    if isinstance(expression, AffineDimExpr):
        return tuple(int(dim == expression.position) for dim in range(dims)), 0
    if not isinstance(expression, AffineBinaryOpExpr):
        return None
    left, right = linear_terms(expression.lhs, dims), linear_terms(expression.rhs, dims)
    if left is None or right is None:
        return None
    if expression.kind is AffineBinaryOpKind.Add:
        return tuple(a + b for a, b in zip(left[0], right[0], strict=True)), left[1] + right[1]
    if expression.kind is not AffineBinaryOpKind.Mul or (any(left[0]) and any(right[0])):
        return None
    scale, terms = (left[1], right) if not any(left[0]) else (right[1], left)
    return tuple(scale * factor for factor in terms[0]), scale * terms[1]


def rows_of(map: AffineMap) -> list[tuple[tuple[int, ...], int]]:
    """The linear terms of every result of a map that the verifier has let pass."""
    found = [linear_terms(expression, map.num_dims) for expression in map.results]
    assert all(terms is not None for terms in found)
    return [terms for terms in found if terms is not None]


def bounds(terms: tuple[tuple[int, ...], int], sizes: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest value of a linear expression over dims of these sizes."""
    factors, offset = terms
    reach = [factor * (size - 1) for factor, size in zip(factors, sizes, strict=True)]
    return offset + sum(min(0, one) for one in reach), offset + sum(max(0, one) for one in reach)


def stays_inside(map: AffineMap, sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether every index that the map gives is one of a tensor of this shape."""
    found = [bounds(terms, sizes) for terms in rows_of(map)]
    return all(low >= 0 and high < extent for (low, high), extent in zip(found, shape, strict=True))


def composed(outer: AffineMap, inner: AffineMap) -> AffineMap:
    """The map that applies `inner` to an index, then `outer` to what it gives."""
    dims, given = inner.num_dims, rows_of(inner)
    rows, offsets = [], []
    for factors, offset in rows_of(outer):
        rows.append([sum(f * given[k][0][d] for k, f in enumerate(factors)) for d in range(dims)])
        offsets.append(offset + sum(f * given[k][1] for k, f in enumerate(factors)))
    return linear_map(rows, offsets, dims)


def merging_map(source: tuple[int, ...], result: tuple[int, ...]) -> AffineMap | None:
    """The map from the indices of a shape to those of its reshape, where each dim of the reshape is neighbouring dims of the shape
    as one, or a dim of one element. None where a dim would have to be split."""
    rows: list[list[int]] = []
    at = 0
    for extent in result:
        row, held = [0] * len(source), 1
        first = at
        while held < extent and at < len(source):
            held *= source[at]
            at += 1
        if held != extent:
            return None
        step = 1
        for dim in reversed(range(first, at)):
            row[dim] = step
            step *= source[dim]
        rows.append(row)
    return linear_map(rows, [0] * len(result), len(source))


def places(map: AffineMap, sizes: Sequence[int]) -> list[Array]:
    """The value of every result of the map at each index of an iteration space, as arrays that broadcast to `sizes`."""
    grids = [
        np.arange(size).reshape([size if k == dim else 1 for k in range(len(sizes))]) for dim, size in enumerate(sizes)
    ]
    found = []
    for factors, offset in rows_of(map):
        place: Array = np.full([1] * len(sizes), offset, np.int64)
        for factor, grid in zip(factors, grids, strict=True):
            place = place + factor * grid if factor else place
        found.append(place)
    return found
