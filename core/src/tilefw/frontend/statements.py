"""Statements of a kernel. What is decided at compile time is walked through; what is decided at run time becomes `scf`.

A body is a list of statements with what follows it (`Continuation`), because a `return` inside a run-time `if` sends everything
after that `if` into its other branch, and an unrolled loop puts its iterations in front of what follows.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError, KernelError
from tilefw.frontend.branches import Branches
from tilefw.frontend.builder import name_value
from tilefw.frontend.builtins import MEANINGS
from tilefw.frontend.casts import to_value
from tilefw.frontend.constructs import unsupported
from tilefw.frontend.continuation import FELL_THROUGH, Continuation, PathOutcome
from tilefw.frontend.expressions import truth_of
from tilefw.frontend.loops import LoopStatements, is_range, static_items
from tilefw.frontend.values import RuntimeValue, flatten, is_number, named, transform

STATEMENT_LIMIT = 200_000


@dataclass(frozen=True, slots=True)
class Goto:
    """Go on with these statements."""

    continuation: Continuation


Item = ast.stmt | Callable[[], None]


class Statements(Branches, LoopStatements):
    """The visitor of statements; `body` runs the whole function of the frame."""

    def body(self) -> Any:
        """Inline the function's body; gives the value that it returns, None where it returns nothing."""
        outcome = self.execute((self.frame.source.tree.body, 0, None))
        return None if outcome is FELL_THROUGH else outcome.value

    def execute(self, continuation: Continuation, closed: bool = False) -> PathOutcome:
        """Run statements until none is left or one returns. `closed`: what follows the last one is not in `continuation`."""
        while continuation is not None:
            items, index, after = continuation
            if index == len(items):
                continuation = after
                continue
            continuation = (items, index + 1, after)
            item = items[index]
            if not isinstance(item, ast.stmt):
                item()
                continue
            self._count(item)
            result = self._statement(item, continuation, closed)
            if isinstance(result, Goto):
                continuation = result.continuation
            elif result is not None:
                return result
        return FELL_THROUGH

    def _count(self, node: ast.stmt) -> None:
        self.frame.b.steps += 1
        if self.frame.b.steps > STATEMENT_LIMIT:
            message = f"the kernel unrolls to more than {STATEMENT_LIMIT} statements"
            raise CompileError(message, "TFW0114", self.frame.place(node), help="use tl.range")

    def _statement(self, node: ast.stmt, continuation: Continuation, closed: bool) -> Goto | PathOutcome | None:
        try:
            if isinstance(node, ast.If):
                return self._if(node, continuation, closed)
            if isinstance(node, ast.For):
                return self._for(node, continuation)
            if isinstance(node, ast.Return):
                return self._return(node)
            handler = _HANDLERS.get(type(node))
            if handler is None:
                raise unsupported(node)
            handler(self, node)
        except KernelError as error:
            if error.place is None:
                error.place = self.frame.place(node)
            raise
        return None

    def _if(self, node: ast.If, continuation: Continuation, closed: bool) -> Goto | PathOutcome | None:
        condition = self.expression(node.test)
        if not isinstance(condition, RuntimeValue):
            return Goto((node.body if truth_of(condition) else node.orelse, 0, continuation))
        self.frame.at(node.test)
        try:
            condition = self.condition(condition)
        except CompileError as error:
            error.place = error.place or self.frame.place(node.test)
            raise
        outcome = self.branch(node, condition, continuation, closed)
        return None if outcome is FELL_THROUGH else outcome

    def _for(self, node: ast.For, continuation: Continuation) -> Goto | None:
        if node.orelse:
            raise unsupported(node, "`else` after a loop")
        head = self.loop_head(node)
        if is_range(head):
            self.run_time_for(node, head)
            return None
        steps: list[Item] = []
        for item in static_items(head):
            steps.append(lambda item=item: self.bind(node.target, item, keep=True))
            steps += node.body
        return Goto((steps, 0, continuation))

    def _return(self, node: ast.Return) -> PathOutcome:
        if self.frame.loops:
            raise unsupported(node, "`return` inside a run-time loop")
        value = None if node.value is None else self.expression(node.value)
        if self.frame.caller is None and flatten(value):
            raise CompileError(
                f"a kernel returns nothing, but this returns {named(value)}",
                "TFW0111",
                help="store it through a pointer parameter",
            )
        return PathOutcome(value, node)

    def assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        self.frame.at(node)
        for target in node.targets:
            self.bind(target, value)

    def annotated(self, node: ast.AnnAssign) -> None:
        """`x: tl.constexpr = value` keeps a number at compile time; any other annotation is a comment."""
        annotation = node.annotation
        constant = (
            "constexpr" in annotation.value
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
            else self.expression(annotation) is tl.constexpr
        )
        if not isinstance(node.target, ast.Name):
            raise unsupported(node.target)
        if node.value is None:
            if constant:
                self.frame.pending[node.target.id] = True
            return
        value = self.expression(node.value)
        self.frame.at(node)
        self.bind(node.target, value, keep=constant)

    def augmented(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise unsupported(node.target)
        left, right = self.frame.scope.read(node.target.id), self.expression(node.value)
        self.bind(node.target, self.operate(node, node.op, left, right))

    def bind(self, target: ast.expr, value: Any, *, keep: bool = False) -> None:
        """Give a name, or a tuple of names, its value. Numbers become run-time scalars unless they are kept as constexpr."""
        if isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value, keep)
            return
        if not isinstance(target, ast.Name):
            raise unsupported(target)
        name, scope = target.id, self.frame.scope
        if not (keep or self.frame.pending.pop(name, False)):
            value = transform(value, lambda leaf: to_value(self.frame.b, leaf) if is_number(leaf) else leaf)
        if isinstance(value, RuntimeValue):
            name_value(value.ssa, name)
        scope.locals[name] = value
        scope.lines[name] = target.lineno
        scope.gone.pop(name, None)

    def _unpack(self, target: ast.Tuple | ast.List, value: Any, keep: bool) -> None:
        for element in target.elts:
            if isinstance(element, ast.Starred):
                raise unsupported(element)
        if not isinstance(value, tuple):
            raise CompileError(f"{named(value)} cannot be unpacked", "TFW0116", note="only tuples can")
        if len(target.elts) != len(value):
            raise CompileError(f"{len(value)} values cannot be unpacked into {len(target.elts)} names", "TFW0116")
        for element, item in zip(target.elts, value, strict=True):
            self.bind(element, item, keep=keep)

    def evaluated(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # docstrings and `...` say nothing to the compiler
            self.expression(node.value)

    def asserted(self, node: ast.Assert) -> None:
        """`assert`: checked at once when it can be; at run time it is a tl.device_assert. One that fails in a branch or a loop of
        run time (`else: assert False`) is no mistake where nobody comes there."""
        condition = self.expression(node.test)
        if not isinstance(condition, RuntimeValue):
            condition = bool(condition)
        reached = self.frame.b.block is self.frame.b.entry
        if isinstance(condition, RuntimeValue) or not (condition or reached):
            message = "" if node.msg is None else self.expression(node.msg)
            self.frame.at(node)
            MEANINGS["device_assert"](self.frame.b, condition, message, None)
        elif not condition:
            text = "" if node.msg is None else f": {self.expression(node.msg)}"
            raise CompileError(f"assertion failed{text}", "TFW0108", self.frame.place(node.test))

    def run_while(self, node: ast.While) -> None:
        if node.orelse:
            raise unsupported(node, "`else` after a loop")
        self.run_time_while(node)

    def run_block(self, statements: Sequence[ast.stmt]) -> None:
        """The body of a run-time loop."""
        self.frame.loops += 1
        try:
            self.execute((statements, 0, None))
        finally:
            self.frame.loops -= 1


_HANDLERS: dict[type[ast.stmt], Callable[[Any, Any], None]] = {
    ast.Assign: Statements.assign,
    ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.augmented,
    ast.Expr: Statements.evaluated,
    ast.Assert: Statements.asserted,
    ast.While: Statements.run_while,
    ast.Pass: lambda visitor, node: None,
}
