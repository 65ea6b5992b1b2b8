"""Pairs of e2m1 that are neighbours along M or N, made pairs along K: a matrix unit reads those from a row's bytes as they are.

Of two bytes that are neighbours along K, the low halves are a pair of one row and the high halves one of the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tilefw.passes.rewriting import insert, place_before
from tilefw.tile import types
from tilefw.tile.dialect import elementwise_op, ops
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp, ScaledOperand

_HALF = 4
_LOW, _HIGH = 0x0F, 0xF0


def packed_along_k(op: DotScaledOp) -> DotScaledOp | None:
    """The same product of operands that are packed along K, before `op`; None where they are."""
    sides = (op.left, op.right)
    if all(side.packing == "k" for side in sides):
        return None
    a, b = (side.value if side.packing == "k" else _turned(side, op) for side in sides)
    made = DotScaledOp(a, b, op.acc, op.left.scale, op.right.scale)
    place_before(made, op)
    return made


def _turned(operand: ScaledOperand, at: Operation) -> SSAValue:
    shape, k, outer = types.shape_of(operand.value.type), operand.k_dim, operand.packed_dim
    rank = len(shape)
    pairs = _reshaped(operand.value, (*shape[:k], shape[k] // 2, 2, *shape[k + 1 :]), at)
    apart = ops.SplitOp(_last(pairs, k + 1, at))
    place_before(apart, at)
    first, second = apart.results  # of each two along K
    low = _row("ori", _with("andi", first, _LOW, at), _with("shl", second, _HALF, at), at)
    high = _row("ori", _with("shru", first, _HALF, at), _with("andi", second, _HIGH, at), at)
    rows = insert(ops.JoinOp(low, high), at)
    order = [*range(outer + 1), rank, *range(outer + 1, rank)]
    turned = rows if order[-1] == rank else insert(ops.TransOp(rows, order), at)
    size = {k: shape[k] // 2, outer: 2 * shape[outer]}
    return _reshaped(turned, [size.get(dim, extent) for dim, extent in enumerate(shape)], at)


def _last(value: SSAValue, dim: int, at: Operation) -> SSAValue:
    """A tile with one of its dims behind all others."""
    rank = len(types.shape_of(value.type))
    order = [*(other for other in range(rank) if other != dim), dim]
    return value if dim == rank - 1 else insert(ops.TransOp(value, order), at)


def _reshaped(value: SSAValue, shape: Sequence[int], at: Operation) -> SSAValue:
    return insert(ops.ReshapeOp(value, types.tile(tuple(shape), types.element_of(value.type))), at)


def _with(name: str, value: SSAValue, number: int, at: Operation) -> SSAValue:
    return _row(name, value, insert(ops.ConstantOp(number, value.type), at), at)


def _row(name: str, x: SSAValue, y: SSAValue, at: Operation) -> SSAValue:
    return insert(elementwise_op.build(name, x, y), at)
