"""Waves that hold nothing but copies end at once: no store is theirs, and no other wave asks for what they compute.

A tile of fewer elements than threads is in several waves alike. Where that is so of every store, and waves exchange nothing, all
that these waves would do is repeat loads and arithmetic.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from tilefw.simt import lane
from tilefw.simt.assign.assignment import Assignment
from tilefw.simt.description import LaneMachine
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.atomic_ops import AtomicOp
from tilefw.tile.nested_ops import nested_ops

# What waves do together, or for one another; barriers do not wait for waves that are gone.
_TOGETHER = (lane.AllocOp, lane.AtomicOp, lane.InlineAsmOp, lane.CopyAsyncOp, lane.FragmentLoadOp)


def spare_threads(function: FuncOp, assignment: Assignment, machine: LaneMachine) -> int:
    """The bits of the thread index that are set in waves that store nothing, as a mask; 0 where all may be needed."""
    if not machine.chip.waves_leave or machine.waves == 1:
        return 0
    if any(layouts.atom.waves > 1 for layouts in assignment.dots.values()):
        return 0
    waves = spare = machine.threads - machine.lanes
    stores = False
    for op in nested_ops(function):
        if isinstance(op, AtomicOp):
            return 0
        if isinstance(op, ops.StoreOp | ops.StoreBlockOp):
            stores = True
            spare &= assignment.layouts[op].copies if op in assignment.layouts else waves  # a scalar is in all of them
    return spare if stores else 0


def works_together(lowered: FuncOp) -> bool:
    """Whether waves of a lowered function exchange anything."""
    return any(isinstance(op, _TOGETHER) for op in nested_ops(lowered))
