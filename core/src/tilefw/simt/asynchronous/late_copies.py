"""Fills the rings of a loop behind its first product, which is then under way while copies are waited for and started.

A pipelined loop begins an iteration with the wait for its own copies, and starts those of later ones. Where a matrix unit
multiplies by itself, all of that moves behind the first of its products, and so waits for the copies of the next iteration; those
of the first one are waited for before the loop:

    wait p                              (the copies of the first iteration)
    for i …:  product of slot i         (the one of i - 1 may still be under way)
              wait p - 1                (the copies of i + 1; the one barrier is here: i - 1 is multiplied, its slot is free)
              copies into the slot of i - 1, commit

It takes at least two iterations of copies under way, and that nothing on the way may write what copies read.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilefw.passes.side_effects import is_side_effect_free
from tilefw.simt.assign.shared_operands import is_marked
from tilefw.simt.description import LaneMachine
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.shared_ops import CommitOp, LoadSharedOp, WaitOp
from tilefw.tile.nested_ops import nested_ops

_COPIES = CopyOp | CopyBlockOp | CommitOp
_PASSED = ops.LoadOp | ops.LoadBlockOp | LoadSharedOp


@dataclass(frozen=True)
class LateCopies(ModulePass):
    """Moves waits and copies of loops behind their first product, on chips with asynchronous atoms."""

    machine: LaneMachine
    name = "late-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(atom.asynchronous for atom in self.machine.chip.atoms):
            for loop in [found for found in nested_ops(op) if isinstance(found, ForOp)]:
                _move(loop)


def _move(loop: ForOp) -> None:
    """Move what one loop waits for and copies."""
    block = loop.body.block
    product = next((op for op in block.ops if isinstance(op, DotOp) and is_marked(op)), None)
    wait = block.first_op
    if product is None or not isinstance(wait, WaitOp) or not wait.pending:
        return
    before: list[Operation] = []
    op = wait.next_op
    while op is not None and op is not product:
        before.append(op)
        op = op.next_op
    copies = [op for op in before if isinstance(op, _COPIES)]
    others = [op for op in before if not isinstance(op, _COPIES)]
    if not copies or not all(isinstance(op, _PASSED) or (is_side_effect_free(op) and not op.regions) for op in others):
        return
    first = WaitOp(wait.pending)
    first.location = loop.location
    assert loop.parent is not None
    loop.parent.insert_op_before(first, loop)
    following = WaitOp(wait.pending - 1)
    following.location = wait.location
    wait.detach()
    wait.erase()
    for op in copies:
        op.detach()
    block.insert_ops_after([following, *copies], product)
