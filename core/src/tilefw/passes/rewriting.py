"""The edits that passes make: insert before an op, put values or another op in an op's place, rebuild a loop, erase."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue


def place_before(made: Operation, before: Operation) -> None:
    """Put a new op before another, at whose source place it stands."""
    made.location = before.location
    assert before.parent is not None
    before.parent.insert_op_before(made, before)


def insert(made: Operation, before: Operation) -> SSAValue:
    """`place_before` for an op with results; gives its first."""
    place_before(made, before)
    return made.results[0]


def replace(op: Operation, *values: SSAValue) -> None:
    """Put `values` in place of the op's results, and erase it."""
    for old, value in zip(op.results, values, strict=True):
        if value.name_hint is None:
            value.name_hint = old.name_hint
        old.replace_all_uses_with(value)
    erase(op)


def exchange(op: Operation, made: Operation) -> None:
    """Put a new op of the same results in place of an op; it takes over its source place and attributes."""
    made.attributes = dict(op.attributes)
    place_before(made, op)
    replace(op, *made.results)


def rebuild_loop(loop: scf.ForOp, carried: Sequence[SSAValue]) -> scf.ForOp:
    """A loop with the body of `loop` that carries `carried`, placed before it; the caller replaces the results and erases."""
    new = scf.ForOp(loop.lb, loop.ub, loop.step, carried, loop.detach_region(loop.body))
    new.attributes = dict(loop.attributes)
    place_before(new, loop)
    return new


def erase(op: Operation) -> None:
    """Take an op out of its block and drop it."""
    op.detach()
    op.erase()


def block_of(value: SSAValue) -> Block | None:
    """The block that a value is defined in."""
    return value.block if value.__class__ is BlockArgument else value.owner.parent  # type: ignore[union-attr]
