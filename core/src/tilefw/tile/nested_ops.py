"""All ops inside an op as one list: passes look through whole functions for a few ops, again and again."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Operation

_OpT = TypeVar("_OpT", bound=Operation)


def nested_ops(root: Operation) -> list[Operation]:
    """`root` and the ops below it in the order of the text. What xDSL's `walk` gives, without three generators for each op."""
    found: list[Operation] = []
    _add(root, found)
    return found


def nested_of(root: Operation, kind: type[_OpT]) -> list[_OpT]:
    """Those of exactly this class. `isinstance` of xDSL's own goes through Python's abstract base classes, ten times as slow."""
    return [op for op in nested_ops(root) if op.__class__ is kind]  # type: ignore[misc]


def _add(op: Operation, found: list[Operation]) -> None:
    found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                if inner.regions:
                    _add(inner, found)
                else:
                    found.append(inner)
                inner = inner._next_op  # without the call of a property, for each op of each look
