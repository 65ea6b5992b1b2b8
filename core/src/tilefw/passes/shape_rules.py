"""Rules of canonical form for shape ops, reductions and dots: what undoes each other goes, what can be one op becomes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation, OpResult, SSAValue

from tilefw.passes.fold import constant_of
from tilefw.passes.rewriting import insert, replace
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.elementwise import ROWS


def _shape_of_splat(op: Any) -> bool:
    """Broadcasts and other reshapings of a splat are splats."""
    inner = op.source.owner
    if not isinstance(inner, ops.SplatOp) or op.attributes or not types.is_tile(op.results[0].type):
        return False
    replace(op, insert(ops.SplatOp(inner.source, op.results[0].type), op))
    return True


def _broadcast(op: ops.BroadcastOp) -> bool:
    inner = op.source.owner
    if isinstance(inner, ops.BroadcastOp) and not op.attributes:
        replace(op, insert(ops.BroadcastOp(inner.source, op.results[0].type), op))
        return True
    return _shape_of_splat(op)


def _reshape(op: ops.ReshapeOp) -> bool:
    """The order of elements is what a reshape keeps: all that stands before it and keeps it too is one with it."""
    inner = op.source.owner
    if isinstance(inner, ops.ReshapeOp | ops.ExpandDimsOp) and not op.attributes:
        replace(op, insert(ops.ReshapeOp(inner.source, op.results[0].type), op))
        return True
    if isinstance(inner, ops.SplatOp) and not types.is_tile(op.results[0].type):
        replace(op, inner.source)
        return True
    return _shape_of_splat(op)


def _trans(op: ops.TransOp) -> bool:
    inner = op.source.owner
    if isinstance(inner, ops.TransOp) and not op.attributes:
        replace(op, insert(ops.TransOp(inner.source, [inner.order[i] for i in op.order]), op))
        return True
    return _shape_of_splat(op)


def _flip(op: ops.FlipOp) -> bool:
    inner = op.source.owner
    if isinstance(inner, ops.FlipOp) and inner.axis == op.axis:
        replace(op, inner.source)
        return True
    if isinstance(inner, ops.SplatOp) or types.shape_of(op.source.type)[op.axis] == 1:
        replace(op, op.source)
        return True
    return False


def _join(op: ops.JoinOp) -> bool:
    """What was split is joined again; two of one splat are a splat."""
    left, right = op._operands
    first, second = left.owner, right.owner
    if isinstance(first, ops.SplitOp) and first is second and (left, right) == tuple(first.results):
        replace(op, first.source)
        return True
    if not op.attributes and isinstance(first, ops.SplatOp) and isinstance(second, ops.SplatOp) and first.source is second.source:
        replace(op, insert(ops.SplatOp(first.source, op.results[0].type), op))
        return True
    return False


def _split(op: ops.SplitOp) -> bool:
    inner = op.source.owner
    if isinstance(inner, ops.JoinOp):
        replace(op, *inner._operands)
        return True
    if op.attributes:
        return False
    type = op.results[0].type
    if (literal := constant_of(op.source)) is not None:
        half = insert(ops.ConstantOp(literal, type), op)
    elif isinstance(inner, ops.SplatOp):
        half = insert(ops.SplatOp(inner.source, type), op)
    else:
        return False
    replace(op, half, half)
    return True


# Rows that give x for x and x: in a reduction of equal elements any number of them does.
_IDEMPOTENT = frozenset(name for name, row in ROWS.items() if row.same_operands == "x")


def _scan(op: ops.ScanOp) -> bool:
    """The first element is its own result, and so are equal elements under an idempotent row."""
    alike = op.row in _IDEMPOTENT and (isinstance(op._operands[0].owner, ops.SplatOp) or constant_of(op._operands[0]) is not None)
    if op.attributes or not (op.extent == 1 or alike):
        return False
    replace(op, *op._operands)
    return True


def _reduce(op: ops.ReduceOp) -> bool:
    """An axis of one element holds its own result; of equal elements an idempotent row leaves one."""
    if op.attributes:
        return False
    if op.extent == 1:
        replace(op, *[insert(ops.ReshapeOp(v, r.type), op) for v, r in zip(op._operands, op.results, strict=True)])
        return True
    row = op.row
    if row not in _IDEMPOTENT:
        return False
    type = op.results[0].type
    if (literal := constant_of(op._operands[0])) is not None:
        replace(op, insert(ops.ConstantOp(literal, type), op))
        return True
    inner = op._operands[0].owner
    if not isinstance(inner, ops.SplatOp):
        return False
    replace(op, insert(ops.SplatOp(inner.source, type), op) if types.is_tile(type) else inner.source)
    return True


def add_into_dot(op: ElementwiseOp) -> bool:
    """x + (a · b + 0) is a · b + x, as matrix units add for nothing: `acc += dot(a, b)` accumulates in place."""
    if op.row.name not in ("addf", "addi") or op.attributes:
        return False
    for product, other in (op._operands, op._operands[::-1]):
        if _is_lone_product(product, op):
            dot: Any = product.owner
            replace(op, insert(ops.DotOp(dot.a, dot.b, other, dot.input_precision, dot.unsigned), op))
            return True
    return False


def _is_lone_product(value: SSAValue, user: Operation) -> bool:
    """Whether the value is a dot onto zeros, in the same block, that nothing else uses."""
    if not isinstance(value, OpResult) or not isinstance(value.op, ops.DotOp):
        return False
    uses = iter(value.uses)
    next(uses)
    alone = next(uses, None) is None
    return alone and value.op.parent is user.parent and not value.op.attributes and constant_of(value.op.acc) == 0


RULES: dict[type[Operation], Callable[[Any], bool]] = {
    ops.BroadcastOp: _broadcast,
    ops.ReshapeOp: _reshape,
    ops.ExpandDimsOp: _shape_of_splat,
    ops.TransOp: _trans,
    ops.FlipOp: _flip,
    ops.JoinOp: _join,
    ops.SplitOp: _split,
    ops.ReduceOp: _reduce,
    ops.ScanOp: _scan,
}
