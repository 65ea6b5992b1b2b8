"""Constants that steps read: one of them is the step's immediate, each other one is made by an ALU of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw_spatial import isa
from tilefw_spatial.chain.micro import Micro, MicroOperand
from tilefw_spatial.chain.native import Native
from tilefw_spatial.chain.node import Literal
from tilefw_spatial.chain.record import operand_types


def with_immediates(steps: Sequence[Micro]) -> tuple[dict[Micro, tuple[MicroOperand, ...]], list[Micro]]:
    """The operands of each step, in which constants that find no room in its one immediate are results of CSTs; and the CSTs, which
    steps that want the same constant share. Their operands are there as well."""
    made: dict[tuple[int, str], Micro] = {}
    found = {step: _operands(step, made) for step in steps}
    constants = list(made.values())
    return found | {step: step.operands for step in constants}, constants


def _operands(step: Micro, made: dict[tuple[int, str], Micro]) -> tuple[MicroOperand, ...]:
    found: list[MicroOperand] = []
    immediate: Literal | None = None
    for operand, dtype in zip(step.operands, operand_types(Native(step.op, step.dtype)), strict=False):
        source = operand.source
        if isinstance(source, Literal):
            shared = None if immediate is None else _as_immediate(operand, immediate, dtype)
            if immediate is None:
                immediate = source
            elif shared is not None:
                operand = shared
            else:
                constant = made.setdefault((source.bits, dtype), Micro("CST", dtype, (MicroOperand(source),)))
                operand = MicroOperand(constant, operand.negate, operand.absolute)
        found.append(operand)
    return tuple(found)


def _as_immediate(operand: MicroOperand, immediate: Literal, dtype: str) -> MicroOperand | None:
    """The operand by the immediate that the step has already: equal to it, or its opposite."""
    assert isinstance(operand.source, Literal)
    if operand.source.bits == immediate.bits:
        return MicroOperand(immediate, operand.negate, operand.absolute)
    kind = isa.TYPES[dtype]
    if kind.is_float and operand.source.bits ^ immediate.bits == 1 << (kind.bits - 1):
        return MicroOperand(immediate, operand.negate != (not operand.absolute), operand.absolute)
    return None
