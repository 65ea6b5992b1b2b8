"""The kit for machines without lanes, as plugins see it: what a machine brings, and what core makes of it."""

from tilefw.loops.access import AccessDim, TileAccess, access_of
from tilefw.loops.buffers import TileBuffer
from tilefw.loops.effects import Effects
from tilefw.loops.exchange import by_exchange
from tilefw.loops.function import CopyUse, lower_function
from tilefw.loops.index import Index
from tilefw.loops.machine import BlockCopy, ElementMemory, LoopAtomic, LoopMachine, LoopValue, TileProduct, TileReader, WholeProduct
from tilefw.loops.module import LoweredProgram, loop_artifact, lower_module
from tilefw.loops.plan import StoragePlan, plan_of
from tilefw.loops.scalar_machine import ScalarMachine
from tilefw.loops.text_machine import TextMachine, TextValue, literal, text_of
from tilefw.passes.axis_info import AxisInfoAnalysis

__all__ = [
    "AccessDim", "AxisInfoAnalysis", "BlockCopy", "CopyUse", "Effects", "ElementMemory", "Index", "LoopAtomic", "LoopMachine",
    "LoopValue", "LoweredProgram", "ScalarMachine", "StoragePlan", "TextMachine", "TextValue", "TileAccess", "TileBuffer",
    "TileProduct", "TileReader", "WholeProduct", "access_of", "by_exchange", "literal", "loop_artifact", "lower_function",
    "lower_module", "plan_of", "text_of",
]
