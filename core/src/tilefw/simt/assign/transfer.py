"""How layouts pass through ops that move elements: backward to the operands, and forward to the results."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilefw.simt.layout import LinearLayout
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.combine_op import ReduceOp
from tilefw.tile.dialect.shape_ops import JoinOp, SplitOp


def pull(op: Operation, layout: LinearLayout) -> tuple[LinearLayout, tuple[int, ...]] | None:
    """What the operand of an op has whose result has `layout`, and for each register of the result the operand's that holds it.

    The pulled layout has the same lanes and warps, so that the result is the operand's registers, picked. None for other ops.
    """
    if isinstance(op, ops.ExpandDimsOp):
        return layout.before_expand_dims(op.axis)
    if isinstance(op, ops.BroadcastOp):
        return layout.before_broadcast(types.shape_of(op.source.type))
    if isinstance(op, ops.TransOp):
        return layout.before_trans(op.order)
    if isinstance(op, ops.ReshapeOp) and types.is_tile(op.source.type):
        return layout.before_reshape(types.shape_of(op.source.type))
    return None


def operand_layouts(op: Operation, layout: LinearLayout) -> list[tuple[SSAValue, LinearLayout]]:
    """The tiles that an op needs, each with its layout, to give its result in `layout`."""
    pulled = pull(op, layout)
    if pulled is not None:
        return [(op.operands[0], pulled[0])]
    if isinstance(op, JoinOp):
        half = joined_half(layout)
        return [(operand, half) for operand in op.operands]
    if isinstance(op, SplitOp):
        return [(op.operands[0], layout.before_split()[0])]
    return [(operand, layout) for operand in op.operands if types.is_tile(operand.type)]


def joined_half(layout: LinearLayout) -> LinearLayout:
    """What both operands of a join have; where threads differ in the last dim, each has the elements of both operands."""
    return layout.slice(len(layout.shape) - 1)[0]


def push(op: Operation, layout: LinearLayout) -> LinearLayout | None:
    """What the result has when the (first) operand has `layout`, register for register; None where that does not decide it."""
    if isinstance(op, ReduceOp):
        return layout.slice(op.axis)[0]
    if isinstance(op, ops.ExpandDimsOp):
        return layout.after_expand_dims(op.axis)
    if isinstance(op, ops.TransOp):
        return layout.after_trans(op.order)
    if isinstance(op, ops.ReshapeOp) and types.is_tile(op.source.type) and types.is_tile(op.results[0].type):
        return layout.after_reshape(types.shape_of(op.results[0].type))
    if isinstance(op, JoinOp):
        return layout.after_join()[0]
    if isinstance(op, SplitOp):
        return layout.slice(len(layout.shape) - 1)[0]
    return None
