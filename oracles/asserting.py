"""A test that passes has asserted something: one whose assertions are all in loops that did not run is a failure.

Which tests that may happen to is found in their text. Only those are watched while they run, and only until the first of their
assertions is reached.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Generator, Iterator
from functools import cache
from types import FrameType
from typing import Any

import pytest

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# How the names of calls begin that fail by themselves where something is wrong.
_CHECKS = ("assert", "raises", "warns", "fail", "check")


@cache
def looped(path: str) -> dict[str, frozenset[int]]:
    """The tests of a file whose assertions are all in loops, by name, with the lines of those assertions."""
    with open(path, encoding="utf-8") as file:
        module = ast.parse(file.read(), path)
    functions = {node.name: node for node in ast.walk(module) if isinstance(node, _FUNCTIONS)}
    asserting = {name for name, node in functions.items() if not name.startswith("test_") and _raises(node)}
    tests = {name: list(_assertions(node, asserting, False)) for name, node in functions.items() if name.startswith("test_")}
    return {
        name: frozenset(line for node, _ in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for name, found in tests.items() if found and all(in_loop for _, in_loop in found)
    }


def _raises(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(function))


def _assertions(node: ast.AST, asserting: set[str], in_loop: bool) -> Iterator[tuple[ast.stmt | ast.expr, bool]]:
    """The assertions below `node`, and the calls of functions that assert, each with whether it is in a loop."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assert) or (isinstance(child, ast.Call) and _checks(child, asserting)):
            yield child, in_loop
        yield from _assertions(child, asserting, in_loop or isinstance(child, _LOOPS))


def _checks(call: ast.Call, asserting: set[str]) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name in asserting or name.lstrip("_").startswith(_CHECKS)


class _Watch:
    """Whether one of `lines` of a function is reached, by a trace that ends there."""

    def __init__(self, path: str, name: str, lines: frozenset[int]) -> None:
        self._function, self._lines = (path, name), lines
        self.reached = False

    def call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self.line if (frame.f_code.co_filename, frame.f_code.co_name) == self._function else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_lineno in self._lines:
            self.reached = True
            sys.settrace(None)
            return None
        return self.line


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
    path, name = str(pyfuncitem.path), pyfuncitem.originalname
    lines = looped(path).get(name)
    if lines is None or sys.gettrace() is not None:  # a debugger or a measurement of coverage has the trace
        yield
        return
    watch = _Watch(path, name, lines)
    sys.settrace(watch.call)
    try:
        outcome = yield
    finally:
        sys.settrace(None)
    if outcome.excinfo is None and not watch.reached:
        outcome.force_exception(AssertionError(f"{name} asserted nothing: all its assertions are in loops, and none of them ran"))
