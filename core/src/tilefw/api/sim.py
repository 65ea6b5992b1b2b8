"""The simulator kit for plugins: decoded programs, the lane algebra, the engine that runs them, and the tracer of meanings.

What describes programs is plain data, and a table of instructions is written with it; what executes them loads when it is first
used, as a compiler asks the same table what an instruction is.
"""

from typing import TYPE_CHECKING, Any

from tilefw.sim.matrix.fragments import Accumulation, BitMap, Fragment, Stages
from tilefw.sim.matrix.group_product import DescribedTile, GroupProduct
from tilefw.sim.program import (
    MULTICAST,
    Await,
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
    Meeting,
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
    from tilefw.sim.algebra.boxes import Box
    from tilefw.sim.algebra.pixels import PixelList
    from tilefw.sim.algebra.primitives import PRIMITIVES, Algebra, Value
    from tilefw.sim.algebra.recording import RecordedStep, trace
    from tilefw.sim.checks.check import Check
    from tilefw.sim.device import Decoders, SimulatorDevice
    from tilefw.sim.engine.load import LoadedProgram, load_program
    from tilefw.sim.engine.run import launch, pack
    from tilefw.sim.memory.access import Access, Piece
    from tilefw.sim.memory.buffers import SimulatedBuffers
    from tilefw.sim.memory.reductions import Reduction
    from tilefw.sim.memory.regions import GlobalMemory
    from tilefw.sim.program_backend import TextBackend
    from tilefw.sim.program_copies import COPY_ACTIONS, CopyingProgram, copy_shapes
    from tilefw.sim.program_device import ProgramCall, ProgramDevice, ProgramFault, ProgramMemory, ProgramTrap, SimulatedEntry
    from tilefw.sim.program_steps import Action, RunningProgram, codes, elements, simulated_entry
    from tilefw.sim.program_text import ProgramOperand, TextInstruction, TextKernel, TextTable, parse_programs
    from tilefw.sim.row_meanings import ROW_MEANINGS, WORDS, Meaning

# Public name -> the module that has it.
_HOMES = {
    **dict.fromkeys(("PRIMITIVES", "Algebra", "Value"), "tilefw.sim.algebra.primitives"),
    **dict.fromkeys(("Decoders", "SimulatorDevice"), "tilefw.sim.device"),
    **dict.fromkeys(("LoadedProgram", "load_program"), "tilefw.sim.engine.load"),
    **dict.fromkeys(("launch", "pack"), "tilefw.sim.engine.run"),
    "Check": "tilefw.sim.checks.check",
    **dict.fromkeys(("Access", "Piece"), "tilefw.sim.memory.access"),
    "Box": "tilefw.sim.algebra.boxes",
    "PixelList": "tilefw.sim.algebra.pixels",
    "Reduction": "tilefw.sim.memory.reductions",
    "GlobalMemory": "tilefw.sim.memory.regions",
    "SimulatedBuffers": "tilefw.sim.memory.buffers",
    **dict.fromkeys(
        ("ProgramCall", "ProgramDevice", "ProgramFault", "ProgramMemory", "ProgramTrap", "SimulatedEntry"),
        "tilefw.sim.program_device",
    ),
    **dict.fromkeys(("Action", "RunningProgram", "codes", "elements", "simulated_entry"), "tilefw.sim.program_steps"),
    **dict.fromkeys(("TextInstruction", "TextKernel", "ProgramOperand", "TextTable", "parse_programs"), "tilefw.sim.program_text"),
    "TextBackend": "tilefw.sim.program_backend",
    **dict.fromkeys(("COPY_ACTIONS", "CopyingProgram", "copy_shapes"), "tilefw.sim.program_copies"),
    **dict.fromkeys(("ROW_MEANINGS", "WORDS", "Meaning"), "tilefw.sim.row_meanings"),
    **dict.fromkeys(("RecordedStep", "trace"), "tilefw.sim.algebra.recording"),
}

__all__ = [
    "Access", "Accumulation", "Action", "Algebra", "Await", "Barrier", "BitMap", "Box", "Branch", "BranchTable", "COPY_ACTIONS",
    "Call", "Check", "CopyingProgram", "Decoders", "DescribedTile", "Destination", "Exit", "Flow", "Fragment", "GlobalMemory",
    "GroupProduct", "Guard", "HazardRule", "Hazards", "Immediate", "Instruction", "Issue", "Jump", "LoadedProgram",
    "MULTICAST", "Meaning",
    "Meeting", "MemorySpace", "PRIMITIVES", "Piece", "PixelList", "Program", "ProgramCall", "ProgramDevice", "ProgramFault",
    "ProgramMemory", "ProgramOperand", "ProgramParameter", "ProgramTrap", "ROW_MEANINGS", "RecordedStep", "Reduction", "Register",
    "Registers", "Return", "RunningProgram", "SimulatedBuffers", "SimulatedChip", "SimulatedEntry", "SimulatorDevice", "Sink",
    "Source", "Special", "Stages", "Symbol", "TextBackend", "TextInstruction", "TextKernel", "TextTable", "Value", "Variable",
    "WORDS", "Wait", "codes", "copy_shapes", "elements", "launch", "load_program", "pack", "parse_programs", "simulated_entry",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tilefw.api.sim' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found
