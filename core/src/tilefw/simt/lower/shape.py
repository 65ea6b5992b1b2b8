"""Lowering of ops that only move elements: the operand's layout is chosen so that the result is its registers, picked."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.simt import lane
from tilefw.simt.assign.costs import element_bits
from tilefw.simt.assign.transfer import joined_half, pull
from tilefw.simt.layout import LinearLayout, convert
from tilefw.simt.lower import exchange
from tilefw.simt.lower.context import LoweringContext
from tilefw.tile import types
from tilefw.tile.dialect.shape_ops import JoinOp, SplitOp
from tilefw.tile.dialect.structural_op import StructuralOp, index_map


def structural(context: LoweringContext, op: StructuralOp) -> None:
    """A tile's elements moved; a scalar that becomes a tile of one element, or the reverse."""
    result, source, moved = op.results[0], op.operands[0], index_map(op)
    for layout in context.layouts(result):
        pulled = None if layout is None else pull(op, layout)
        if moved is not None and pulled is not None:
            lowered = context.builder.pick(_exchanged(context, source, pulled[0], moved.constant), pulled[1])
        elif layout is None:
            lowered = context.builder.uniform(context.tiles[source, context.assignment.layouts[op]])
        else:
            lowered = context.builder.splat(context.scalars[source], layout.registers)
        context.put(result, layout, lowered)


def _exchanged(context: LoweringContext, source: SSAValue, layout: LinearLayout, constant: int) -> SSAValue:
    """A tile with the element at the index XOR `constant` in place of each."""
    if not constant:
        return context.tiles[source, layout]
    bits = element_bits(source, context.machine.chip.pointer_bits)
    plan = convert.plan(layout, layout, bits, context.machine.chip, constant)
    return exchange.emit(context, context.tiles[source, layout], plan, layout, layout)


def join(context: LoweringContext, op: JoinOp) -> None:
    """Registers of both, picked; where it depends on the thread which operand an element is of, chosen by the thread."""
    for layout in context.layouts(op.result):
        assert layout is not None
        context.put(op.result, layout, _lowered_join(context, op, layout))


def _lowered_join(context: LoweringContext, op: JoinOp, layout: LinearLayout) -> SSAValue:
    builder = context.builder
    half, source = layout.slice(len(layout.shape) - 1)
    assert half == joined_half(layout)
    both = builder.join([context.tiles[operand, half] for operand in op.operands])
    odd = [element & 1 for element in layout.elements]
    here = builder.pick(both, [s + half.registers * o for s, o in zip(source, odd, strict=True)])
    part = context.address.thread_part([basis & 1 for basis in layout.thread])
    if part is None:
        return here
    there = builder.pick(both, [s + half.registers * (1 - o) for s, o in zip(source, odd, strict=True)])
    swapped = builder.op("nei", part, builder.constant(0, lane.vector(1, types.i32)))
    return builder.op("select", builder.splat(swapped, layout.registers), there, here)


def split(context: LoweringContext, op: SplitOp) -> None:
    """Both elements of each pair stand in one lane."""
    for layout in context.layouts(op.results[0]):
        assert layout is not None
        source, halves = layout.before_split()
        for result, registers in zip(op.results, halves, strict=True):
            context.put(result, layout, context.builder.pick(context.tiles[op.operands[0], source], registers))


HANDLERS = {JoinOp: join, SplitOp: split}
