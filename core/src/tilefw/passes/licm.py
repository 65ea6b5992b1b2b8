"""Loop-invariant code motion: ops without effect whose operands come from outside a loop move before it.

Loads stay: moving one out needs a proof that the loop runs at least once and that no store in it touches the address.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.rewriting import block_of
from tilefw.passes.side_effects import is_side_effect_free
from tilefw.tile.dialect.combine_op import CombineOp


class LicmPass(ModulePass):
    """Moves ops that give the same result in every iteration in front of their loop.

    Inner loops first, so that what leaves one may leave the next; one forward walk a loop is enough.
    """

    name = "licm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _visit(op)


def _visit(op: Operation) -> None:
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.ops):
                if inner.regions:
                    _visit(inner)
    if isinstance(op, scf.ForOp | scf.WhileOp):
        for region in op.regions:
            for block in region.blocks:
                _hoist(block, op)


def _hoist(block: Block, loop: Operation) -> None:
    parent = loop.parent
    assert parent is not None
    for op in list(block.ops):
        if (op.regions and not isinstance(op, CombineOp)) or not op.results or op.next_op is None or not is_side_effect_free(op):
            continue
        if not any(_defined_inside(operand, loop) for operand in op.operands):
            op.detach()
            parent.insert_op_before(op, loop)


def _defined_inside(value: SSAValue, loop: Operation) -> bool:
    block = block_of(value)
    while block is not None:
        owner = block.parent_op()
        if owner is loop:
            return True
        block = owner.parent if owner is not None else None
    return False
