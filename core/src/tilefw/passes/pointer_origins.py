"""From which of the kernel's arguments a pointer may be derived, and through which pointer an op writes."""

from __future__ import annotations

from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.kernel_info import is_argument

_KEEPS_POINTER = (ops.AddPtrOp, ops.SplatOp, ops.BroadcastOp, ops.ExpandDimsOp, ops.ReshapeOp, ops.TransOp)


def arguments_of(pointer: SSAValue) -> set[SSAValue] | None:
    """The kernel's arguments that a pointer may be derived from; None where it may come from elsewhere."""
    found: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    pending = [pointer]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if is_argument(value):
            found.add(value)
            continue
        sources = _sources(value)
        if sources is None:
            return None
        pending.extend(sources)
    return found


def written_pointer(op: Operation) -> SSAValue | None:
    """The pointer through which an op that may write memory does so; None for one that may change anything: an atomic of acquire
    order makes other programs' writes visible."""
    if isinstance(op, ops.StoreBlockOp):
        return op.base
    if isinstance(op, ops.StoreOp) or (isinstance(op, AtomicOp) and not op.acquires):
        return op.pointer
    return None


def _sources(value: SSAValue) -> list[SSAValue] | None:
    """The pointers that a value may be derived from; None where that is not known."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        return _carried(loop, value.index - 1) if isinstance(loop, ForOp) and value.index else None
    assert isinstance(value, OpResult)
    op = value.op
    if isinstance(op, _KEEPS_POINTER):
        return [op.operands[0]]
    if isinstance(op, ElementwiseOp) and op.row.name == "select":
        return list(op.operands[1:])
    if isinstance(op, ForOp):
        return _carried(op, value.index)
    if isinstance(op, IfOp):
        ends = [region.block.last_op for region in op.regions if region.blocks]
        return [end.operands[value.index] for end in ends if end is not None]
    return None


def _carried(loop: ForOp, index: int) -> list[SSAValue]:
    last = loop.body.block.last_op
    assert last is not None
    return [loop.iter_args[index], last.operands[index]]
