"""PTX as text and as meaning: the grammar of modules and the one table of instructions.

    module = isa.parse(text, "kernel.ptx")                  # syntax: entries, parameters, variables, statements
    instructions = isa.instruction_set(chip)                # what one chip executes
    program = isa.program(module, "kernel", instructions)   # decoded for the simulator kit: each instruction with its meaning
    instructions.opcode("ld.global.v4.b32").version         # what the emitter asks of the table

`model` defines a row; `rows/` holds them, a file for each chapter of the PTX ISA manual; `set` serves those that a chip has.
`text/` reads PTX, `meaning/` binds what was read to rows.
"""

from tilefw_nvidia.isa.meaning.calls import inlined
from tilefw_nvidia.isa.model import Chapter, Form, Modifiers
from tilefw_nvidia.isa.set import InstructionSet, OpcodeError, Spec, instruction_set
from tilefw_nvidia.isa.text.parser import parse
from tilefw_nvidia.isa.text.source import NOT_SERVED
from tilefw_nvidia.isa.text.syntax import PtxFunction, PtxModule, PtxParameter, Statement
from tilefw_nvidia.simulate.decode import check_target, program

__all__ = [
    "NOT_SERVED", "Chapter", "Form", "InstructionSet", "Modifiers", "OpcodeError", "PtxFunction", "PtxModule", "PtxParameter",
    "Spec", "Statement", "check_target", "inlined", "instruction_set", "parse", "program",
]
