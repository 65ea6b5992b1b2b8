"""The simulator kit for plugins: decoded programs, the lane algebra, the engine that runs them, and the tracer of meanings.

What describes programs is plain data, and a table of instructions is written with it; what executes them loads when it is first
used, as a compiler asks the same table what an instruction is.
"""

from typing import TYPE_CHECKING, Any

from tilefw.sim.matrix.fragments import Accumulation, BitMap, Fragment, Stages
from tilefw.sim.program import (
    Barrier,
    Branch,
    BranchTable,
    Call,
    Destination,
    Exit,
    Flow,
    Guard,
    HazardRule,
    Hazards,
    Immediate,
    Instruction,
    Issue,
    Jump,
    MemorySpace,
    Program,
    ProgramParameter,
    Register,
    Registers,
    Return,
    SimulatedChip,
    Sink,
    Source,
    Special,
    Symbol,
    Variable,
    Wait,
)

if TYPE_CHECKING:
    from tilefw.sim.algebra.primitives import PRIMITIVES, Algebra, Value
    from tilefw.sim.algebra.recording import RecordedStep, trace
    from tilefw.sim.checks.check import Check
    from tilefw.sim.device import Decoders, SimulatorDevice
    from tilefw.sim.engine.load import LoadedProgram, load_program
    from tilefw.sim.engine.run import launch, pack
    from tilefw.sim.memory.access import Access, Piece
    from tilefw.sim.memory.buffers import SimulatedBuffers
    from tilefw.sim.memory.regions import GlobalMemory

# Public name -> the module that has it.
_HOMES = {
    **dict.fromkeys(("PRIMITIVES", "Algebra", "Value"), "tilefw.sim.algebra.primitives"),
    **dict.fromkeys(("Decoders", "SimulatorDevice"), "tilefw.sim.device"),
    **dict.fromkeys(("LoadedProgram", "load_program"), "tilefw.sim.engine.load"),
    **dict.fromkeys(("launch", "pack"), "tilefw.sim.engine.run"),
    "Check": "tilefw.sim.checks.check",
    **dict.fromkeys(("Access", "Piece"), "tilefw.sim.memory.access"),
    "GlobalMemory": "tilefw.sim.memory.regions",
    "SimulatedBuffers": "tilefw.sim.memory.buffers",
    **dict.fromkeys(("RecordedStep", "trace"), "tilefw.sim.algebra.recording"),
}

__all__ = [
    "Access", "Accumulation", "Algebra", "Barrier", "BitMap", "Branch", "BranchTable", "Call", "Check", "Decoders", "Destination",
    "Exit", "Flow", "Fragment", "GlobalMemory", "Guard", "HazardRule", "Hazards", "Immediate", "Instruction", "Issue", "Jump",
    "LoadedProgram", "MemorySpace", "PRIMITIVES", "Piece", "Program", "ProgramParameter", "RecordedStep", "Register", "Registers",
    "Return", "SimulatedBuffers", "SimulatedChip", "SimulatorDevice", "Sink", "Source", "Special", "Stages", "Symbol", "Value",
    "Variable", "Wait", "launch", "load_program", "pack", "trace",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tilefw.api.sim' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found
