"""Which rows of a loaded tile nobody reads: those that the kernel computes with, and never stores.

A kernel whose last block of rows is cut short may let their index wrap around (`rows % M`), so that all loads are within the array.
What it then computes of them it masks off when it stores. So nobody misses the rows beyond the end.
"""

from __future__ import annotations

from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Operation, SSAValue

from tilefw.passes.affine import AffineAnalysis, Poly
from tilefw.simt.software_pipeline.loop_numbers import changes_in
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.block_ops import StoreBlockOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp


def are_unread(value: SSAValue, dim: int, rest: Poly, analysis: AffineAnalysis) -> bool:
    """Whether no element that a kernel stores depends on the elements of `value` from index `rest` of `dim` on: `rest` is what is
    left of the array there."""
    seen: set[tuple[SSAValue, int]] = set()
    pending = [(value, dim)]
    while pending:
        reached = pending.pop()
        if reached in seen:
            continue
        seen.add(reached)
        for use in reached[0].uses:
            following = _following(use.operation, use.index, reached[1], rest, analysis)
            if following is None:
                return False
            pending += following
    return True


def _following(op: Operation, index: int, dim: int, rest: Poly, analysis: AffineAnalysis) -> list[tuple[SSAValue, int]] | None:
    """Which rows of an op's results depend on those of one operand; None where others may, or memory."""
    if isinstance(op, StoreBlockOp):
        return [] if index == len(op.operands) - 1 and _is_masked(op, dim, rest, analysis) else None
    if isinstance(op, YieldOp):
        loop = op.parent_op()
        return _carried(loop, index, dim, rest) if isinstance(loop, ForOp) else None
    if isinstance(op, ForOp):
        return _carried(op, index - 3, dim, rest)
    moved = _moved(op, index, dim)
    return None if moved is None else [(op.results[0], moved)]


def _moved(op: Operation, index: int, dim: int) -> int | None:
    """The dim of the result along which the rows then lie."""
    if isinstance(op, DotScaledOp):
        return None
    if isinstance(op, DotOp):
        if len(types.shape_of(op.results[0].type)) != 2:
            return None
        return dim if index == 2 or index == dim else None  # the rows of a are those of the result, and the columns of b
    if isinstance(op, ops.TransOp):
        return tuple(op.order).index(dim)
    if isinstance(op, ops.ExpandDimsOp):
        return dim + (op.axis <= dim)
    if isinstance(op, ElementwiseOp) and types.is_tile(op.results[0].type):
        return dim
    return None


def _carried(loop: ForOp, index: int, dim: int, rest: Poly) -> list[tuple[SSAValue, int]] | None:
    """What a loop carries has the same rows in each iteration, where `rest` is the same in each."""
    if changes_in(loop, rest):
        return None
    return [(loop.body.block.args[1 + index], dim), (loop.results[index], dim)]


def _is_masked(op: StoreBlockOp, dim: int, rest: Poly, analysis: AffineAnalysis) -> bool:
    """Whether a store leaves out all that is beyond `rest`."""
    bound = op.shape[dim]
    limit = None if bound is None else analysis.limit(bound)
    return limit is not None and limit - analysis.scalar(op.offsets[dim]) == rest
