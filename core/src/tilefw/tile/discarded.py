"""Giving up what a pass has replaced whole: a function of one level, once that of the next stands in its place.

Ops, their results, their uses and the blocks around name each other, so that only Python's cyclic collector would free them. It
looks at everything that is alive for that, after each compile anew.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilefw.tile.nested_ops import nested_ops


def discard(op: Operation) -> None:
    """Take `op` out of its block and empty it and all inside: nobody may look at any of them again."""
    op.detach()
    for each in nested_ops(op):
        blocks = [block for region in each.regions for block in region.blocks]
        for holder in (*each._operand_uses, *each.regions, *blocks, each):
            vars(holder).clear()
