"""Whether those who multiply in a divided loop, in the workgroups of a cluster, exchange nothing before it is over.

Within a workgroup a group of waves has a barrier of its own. A cluster has one barrier for all threads: who comes to it while
the producer is in its loop waits for the producer, which waits for slots. Behind the loop the producer is at its end. Before that
there may be only what makes offsets and masks, products of blocks that copies bring, and sums that begin with a constant.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from tilefw.passes.side_effects import is_side_effect_free
from tilefw.simt.software_pipeline.address_slice import Load
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.shape_ops import BroadcastOp, ExpandDimsOp, SplatOp, TransOp

_OF_OFFSETS = (ElementwiseOp, ConstantOp, ops.IotaOp, SplatOp, BroadcastOp, ExpandDimsOp)


def meets_behind(loop: ForOp, copied: Collection[Load]) -> bool:
    """Whether no barrier of those who multiply can stand before a loop of the function, or in it. Copies make all of `copied`."""
    sums = [value for value in loop.iter_args if types.is_tile(value.type)]
    body = loop.body.block.ops
    return (
        all(map(_begins_with_constant, sums))
        and all(isinstance(op, _OF_OFFSETS) or _is_for_scalars(op) for op in _before(loop))
        and all(op in copied or _multiplies(op, loop, copied) or _is_for_scalars(op) or op.next_op is None for op in body)
    )


def _multiplies(op: Operation, loop: ForOp, copied: Collection[Load]) -> bool:
    """Whether an op is a product of what copies bring, added to a sum that the loop carries, or turns such a block for one."""
    if isinstance(op, DotOp):
        return all(_source(value) in copied for value in (op.a, op.b)) and op.acc in loop.body.block.args
    return isinstance(op, TransOp) and op.operands[0].owner in copied


def _source(value: SSAValue) -> object:
    return value.owner.operands[0].owner if isinstance(value.owner, TransOp) else value.owner


def _begins_with_constant(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, ConstantOp) or (isinstance(owner, SplatOp) and isinstance(owner.operands[0].owner, ConstantOp))


def _before(loop: ForOp) -> list[Operation]:
    found: list[Operation] = []
    op = loop.prev_op
    while op is not None:
        found.append(op)
        op = op.prev_op
    return found


def _is_for_scalars(op: Operation) -> bool:
    """Whether an op makes or takes no tile, and only computes."""
    tiles = any(types.is_tile(value.type) for value in (*op.operands, *op.results))
    return not op.regions and not tiles and is_side_effect_free(op)
