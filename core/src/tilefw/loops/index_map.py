"""Which element of an operand an element of a shape op's result is: one rule an op, over indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.ir import Operation

from tilefw.loops.index import Index, IndexMath, fixed
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.dim_groups import matching_dims

Indices = tuple[Index[Any], ...]


def operand_index(op: Operation, at: Indices, math: IndexMath[Any]) -> Indices | None:
    """The index of the operand's element that the result of a one-operand shape op has at `at`; None for other ops."""
    rule = _RULES.get(type(op))
    return None if rule is None else rule(op, at, math)


def flat_index(at: Indices, shape: Sequence[int], math: IndexMath[Any]) -> Index[Any]:
    """The row-major index of an element in a tile of `shape`."""
    total = fixed(0)
    for dim, index in enumerate(at):
        total = math.add(total, math.scaled(index, prod(shape[dim + 1 :])))
    return total


def unflattened(flat: Index[Any], shape: Sequence[int], math: IndexMath[Any]) -> Indices:
    """The index, one a dim, of the element at a row-major index."""
    found: list[Index[Any]] = []
    for size in reversed(shape[1:]):
        flat, rest = math.divided(flat, size)
        found.append(rest)
    return (flat, *reversed(found)) if shape else ()


def _splat(op: Any, at: Indices, math: IndexMath[Any]) -> Indices:
    return ()


def _broadcast(op: Any, at: Indices, math: IndexMath[Any]) -> Indices:
    shape = types.shape_of(op.source.type)
    return tuple(fixed(0) if size == 1 else index for size, index in zip(shape, at, strict=True))


def _expand_dims(op: Any, at: Indices, math: IndexMath[Any]) -> Indices:
    return (*at[: op.axis], *at[op.axis + 1 :])


def _trans(op: Any, at: Indices, math: IndexMath[Any]) -> Indices:
    found: list[Index[Any]] = [fixed(0)] * len(at)
    for dim, source in enumerate(op.order):
        found[source] = at[dim]
    return tuple(found)


def _flip(op: Any, at: Indices, math: IndexMath[Any]) -> Indices:
    axis = op.axis
    return (*at[:axis], math.mirrored(at[axis], types.shape_of(op.source.type)[axis]), *at[axis + 1 :])


def _reshape(op: Any, at: Indices, math: IndexMath[Any]) -> Indices:
    source, result = types.shape_of(op.source.type), types.shape_of(op.results[0].type)
    found: list[Index[Any]] = [fixed(0)] * len(source)
    for old, new in matching_dims(source, result):
        flat = flat_index([at[d] for d in new], [result[d] for d in new], math)  # type: ignore[arg-type]
        for dim, index in zip(old, unflattened(flat, [source[d] for d in old], math), strict=True):
            found[dim] = index
    return tuple(found)


_RULES: dict[type[Operation], Callable[[Any, Indices, IndexMath[Any]], Indices]] = {
    ops.SplatOp: _splat,
    ops.BroadcastOp: _broadcast,
    ops.ExpandDimsOp: _expand_dims,
    ops.TransOp: _trans,
    ops.FlipOp: _flip,
    ops.ReshapeOp: _reshape,
    ops.SplitOp: lambda op, at, math: at,  # the last dim's index is the number of the result
}
