"""The few edits that the rules of canonical form make: insert before an op, replace its result, erase it."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue


def insert(made: Operation, before: Operation) -> SSAValue:
    """Insert an op before another, at whose source place it stands; gives its first result."""
    made.location = before.location
    assert before.parent is not None
    before.parent.insert_op_before(made, before)
    return made.results[0]


def replace(op: Operation, *values: SSAValue) -> None:
    """Put `values` in place of the op's results, and erase it."""
    for old, value in zip(op.results, values, strict=True):
        if value.name_hint is None:
            value.name_hint = old.name_hint
        old.replace_all_uses_with(value)
    erase(op)


def erase(op: Operation) -> None:
    """Take an op out of its block and drop it."""
    op.detach()
    op.erase()
