"""Continuations: what follows a statement, and how running statements ends."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# Statements (or steps of an unrolled loop), the index of the next one, and what follows them all.
Continuation = tuple[Sequence[ast.stmt | Callable[[], None]], int, "Continuation"] | None


@dataclass(frozen=True, slots=True, eq=False)
class PathOutcome:
    """A function has returned `value`, at `node`; FELL_THROUGH when the statements simply ended."""

    value: Any
    node: ast.stmt | None = None


FELL_THROUGH = PathOutcome(None)


class NeedsContinuation(Exception):
    """A branch returned in one way and ended in another, so what follows it must be built inside of it."""


def contains_return(statements: Sequence[ast.stmt]) -> bool:
    """Whether a `return` stands anywhere in these statements."""
    return any(isinstance(node, ast.Return) for statement in statements for node in ast.walk(statement))


def assigned_names(nodes: Sequence[ast.AST]) -> dict[str, int]:
    """The names that these nodes may assign, each with the line of its last assignment; a comprehension keeps its own."""
    found: dict[str, int] = {}
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ListComp):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = max(node.lineno, found.get(node.id, 0))
        stack += reversed(list(ast.iter_child_nodes(node)))
    return found
