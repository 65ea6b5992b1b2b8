"""The kit for machines without lanes, as plugins see it: what a machine brings, and what core makes of it."""

from tilefw.loops.access import AccessDim, TileAccess, access_of
from tilefw.loops.buffers import TileBuffer
from tilefw.loops.effects import Effects
from tilefw.loops.exchange import by_exchange
from tilefw.loops.function import lower_function
from tilefw.loops.index import Index
from tilefw.loops.machine import ElementMemory, LoopAtomic, LoopMachine, LoopValue
from tilefw.loops.plan import StoragePlan, plan_of
from tilefw.passes.axis_info import AxisInfoAnalysis

__all__ = [
    "AccessDim", "AxisInfoAnalysis", "Effects", "ElementMemory", "Index", "LoopAtomic", "LoopMachine", "LoopValue",
    "StoragePlan", "TileAccess", "TileBuffer", "access_of", "by_exchange", "lower_function", "plan_of",
]
