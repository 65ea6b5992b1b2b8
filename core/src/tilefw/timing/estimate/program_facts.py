"""What the walk through a program asks of it beforehand: what hangs on where it is, what makes data, how much lives at once."""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.dialect.combine_op import CombineOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.structural_op import StructuralOp


def from_place(body: Block) -> set[SSAValue]:
    """The values that hang on where a program is in the grid."""
    found: set[SSAValue] = set()

    def through(block: Block) -> None:
        for op in block.ops:
            for inner in (one for region in op.regions for one in region.blocks):
                if any(operand in found for operand in op.operands):
                    found.update(inner.args)
                through(inner)
                last = inner.last_op
                if last is not None and any(operand in found for operand in last.operands):
                    found.update((*op.results, *inner.args))
            if isinstance(op, ops.ProgramIdOp) or any(operand in found for operand in op.operands):
                found.update(op.results)

    before = -1
    while len(found) != before:  # what a loop carries back is known when its body has been gone through
        before = len(found)
        through(body)
    return found


def differ(body: Block, here: set[SSAValue]) -> bool:
    """Whether what a program's loops and branches do hangs on where it is in the grid."""
    deciding = (
        operand for op in body.walk() if isinstance(op, scf.ForOp | scf.IfOp | scf.ConditionOp)
        for operand in op.operands[: 3 if isinstance(op, scf.ForOp) else 1]
    )
    return any(operand in here for operand in deciding)


def data_ops(block: Block) -> set[Operation]:
    """The ops whose results are computed with, stored or compared as data; the others only make addresses and masks."""
    found: set[Operation] = set()
    pending: list[SSAValue] = []
    for op in block.walk():
        if isinstance(op, ElementwiseOp) and (types.is_float(op.results[0].type) or types.is_float(op.operands[0].type)):
            found.add(op)
            pending += op.operands
        elif isinstance(op, CombineOp | DotOp | ops.DotScaledOp):
            pending += op.operands
        elif isinstance(op, ops.StoreBlockOp | ops.StoreOp):
            pending.append(op.value)
        elif isinstance(op, AtomicOp):
            pending += op.values
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ElementwiseOp | StructuralOp) and owner not in found:
            found.add(owner)
            pending += owner.operands
    return found


def live_bytes(block: Block) -> int:
    """Bytes of the tiles that live at once at most, loops' carried ones throughout."""
    best = 0
    alive: dict[SSAValue, int] = {}
    for op in block.ops:
        last = {operand for operand in op.operands if all(not _later(use.operation, op) for use in operand.uses)}
        inside = () if isinstance(op, CombineOp) else (region.block for region in op.regions if region.blocks)
        inner = max(map(live_bytes, inside), default=0)
        for result in op.results:
            made = types.shape_of(result.type) and not isinstance(op, ops.ConstantOp | StructuralOp)
            if made and not types.is_pointer(result.type):
                alive[result] = prod(types.shape_of(result.type)) * bits_of(result.type) // 8
        best = max(best, sum(alive.values()) + inner)
        for value in last:
            alive.pop(value, None)
    return best


def _later(user: Operation, op: Operation) -> bool:
    """Whether a use comes behind an op of the same block; uses in nested regions count as where these stand."""
    while user.parent is not op.parent:
        parent = user.parent_op()
        if parent is None:
            return False
        user = parent
    return user is not op and op.is_before_in_block(user)


def bits_of(type: Any) -> int:
    return 64 if types.is_pointer(type) else types.dtype_of(type).storage_bits
