"""Lowering of what combines elements: reductions, scans and matrix products."""

from __future__ import annotations

from tilefw.simt.lower import asynchronous_dot, dot, reduce, scan
from tilefw.simt.lower.context import LoweringContext
from tilefw.simt.lower.dot import scales_of
from tilefw.tile import types
from tilefw.tile.dialect.combine_op import ReduceOp, ScanOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp


def reduction(context: LoweringContext, op: ReduceOp) -> None:
    """In the home of what is reduced; the results are its slice, or uniform scalars."""
    layout = context.assignment.layouts.get(op)
    if layout is None:  # nobody uses it
        return
    lowered = reduce.lower(context, op, [context.tiles[operand, layout] for operand in op.operands], layout)
    for result, value in zip(op.results, lowered, strict=True):
        context.put(result, layout.slice(op.axis)[0] if types.is_tile(result.type) else None, value)


def running(context: LoweringContext, op: ScanOp) -> None:
    """In the home of the results, which the scanned tiles come in as well."""
    layout = context.assignment.layouts.get(op)
    if layout is None:  # nobody uses it
        return
    lowered = scan.lower(context, op, [context.tiles[operand, layout] for operand in op.operands], layout)
    for result, value in zip(op.results, lowered, strict=True):
        context.put(result, layout, value)


def product(context: LoweringContext, op: DotOp) -> None:
    """In the layouts that its atom wants."""
    if not context.layouts(op.result):
        return
    layouts = context.assignment.dots[op]
    if layouts.atom.asynchronous:
        context.put(op.result, layouts.d, asynchronous_dot.lower(context, op, layouts))
        return
    a, b = (context.steps.get(v) or context.tiles[v, l] for v, l in ((op.a, layouts.a), (op.b, layouts.b)))
    scales = [None if v is None else context.tiles[v, layout] for v, layout in scales_of(op, layouts)]
    context.put(op.result, layouts.d, dot.lower(context, a, b, context.tiles[op.acc, layouts.d], layouts, scales))


HANDLERS = {ReduceOp: reduction, ScanOp: running, DotOp: product, DotScaledOp: product}
