"""Loops of few short iterations, whose number is known, become their iterations: no counter, no branch, addresses a constant apart.

Loops that feed dots stay: they are pipelined (`loops.py`). So do those with regions of their own, whose code is long.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.canonicalize import CanonicalizePass
from tilefw.passes.cse import CsePass
from tilefw.passes.fold import constant_of
from tilefw.passes.rewriting import place_before, replace
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.nested_ops import nested_ops

_MOST_ITERATIONS = 4
_MOST_OPS = 64  # of all iterations together, constants aside


class UnrollShortLoops(ModulePass):
    """Writes the iterations of short loops one after the other, and simplifies what their numbers decide."""

    name = "unroll-short-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Innermost loops only: what holds a loop has a region."""
        short = [(loop, starts) for loop in nested_ops(op) if isinstance(loop, ForOp) and (starts := _iterations(loop)) is not None]
        for loop, starts in short:
            _unroll(loop, starts)
        if short:
            CanonicalizePass().apply(ctx, op)
            CsePass().apply(ctx, op)


def _iterations(loop: ForOp) -> range | None:
    """The values of a short loop's induction variable; None for all other loops."""
    bounds = [constant_of(value) for value in (loop.lb, loop.ub, loop.step)]
    if not all(isinstance(bound, int) for bound in bounds) or bounds[2] <= 0:  # type: ignore[operator]
        return None
    values = range(*bounds)  # type: ignore[arg-type]
    body = [op for op in loop.body.block.ops if not isinstance(op, ops.ConstantOp)]
    if values[_MOST_ITERATIONS:] or len(values) * len(body) > _MOST_OPS:  # the number of all iterations need not fit a `len`
        return None
    return None if any(op.regions or isinstance(op, DotOp) for op in body) else values


def _unroll(loop: ForOp, starts: range) -> None:
    carried: list[SSAValue] = list(loop.iter_args)
    for start in starts:
        induction: Operation = ops.ConstantOp(start, loop.lb.type)
        place_before(induction, loop)
        known: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, (induction.results[0], *carried), strict=True))
        for op in loop.body.block.ops:
            if isinstance(op, YieldOp):
                carried = [known.get(value, value) for value in op.operands]
                continue
            made = op.clone(known)
            place_before(made, loop)
            made.location = op.location
    replace(loop, *carried)
