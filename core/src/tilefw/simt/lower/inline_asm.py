"""Lowering of inline assembly: in the natural layout of its results, which its operands come in as well."""

from __future__ import annotations

from tilefw.simt import lane
from tilefw.simt.lower.context import LoweringContext
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp


def inline_asm(context: LoweringContext, op: InlineAsmOp) -> None:
    """The text on what each lane has."""
    layout = context.assignment.layouts.get(op)  # None for scalars
    made = lane.InlineAsmOp.create(
        operands=[context.get(value, layout) for value in op.operands],
        result_types=[context.lane_type(result, layout) for result in op.results], properties=dict(op.properties),
    )
    context.builder.insert(made)
    for result, value in zip(op.results, made.results, strict=True):
        context.put(result, layout, value)


HANDLERS = {InlineAsmOp: inline_asm}
