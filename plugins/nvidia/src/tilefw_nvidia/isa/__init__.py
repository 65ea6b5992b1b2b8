"""PTX as text and as meaning: the grammar of modules and the one table of instructions.

    module = isa.parse(text, "kernel.ptx")        # syntax: entries, parameters, variables, statements
    program = isa.program(module, "kernel")       # decoded for the simulator kit: each instruction with its row's meaning
    isa.opcode("ld.global.v4.b32").version        # what the emitter asks of the table
    isa.ROWS["mad"].forms                         # the table itself, a row a base opcode

`row` says how a row is written; `rows/` holds them, a file for each chapter of the PTX ISA manual.
"""

from tilefw_nvidia.isa.decode import program
from tilefw_nvidia.isa.parser import parse
from tilefw_nvidia.isa.row import ROWS, Form, Modifiers, Row
from tilefw_nvidia.isa.specials import SPECIALS
from tilefw_nvidia.isa.syntax import Function, Module, Parameter, Statement
from tilefw_nvidia.isa.table import OpcodeError, Spec, lookup, opcode

__all__ = [
    "ROWS",
    "SPECIALS",
    "Form",
    "Function",
    "Modifiers",
    "Module",
    "OpcodeError",
    "Parameter",
    "Row",
    "Spec",
    "Statement",
    "lookup",
    "opcode",
    "parse",
    "program",
]
