"""Lowering of ops that make values from nothing or element by element: constants, indices, elementwise rows, pointers."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilefw.api.integers import log2
from tilefw.simt import lane
from tilefw.simt.layout import LinearLayout
from tilefw.simt.lower.context import LoweringContext
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.elementwise_op import ElementwiseOp


def elementwise(context: LoweringContext, op: ElementwiseOp) -> None:
    """A row of the table, in each layout."""
    with context.builder.promising("exact" if op in context.offset_ops else ""):
        for layout in context.layouts(op.result):
            context.put(op.result, layout, _row(context, op, layout))


def _row(context: LoweringContext, op: ElementwiseOp, layout: LinearLayout | None) -> SSAValue:
    values = [context.get(v, layout) for v in op.operands]
    if op.row.name in ("ptr_to_int", "int_to_ptr"):
        return context.builder.extend(values[0], context.element(op.result.type))
    if types.element_of(op.result.type) == types.i1 and (known := context.facts.constant(op.result)) is not None:
        return context.builder.constant(known, context.lane_type(op.result, layout))
    if (low := _of_low_bits(context, op)) is not None:
        row, number = low
        return context.builder.op(row, values[0], context.builder.constant(number, values[0].type))
    first = _first_alike(context, op, layout)
    if first is None:
        return _computed(context, op, values)
    chosen = sorted(set(first))
    made = _computed(context, op, [context.builder.pick(v, chosen) for v in values])
    return context.builder.pick(made, [chosen.index(r) for r in first])


def _of_low_bits(context: LoweringContext, op: ElementwiseOp) -> tuple[str, int] | None:
    """Quotient and remainder of a number without a sign by a power of two: a row and its second operand."""
    if op.row.name not in ("divs", "rems"):
        return None
    least, power = context.facts.bounds(op.operands[0])[0], context.facts.constant(op.operands[1])
    if least is None or least < 0 or power is None or power <= 0 or power & power - 1:
        return None
    return ("shru", log2(power)) if op.row.name == "divs" else ("andi", power - 1)


def _computed(context: LoweringContext, op: ElementwiseOp, values: list[SSAValue]) -> SSAValue:
    result = context.element(op.result.type) if op.row.is_cast else None
    return context.builder.op(op.row.name, *values, result=result, rounding=None if op.rounding == "rtne" else op.rounding)


def _first_alike(context: LoweringContext, op: ElementwiseOp, layout: LinearLayout | None) -> list[int] | None:
    """For each register the first one that surely holds an equal element (a mask of vectors, an index divided); None if none do."""
    if layout is None or not layout.register or not types.is_int(op.result.type):
        return None
    same = 0
    runs = context.facts.alike(op.result)
    for i, basis in enumerate(layout.register):
        moves = [(c, run) for c, run in zip(layout.coordinates(basis), runs, strict=True) if c]
        if all(c & (c - 1) == 0 and c < run for c, run in moves):
            same |= 1 << i
    return [r & ~same for r in range(layout.registers)] if same else None


def constant(context: LoweringContext, op: ops.ConstantOp) -> None:
    """One number in every register."""
    for layout in context.layouts(op.result):
        context.put(op.result, layout, context.builder.constant(op.value, context.lane_type(op.result, layout)))


def splat(context: LoweringContext, op: ops.SplatOp) -> None:
    """One scalar in every register."""
    for layout in context.layouts(op.result):
        assert layout is not None
        context.put(op.result, layout, context.builder.splat(context.scalars[op.source], layout.registers))


def iota(context: LoweringContext, op: ops.IotaOp) -> None:
    """The index of each register's element."""
    for layout in context.layouts(op.result):
        assert layout is not None
        index = context.address.index(layout)
        context.put(op.result, layout, context.builder.op("addi", index, context.builder.constant(op.start, index.type)))


def grid(context: LoweringContext, op: ops.ProgramIdOp | ops.NumProgramsOp) -> None:
    """A number of the launch grid."""
    cls = lane.ProgramIdOp if isinstance(op, ops.ProgramIdOp) else lane.NumProgramsOp
    context.scalars[op.result] = context.numbered(cls, op.axis)


def add_pointer(context: LoweringContext, op: ops.AddPtrOp) -> None:
    """Pointers are integers: an offset in elements is added in bytes."""
    size = types.dtype_of(types.pointee_of(op.pointer.type)).storage_bits // 8
    for layout in context.layouts(op.result):
        pointer, offset = context.get(op.pointer, layout), context.get(op.operands[1], layout)
        context.put(op.result, layout, context.address.advance(pointer, offset, size))


HANDLERS = {
    ops.ConstantOp: constant, ops.SplatOp: splat, ops.IotaOp: iota, ops.ProgramIdOp: grid, ops.NumProgramsOp: grid,
    ops.AddPtrOp: add_pointer,
}
