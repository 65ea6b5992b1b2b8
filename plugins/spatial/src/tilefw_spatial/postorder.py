"""Postorder of things that are made of others: all that some roots need, each once, operands before their users."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def postorder(roots: Iterable[Node], operands: Callable[[Node], Iterable[Node]], done: Container[Node] = ()) -> list[Node]:
    """The roots and what they are made of, except what is in `done` and what only that needs. The first root comes first; of a
    user's operands the last."""
    found: dict[Node, None] = {}
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        current, ready = stack.pop()
        if current in found or current in done:
            continue
        if ready:
            found[current] = None
        else:
            stack.append((current, True))
            stack += [(operand, False) for operand in operands(current)]
    return list(found)
