"""The kit for machines without lanes, as plugins see it: what a machine brings, and what core makes of it."""

from tilefw.loops.access import Access, AccessDim, access_of
from tilefw.loops.buffers import Buffer
from tilefw.loops.effects import Effects
from tilefw.loops.index import Index
from tilefw.loops.lowering import lower_function
from tilefw.loops.machine import LoopAtomic, LoopMachine, LoopValue, Memory
from tilefw.loops.plan import Plan, plan_of
from tilefw.passes.axis_info import AxisInfoAnalysis

__all__ = [
    "Access", "AccessDim", "AxisInfoAnalysis", "Buffer", "Effects", "Index", "LoopAtomic", "LoopMachine", "LoopValue", "Memory",
    "Plan", "access_of", "lower_function", "plan_of",
]
