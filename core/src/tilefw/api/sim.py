"""The simulator kit for plugins: decoded programs, the lane algebra, the engine that runs them, and the tracer of meanings."""

from tilefw.sim.algebra import PRIMITIVES, Algebra, Value
from tilefw.sim.device import Decoders, SimulatorDevice
from tilefw.sim.engine import LoadedProgram, launch, load_program, pack
from tilefw.sim.fragments import Accumulation, BitMap, Fragment
from tilefw.sim.memory import GlobalMemory
from tilefw.sim.program import (
    Barrier,
    Branch,
    BranchTable,
    Call,
    Chip,
    Exit,
    Flow,
    Guard,
    Immediate,
    Instruction,
    Program,
    ProgramParameter,
    Register,
    Registers,
    Return,
    Sink,
    Special,
    Symbol,
    Variable,
)
from tilefw.sim.recording import Step, trace

__all__ = [
    "PRIMITIVES", "Accumulation", "Algebra", "Barrier", "BitMap", "Branch", "BranchTable", "Call", "Chip", "Decoders", "Exit",
    "Flow", "Fragment", "GlobalMemory", "Guard", "Immediate", "Instruction", "LoadedProgram", "Program", "ProgramParameter",
    "Register", "Registers", "Return", "SimulatorDevice", "Sink", "Special", "Step", "Symbol", "Value", "Variable", "launch",
    "load_program", "pack", "trace",
]
