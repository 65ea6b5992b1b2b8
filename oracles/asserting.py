"""A test that passes has asserted something: one whose assertions are all in loops that did not run is a failure.

Which tests that may happen to is found in their text. Where pytest rewrites the assertions of a file, those tests also get marks
(oracles/assertion_marks.py), which cost nothing. Where a file was not rewritten, a trace looks for the first assertion; under it
all code runs four times slower.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Generator, Iterator
from functools import cache
from types import FrameType
from typing import Any, Protocol

import pytest

from oracles import assertion_marks

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# How the names of calls begin that fail by themselves where something is wrong.
_CHECKS = ("assert", "raises", "warns", "fail", "check")


def _looped(module: ast.Module) -> dict[str, tuple[ast.stmt, list[ast.stmt | ast.expr]]]:
    """The tests of a file whose assertions are all in loops, by name: the function, and those assertions."""
    functions = {node.name: node for node in _statements(module) if isinstance(node, _FUNCTIONS)}
    undecided = [name for name, node in functions.items() if name.startswith("test_") and not _asserts_at_once(node)]
    if not undecided:
        return {}
    asserting = {name for name, node in functions.items() if not name.startswith("test_") and _raises(node)}
    tests = {name: list(_assertions(functions[name], asserting, False)) for name in undecided}
    return {
        name: (functions[name], [node for node, _ in found])
        for name, found in tests.items() if found and all(in_loop for _, in_loop in found)
    }


@cache
def looped(path: str) -> dict[str, frozenset[int]]:
    """The tests of a file whose assertions are all in loops, by name, with the lines of those assertions."""
    with open(path, encoding="utf-8") as file:
        found = _looped(ast.parse(file.read(), path))
    return {
        name: frozenset(line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for name, (_, nodes) in found.items()
    }


def _statements(module: ast.Module) -> Iterator[ast.AST]:
    """Every statement at any depth. Expressions, of which a file has most, hold none."""
    below: deque[ast.AST] = deque([module])
    while below:
        node = below.popleft()
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            below.extend(getattr(node, part, ()))
        yield node


def _asserts_at_once(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether an assertion stands right in the function, as most do: it is in no loop, and no more need be known."""
    return any(isinstance(node, ast.Assert) for node in function.body)


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


class _Watch(Protocol):
    """Whether one of the assertions of a test is reached from `start` to `stop`."""

    reached: bool

    def start(self) -> None: ...

    def stop(self) -> None: ...


class _Marks:
    """Told by the marks in the function."""

    def __init__(self, module: dict[str, Any]) -> None:
        self._module = module
        self.reached = False

    def start(self) -> None:
        self._module[assertion_marks.REACHED] = False

    def stop(self) -> None:
        self.reached = self._module[assertion_marks.REACHED]


class _Trace:
    """Told by a trace of the function's lines, which ends at the first assertion."""

    def __init__(self, path: str, name: str, lines: frozenset[int]) -> None:
        self._function, self._lines = (path, name), lines
        self.reached = False

    def start(self) -> None:
        sys.settrace(self._call)

    def stop(self) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if (frame.f_code.co_filename, frame.f_code.co_name) == self._function else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_lineno in self._lines:
            self.reached = True
            sys.settrace(None)
            return None
        return self._line


def _watch(test: pytest.Function) -> _Watch | None:
    """None for a test that cannot but assert, and where a debugger or a measurement of coverage has the trace."""
    path, name = str(test.path), test.originalname
    marked = vars(test.module).get(assertion_marks.MARKED)
    if marked is not None:
        return _Marks(vars(test.module)) if name in marked else None
    lines = looped(path).get(name)
    if lines is None:
        return None
    return _Trace(path, name, lines) if sys.gettrace() is None else None


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
    watch = _watch(pyfuncitem)
    if watch is None:
        yield
        return
    watch.start()
    try:
        outcome = yield
    finally:
        watch.stop()
    if outcome.excinfo is None and not watch.reached:
        name = pyfuncitem.originalname
        outcome.force_exception(AssertionError(f"{name} asserted nothing: all its assertions are in loops, and none of them ran"))


assertion_marks.install(_looped)
