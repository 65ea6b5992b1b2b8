"""Which loads of a loop may be issued some iterations early: those whose memory nothing in the loop can write.

Pointers are followed to the kernel's arguments. A store through one argument may write what another points to, unless the
launch guarantees that the buffers do not overlap. An atomic with acquire order makes other threads' writes visible, wherever they
are: no load may be issued before it.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilefw.passes.cse import may_write
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.nested_ops import nested_ops

_KEEPS_POINTER = (ops.AddPtrOp, ops.SplatOp, ops.BroadcastOp, ops.ExpandDimsOp, ops.ReshapeOp, ops.TransOp)


class LoopWrites:
    """What the ops of a loop may write: arguments of the kernel, or anything at all."""

    def __init__(self, loop: ForOp, disjoint: bool) -> None:
        self._disjoint = disjoint
        self._written: set[SSAValue] = set()
        self._anything = False
        for op in nested_ops(loop):
            if not op.regions and may_write(op):
                self._add(op)

    def _add(self, op: Operation) -> None:
        pointer = _written_pointer(op)
        roots = None if pointer is None else arguments_of(pointer)
        if roots is None:
            self._anything = True
        else:
            self._written |= roots

    def may_write(self, pointer: SSAValue) -> bool:
        """Whether a write of the loop may change what a load through `pointer` reads."""
        if self._anything:
            return True
        if not self._written:
            return False
        roots = arguments_of(pointer)
        return roots is None or not self._disjoint or not roots.isdisjoint(self._written)


def _written_pointer(op: Operation) -> SSAValue | None:
    """The pointer through which an op writes; None for one that may change anything."""
    if isinstance(op, ops.StoreBlockOp):
        return op.base
    if isinstance(op, ops.StoreOp) or (isinstance(op, AtomicOp) and not op.acquires):
        return op.pointer
    return None


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
        if isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), FuncOp):
            found.add(value)
            continue
        sources = _sources(value)
        if sources is None:
            return None
        pending.extend(sources)
    return found


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
