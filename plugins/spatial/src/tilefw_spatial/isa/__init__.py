"""The instruction set of SDM-1: the table, its element types, and what its arithmetic means."""

from tilefw_spatial.isa.row import ALU_USES, InstructionRow, OperandKind, Use, WordField, alu_and_steps, alu_operand
from tilefw_spatial.isa.table import (
    ACCUMULATE_FLAG,
    CODES,
    HALF_FLAG,
    OPS,
    PUT_FLAG,
    ROUNDINGS,
    ROWS,
    is_vector,
    latency_key,
    opcode,
    result_type,
)
from tilefw_spatial.isa.types import SUMS, TYPES, ElementType

__all__ = [
    "ACCUMULATE_FLAG", "ALU_USES", "CODES", "HALF_FLAG", "OPS", "PUT_FLAG", "ROUNDINGS", "ROWS", "SUMS", "TYPES", "ElementType",
    "WordField", "OperandKind", "InstructionRow", "Use", "alu_and_steps", "alu_operand", "is_vector", "latency_key", "opcode",
    "result_type",
]
