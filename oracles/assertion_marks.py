"""Marks before the assertions of some tests: a variable of the module that says that one was reached.

pytest compiles test files itself, with their assertions rewritten; the marks are put into the same tree before that. They are
assignments, so a compiled file that pytest keeps works without this plugin, and one that it kept from before has no marks and is
known by that.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from _pytest.assertion import rewrite

# Variables of a marked module; as pytest's own, no source can spell them.
REACHED = "@tilefw_reached"
MARKED = "@tilefw_marked"

# The functions of a file that are to be marked, by name, each with the nodes that marks come before.
Finder = Callable[[ast.Module], Mapping[str, tuple[ast.stmt, Sequence[ast.AST]]]]


def install(find: Finder) -> None:
    """From now on the files that pytest rewrites are marked where `find` says."""
    plain = rewrite.rewrite_asserts

    def marking(mod: ast.Module, *arguments: Any, **keywords: Any) -> None:
        mark(mod, find)
        plain(mod, *arguments, **keywords)

    rewrite.rewrite_asserts = marking


def leave_plain(hook: object, packages: Collection[str]) -> None:
    """Load these packages as they are compiled. pytest would rewrite every file of a distribution that brings it a plugin, in each
    process anew where none may write bytecode; no test reads what an assertion of the compiler itself says."""
    if not isinstance(hook, rewrite.AssertionRewritingHook):  # nothing is rewritten: --assert=plain
        return
    hook._must_rewrite.difference_update(packages)
    hook._marked_for_rewrite_cache.clear()


def mark(module: ast.Module, find: Finder) -> None:
    """Put the marks into `module`, and at its end the names of the marked functions, where there are none as well."""
    found = find(module)
    for function, nodes in found.values():
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        body = _marked(function.body, frozenset(nodes))
        first = 0 if ast.get_docstring(function, clean=False) is None else 1
        function.body = [*body[:first], ast.Global([REACHED]), *body[first:]]
    module.body.append(ast.fix_missing_locations(_assignment(MARKED, frozenset(found))))
    if found:
        ast.fix_missing_locations(module)


def _assignment(name: str, value: Any) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))


def _marked(statements: Sequence[ast.stmt], nodes: frozenset[ast.AST]) -> list[ast.stmt]:
    """`statements` with a mark before each that has one of `nodes` itself, not in a statement below it; not in inner functions."""
    made: list[ast.stmt] = []
    for statement in statements:
        if not nodes.isdisjoint(_own(statement)):
            made.append(ast.copy_location(_assignment(REACHED, True), statement))
        made.append(statement)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for holder in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            for part in ("body", "orelse", "finalbody"):
                if below := getattr(holder, part, None):
                    setattr(holder, part, _marked(below, nodes))
    return made


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from ast.walk(child)
