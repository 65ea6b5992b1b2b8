"""Which ops of a kernel do signed offset arithmetic: what feeds an address through linear ops, and so must not wrap."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.block_ops import LoadBlockOp, StoreBlockOp
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.memory_ops import LoadOp, StoreOp
from tilefw.tile.dialect.structural_op import StructuralOp
from tilefw.tile.nested_ops import nested_ops

_LINEAR = frozenset({"addi", "subi", "muli", "shl", "exts"})


class AnyOffsetArithmetic:
    """All ops that may do offset arithmetic: what is watched where nobody knows yet which values become addresses."""

    def __contains__(self, op: object) -> bool:
        return isinstance(op, ElementwiseOp) and op.row.name in _LINEAR


def offset_arithmetic(root: Operation) -> set[Operation]:
    """The linear integer ops below `root` whose result reaches an address without passing a mask, division or narrowing."""
    pending: list[SSAValue] = []
    for op in nested_ops(root):
        if isinstance(op, ops.AddPtrOp):
            pending.append(op.offset)
        elif isinstance(op, LoadOp | StoreOp | AtomicOp | CopyOp) and op.offsets is not None:
            pending.append(op.offsets)
        elif isinstance(op, LoadBlockOp | StoreBlockOp | CopyBlockOp):
            pending.extend((*op.offsets, *op.strides))
    return _feeding(pending)


def address_arithmetic(access: LoadOp | StoreOp | AtomicOp) -> set[Operation]:
    """The same of one access alone: what does not wrap where its mask lets it through. What a loop carries to a later access, or
    one of two ways hands on, may wrap there."""
    return _feeding([access.pointer] if access.offsets is None else [access.pointer, access.offsets], through_regions=False)


def mask_arithmetic(access: LoadOp | StoreOp | AtomicOp) -> set[Operation]:
    """The linear integer ops of what the parts of an access's mask compare."""
    pending = [] if access.mask is None else [access.mask]
    compared: list[SSAValue] = []
    while pending:
        op = pending.pop().owner
        if isinstance(op, StructuralOp):
            pending += op.moved_operands
        elif isinstance(op, ElementwiseOp):
            (pending if op.row.name == "andi" else compared).extend(op.operands)
    return _feeding(compared, through_regions=False)


def _feeding(pending: list[SSAValue], through_regions: bool = True) -> set[Operation]:
    found: set[Operation] = set()
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        pending.extend(_sources(value, found) or (_handed_on(value) if through_regions else ()))
    return found


def _sources(value: SSAValue, found: set[Operation]) -> list[SSAValue]:
    op = value.owner
    if isinstance(op, ElementwiseOp) and op.row.name in _LINEAR:
        found.add(op)
        return list(op.operands)
    if isinstance(op, ops.AddPtrOp):
        return list(op.operands)
    if isinstance(op, StructuralOp):
        return list(op.moved_operands)
    return []


def _handed_on(value: SSAValue) -> list[SSAValue]:
    """What a loop or a branch may have for a value, outside of it or inside."""
    if isinstance(value, BlockArgument):
        return _carried(value)
    assert isinstance(value, OpResult)
    op = value.op
    if isinstance(op, scf.ForOp):
        last = op.body.block.last_op
        return [op.iter_args[value.index], *([last.operands[value.index]] if last is not None else [])]
    if isinstance(op, scf.IfOp):
        blocks = [region.blocks.first for region in op.regions]
        return [b.last_op.operands[value.index] for b in blocks if b is not None and b.last_op is not None]
    return []


def _carried(value: BlockArgument) -> list[SSAValue]:
    block: Block = value.block
    loop = block.parent_op()
    if not isinstance(loop, scf.ForOp) or value.index == 0:
        return []
    last = block.last_op
    return [loop.iter_args[value.index - 1], *([last.operands[value.index - 1]] if last is not None else [])]
