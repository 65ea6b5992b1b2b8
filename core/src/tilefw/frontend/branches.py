"""Run-time `if`: both branches are built, and what they assign or return is joined."""

from __future__ import annotations

import ast
from typing import Any

from xdsl.ir import Block

from tilefw.api.errors import CompileError
from tilefw.frontend.builder import name_value
from tilefw.frontend.calls import Calls
from tilefw.frontend.casts import to_value
from tilefw.frontend.continuation import FELL_THROUGH, Continuation, NeedsContinuation, PathOutcome
from tilefw.frontend.scope import Names
from tilefw.frontend.values import CompositeValue, RuntimeValue, describe, flatten, is_number, named, rebuild, same_type

_ABSENT = object()


class BranchSide:
    """One branch while it is built: its block, the scope at its end, and how it ended."""

    __slots__ = ("block", "end", "outcome")

    def __init__(self) -> None:
        self.block = Block()
        self.end: Names = ({}, {}, {})
        self.outcome: PathOutcome = FELL_THROUGH

    @property
    def names(self) -> dict[str, Any]:
        return self.end[0]


class Branches(Calls):
    """The visitor of run-time branches."""

    def execute(self, continuation: Continuation, closed: bool = False) -> PathOutcome:
        raise NotImplementedError

    def branch(self, node: ast.If, condition: RuntimeValue, continuation: Continuation, closed: bool) -> PathOutcome:
        """Build a run-time `if`. FELL_THROUGH means that `continuation` is still to be run; else all of it is in the branches."""
        before = self.frame.scope.snapshot()
        sides = [self._side(statements, continuation, before, closed) for statements in (node.body, node.orelse)]
        ends = [side.outcome is FELL_THROUGH for side in sides]
        if all(ends):
            self.frame.at(node)
            self._join_names(node, condition, sides, before)
            return FELL_THROUGH
        if any(ends):
            if closed:
                raise NeedsContinuation
            self._continue(sides[ends.index(True)], continuation)
        self.frame.at(node)
        self.frame.scope.restore(before)
        return self._join_returns(condition, sides)

    def _side(self, statements: list[ast.stmt], continuation: Continuation, before: Names, closed: bool) -> BranchSide:
        """One branch. When it returns in some of its own branches only, it is built again with `continuation` inside."""
        side = self._run(statements, None, before, closed=True)
        if side is not None:
            return side
        if closed:
            raise NeedsContinuation
        side = self._run(statements, continuation, before, closed=False)
        assert side is not None
        if side.outcome is FELL_THROUGH:
            side.outcome = PathOutcome(None)
        return side

    def _run(self, statements: list[ast.stmt], continuation: Continuation, before: Names, closed: bool) -> BranchSide | None:
        side, scope = BranchSide(), self.frame.scope
        scope.restore(before)
        with self.frame.b.inside(side.block):
            try:
                side.outcome = self.execute((statements, 0, continuation), closed)
            except NeedsContinuation:
                scope.restore(before)
                return None
        side.end = scope.snapshot()
        scope.restore(before)
        return side

    def _continue(self, side: BranchSide, continuation: Continuation) -> None:
        self.frame.scope.restore(side.end)
        with self.frame.b.inside(side.block):
            outcome = self.execute(continuation)
        side.outcome = PathOutcome(None) if outcome is FELL_THROUGH else outcome

    def _join_names(self, node: ast.If, condition: RuntimeValue, sides: list[BranchSide], before: Names) -> None:
        """Names after the branch: those on which both sides agree, those that differ as results, the others are gone."""
        scope, (then, otherwise) = self.frame.scope, sides
        joined: dict[str, Any] = {}
        differing: dict[str, tuple[list[RuntimeValue], list[RuntimeValue]]] = {}
        for name in dict.fromkeys((*before[0], *then.names, *otherwise.names)):
            left, right = then.names.get(name, _ABSENT), otherwise.names.get(name, _ABSENT)
            if _identical(left, right):
                joined[name] = left
            elif left is not _ABSENT and right is not _ABSENT and same_type(left, right):
                joined[name] = left
                differing[name] = (flatten(left), flatten(right))
            else:
                scope.gone[name] = self._why_gone(node, name, sides)
        pairs = [pair for left, right in differing.values() for pair in zip(left, right, strict=True)]
        results = iter(self.frame.b.branch(condition, then.block, otherwise.block, pairs))
        for name in differing:
            joined[name] = rebuild(joined[name], results)
            for leaf in flatten(joined[name]):
                name_value(leaf.ssa, name)
        scope.locals = joined
        scope.lines = {**then.end[1], **otherwise.end[1]}

    def _why_gone(self, node: ast.If, name: str, sides: list[BranchSide]) -> str:
        left, right = (side.names.get(name, _ABSENT) for side in sides)
        lines = [side.end[1].get(name, node.lineno) for side in sides]
        if left is _ABSENT or right is _ABSENT:
            return f"it is assigned in one branch of the `if` in line {node.lineno} only (line {lines[left is _ABSENT]})"
        if isinstance(left, RuntimeValue | CompositeValue) and isinstance(right, RuntimeValue | CompositeValue):
            raise CompileError(
                f"Mismatched type for {name}: the branches of this `if` give it different types",
                "TFW0110",
                note=f"{_after(left, 'then', lines[0], node)}; {_after(right, 'else', lines[1], node)}",
                help=f"cast one to the other's type, e.g. `{name}.to(…)`" if isinstance(left, RuntimeValue) else None,
            )
        return f"the branches of the `if` in line {node.lineno} leave it as {describe(left)} and as {describe(right)}"

    def _join_returns(self, condition: RuntimeValue, sides: list[BranchSide]) -> PathOutcome:
        values = [side.outcome.value for side in sides]
        pairs: list[tuple[RuntimeValue, RuntimeValue]] = []
        joined = self._common(values[0], values[1], sides, pairs)
        results = iter(self.frame.b.branch(condition, sides[0].block, sides[1].block, pairs))
        return PathOutcome(rebuild(joined, results), sides[0].outcome.node)

    def _common(self, left: Any, right: Any, sides: list[BranchSide], pairs: list[tuple[RuntimeValue, RuntimeValue]]) -> Any:
        """One value for two returns; equal constexprs stay, numbers become run-time scalars, types must agree."""
        if isinstance(left, CompositeValue) and same_type(left, right):
            return left.with_parts(self._common(left.parts, right.parts, sides, pairs))
        if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
            return tuple(self._common(a, b, sides, pairs) for a, b in zip(left, right, strict=True))
        if not isinstance(left, RuntimeValue) and not isinstance(right, RuntimeValue) and same_type(left, right):
            return left
        if all(isinstance(value, RuntimeValue) or is_number(value) for value in (left, right)):
            with self.frame.b.inside(sides[0].block):
                first = to_value(self.frame.b, left)
            with self.frame.b.inside(sides[1].block):
                second = to_value(self.frame.b, right)
            if first.type == second.type:
                pairs.append((first, second))
                return first
            left, right = first, second
        raise self._return_mismatch(left, right, sides)

    def _return_mismatch(self, left: Any, right: Any, sides: list[BranchSide]) -> CompileError:
        nodes = [side.outcome.node for side in sides]
        place = next((self.frame.place(node) for node in reversed(nodes) if node is not None), None)
        words = [
            f"{describe(value) if value is not None else 'nothing'} "
            + (f"in line {node.lineno}" if node is not None else "at the end of the function")
            for value, node in zip((left, right), nodes, strict=True)
        ]
        return CompileError(
            f"Return type mismatch: `{self.frame.source.name}` returns different types",
            "TFW0111",
            place,
            note=f"it returns {words[0]} and {words[1]}",
            help="every way through a function returns the same types; cast where they differ",
        )


def _identical(left: Any, right: Any) -> bool:
    """Whether two values are one: the same SSA values and equal compile-time parts."""
    if left is right:
        return True
    if left is _ABSENT or right is _ABSENT or not same_type(left, right):
        return False
    return all(a.ssa is b.ssa for a, b in zip(flatten(left), flatten(right), strict=True))


def _after(value: Any, branch: str, line: int, node: ast.If) -> str:
    where = f"line {line}" if line >= node.lineno else f"unchanged since line {line}"
    return f"after the {branch} branch it is {named(value)} ({where})"
