"""Which loads come before all that a program writes: they read what memory held when it began, whatever stands in one buffer.

A chip may serve them by another way than its stores go.
"""

from __future__ import annotations

from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.ir import Block, Operation

from tilefw.simt import lane
from tilefw.tile.nested_ops import nested_ops


def early_loads(block: Block) -> frozenset[Operation]:
    """The loads of global memory of a function's block, and of those within, before which nothing is written."""
    found: set[Operation] = set()
    _walk(block, False, found)
    return frozenset(found)


def _walk(block: Block, written: bool, found: set[Operation]) -> bool:
    """Note loads; whether something is written by the end."""
    for op in block.ops:
        if isinstance(op, lane.LoadOp):
            if not written and not op.shared:
                found.add(op)
        elif _writes(op):
            written = True
        elif op.regions:
            around = isinstance(op, ForOp | WhileOp) and any(_writes(inner) for inner in nested_ops(op))
            ends = [_walk(inner, written or around, found) for region in op.regions for inner in region.blocks]
            written = written or any(ends)
    return written


def _writes(op: Operation) -> bool:
    return isinstance(op, lane.AtomicOp | lane.BulkStoreOp | lane.InlineAsmOp) or (isinstance(op, lane.StoreOp) and not op.shared)
