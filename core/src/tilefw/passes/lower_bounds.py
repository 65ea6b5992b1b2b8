"""Lower bounds: a block that surely does not begin below index 0 is not checked against it.

Block pointers and descriptors check both ends of every axis that they check. Offsets are most often programs' numbers times an
extent, or counted up from 0 by loops, and then only the upper check is left, as in kernels that write their masks themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.tile.dialect.base import string_attr
from tilefw.tile.dialect.block_ops import BlockAccess
from tilefw.tile.dialect.elementwise_op import ElementwiseOp

# Linear ops: their results have no sign where no operand has one, as offset arithmetic does not wrap (`offset_arithmetic`).
_LINEAR = frozenset({"addi", "muli", "shl", "exts"})


class LowerBoundsPass(ModulePass):
    """Takes the check against 0 from block accesses whose offsets surely have no sign.

    Every block access that checks both ends; offsets are followed to what they are made of, through loops and branches.
    """

    name = "lower-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        checked = [o for o in op.walk() if isinstance(o, BlockAccess) and "both" in o.checks]
        if not checked:
            return
        facts = AxisInfoAnalysis(op)
        for access in checked:
            words = [
                "upper" if check == "both" and _positive(offset, facts) else check
                for check, offset in zip(access.checks, access.offsets, strict=True)
            ]
            access.properties["checks"] = ArrayAttr([string_attr(word) for word in words])


def _positive(offset: SSAValue, facts: AxisInfoAnalysis) -> bool:
    """Whether a block's offset surely has no sign: nothing has one of which linear ops, loops and branches make it."""
    seen: set[SSAValue] = set()
    pending = [offset]
    while pending:
        value = pending.pop()
        low = facts[value].low
        if value in seen or (low is not None and low >= 0):
            continue
        seen.add(value)
        sources = _sources(value)
        if not sources:
            return False
        pending += sources
    return True


def _sources(value: SSAValue) -> Sequence[SSAValue]:
    """What a value is made of by ops whose results have no sign where none of these has one; empty for any other value."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        return _carried(loop, value.index - 1) if isinstance(loop, scf.ForOp) and value.index else ()
    assert isinstance(value, OpResult)
    op = value.op
    if isinstance(op, ElementwiseOp) and op.row.name in _LINEAR:
        return op.operands
    if isinstance(op, scf.ForOp):
        return _carried(op, value.index)
    return [_last(region.block).operands[value.index] for region in op.regions] if isinstance(op, scf.IfOp) else ()


def _carried(loop: scf.ForOp, index: int) -> Sequence[SSAValue]:
    return loop.iter_args[index], _last(loop.body.block).operands[index]


def _last(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op
