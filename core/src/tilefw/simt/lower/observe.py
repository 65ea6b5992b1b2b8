"""Lowering of what the machine knows: the time as one thread reads it, brought to all others, so that branches on it are the
program's; the processor as each thread reads it, since it is the same for all."""

from __future__ import annotations

from tilefw.simt import lane
from tilefw.simt.lower.atomics import of_scalar, to_copies
from tilefw.simt.lower.context import LoweringContext
from tilefw.tile.dialect.observe_op import ObserveOp


def observe(context: LoweringContext, op: ObserveOp) -> None:
    """One reading, in the scalar of the op."""
    builder = context.builder
    read = builder.insert(lane.ObserveOp(op.what)).results[0]
    if op.is_time:
        layout = of_scalar(context)
        mine = context.address.only_copy(layout)
        read = builder.uniform(to_copies(context, op, builder.splat(read, 1), layout, mine, "a reading of the clock"))
    context.scalars[op.result] = read


HANDLERS = {ObserveOp: observe}
