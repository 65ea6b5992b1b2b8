"""Which names a kernel may read from outside it: those that it loads where no statement before has surely given them a value.

    if SCALED:
        factor = 2
    tl.store(p, x * factor)     # a global `factor`, unless SCALED

Each is a chain with the attributes that follow it: `("math", "pi")`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

Chain = tuple[str, ...]
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def free_chains(function: ast.FunctionDef) -> set[Chain]:
    """The chains of a function's body, in no order; defaults and annotations of its parameters are not of the body."""
    walk = _FreeNames(_parameters(function.args))
    walk.through(function.body)
    return walk.chains


def _parameters(arguments: ast.arguments) -> set[str]:
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {argument.arg for argument in (*named, arguments.vararg, arguments.kwarg) if argument is not None}


class _FreeNames(ast.NodeVisitor):
    """In the order of execution; `bound` are the names that surely have a value where the walk stands."""

    def __init__(self, bound: set[str]) -> None:
        self.bound = bound
        self.chains: set[Chain] = set()

    def through(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def _apart(self, statements: Sequence[ast.stmt]) -> set[str]:
        """Walk what may not run; the names that are bound at its end."""
        before = set(self.bound)
        self.through(statements)
        after, self.bound = self.bound, before
        return after

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif node.id not in self.bound:
            self.chains.add((node.id,))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names: list[str] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            names.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name):
            self.visit(value)
        elif value.id not in self.bound:
            self.chains.add((value.id, *reversed(names)))

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.chains.add((node.target.id,))
        self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.visit(node.target)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        taken, other = self._apart(node.body), self._apart(node.orelse)
        ends = [isinstance(body[-1], ast.Return) if body else False for body in (node.body, node.orelse)]
        self.bound |= other if ends[0] else taken if ends[1] else taken & other

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        before = set(self.bound)
        self.visit(node.target)
        self._apart(node.body)
        self.bound = before
        self._apart(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._apart(node.body)
        self._apart(node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """A name that an operand binds (`:=`) has a value behind the whole only where the first one binds it."""
        self.visit(node.values[0])
        before = set(self.bound)
        for value in node.values[1:]:
            self.visit(value)
        self.bound = before

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        before = set(self.bound)
        self.visit(node.body)
        self.bound = set(before)
        self.visit(node.orelse)
        self.bound = before

    def generic_visit(self, node: ast.AST) -> None:
        if not isinstance(node, _Comprehension):
            super().generic_visit(node)
            return
        before = set(self.bound)
        for generator in node.generators:
            self.visit(generator.iter)
            self.visit(generator.target)
            for condition in generator.ifs:
                self.visit(condition)
        for made in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(made)
        self.bound = before

    def visit_Lambda(self, node: ast.Lambda) -> None:
        before = set(self.bound)
        self.bound = before | _parameters(node.args)
        self.visit(node.body)
        self.bound = before
