"""A kernel's own code with its operations handed to the front end: Python that runs, line for line where the kernel's text stands.

Each operation becomes a call `__tilefw__.name(number, operands…)`; `number` is the node's place in `nodes`. Control flow, names and
the lines of statements stay, so a debugger of Python stops and steps in the kernel as it is written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from tilefw.api.errors import KernelError
from tilefw.frontend.constructs import unsupported
from tilefw.frontend.source import KernelSource

HOOKS = "__tilefw__"
# Calls that are Python's own in a debugged kernel: the debugger stops in the frame that makes them.
_LEFT = ("breakpoint", "print")
_STOPS = ("set_trace", "breakpoint")


class KernelRewriter:
    """Rewrites one function; `nodes` are those that the hooks are asked about."""

    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self.nodes: list[ast.AST] = []
        tree = source.tree
        arguments = tree.args
        self._parameters = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        self._parameters += [a.arg for a in (arguments.vararg, *arguments.kwonlyargs) if a is not None]
        self._locals = set(self._parameters)
        clauses = [n for n in ast.walk(tree) if isinstance(n, ast.comprehension)]
        inner = {id(n) for clause in clauses for n in ast.walk(clause.target)}
        self._locals |= _stored(n for n in ast.walk(tree) if id(n) not in inner)
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        self._locals |= {a.asname or a.name.split(".")[0] for n in imports for a in n.names}
        self._kept = {
            n.target.id for n in ast.walk(tree)
            if isinstance(n, ast.AnnAssign) and n.value is None and isinstance(n.target, ast.Name) and _constant(n.annotation)
        }

    def function(self) -> ast.Module:
        """The function's code as a module that defines it."""
        tree = self.source.tree
        names = [ast.arg(name) for name in self._parameters]  # that of `*args` gets its tuple
        arguments = ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[])
        made = ast.FunctionDef(name=tree.name, args=arguments, body=self._body(tree.body), decorator_list=[])
        ast.copy_location(made, tree)
        return ast.fix_missing_locations(ast.Module([made], type_ignores=[]))

    # -- statements

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found = [self._statement(statement) for statement in statements]
        return [statement for statement in found if statement is not None]

    def _statement(self, node: ast.stmt) -> ast.stmt | None:
        handler = _STATEMENTS.get(type(node))
        try:
            if handler is None:
                raise unsupported(node)
            made = handler(self, node)
        except KernelError as error:
            error.place = error.place or self.source.place(node)
            raise
        return made if made is None or made is node else ast.copy_location(made, node)

    def _assign(self, node: ast.Assign) -> ast.stmt:
        value = self._value(node.value)
        if len(node.targets) == 1:
            return ast.Assign([self._target(node.targets[0])], self._bound(node, node.targets[0], value))
        if not all(isinstance(target, ast.Name) for target in node.targets):
            raise unsupported(node, "several targets of which one is a tuple")
        return ast.Assign([self._target(target) for target in node.targets], self._bound(node, node.targets[0], value))

    def _annotated(self, node: ast.AnnAssign) -> ast.stmt | None:
        if not isinstance(node.target, ast.Name):
            raise unsupported(node.target)
        if node.value is None:
            return ast.Pass()
        value = self._value(node.value)
        kept = self._hook("kept", node, value) if _constant(node.annotation) else self._bound(node, node.target, value)
        return ast.Assign([self._target(node.target)], kept)

    def _augmented(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            raise unsupported(node.target)
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        value = self._hook("operated", node, read, self._value(node.value))
        return ast.Assign([self._target(node.target)], self._bound(node, node.target, value))

    def _bound(self, node: ast.AST, target: ast.expr, value: ast.expr) -> ast.expr:
        if isinstance(target, ast.Tuple | ast.List):
            return self._hook("unpacked", target, value)
        kept = isinstance(target, ast.Name) and target.id in self._kept
        return self._hook("kept" if kept else "bound", node, value)

    def _target(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Tuple | ast.List):
            return ast.copy_location(ast.Tuple([self._target(element) for element in node.elts], ast.Store()), node)
        if not isinstance(node, ast.Name):
            raise unsupported(node)
        return node

    def _expression_statement(self, node: ast.Expr) -> ast.stmt:
        return node if isinstance(node.value, ast.Constant) else ast.Expr(self._value(node.value))

    def _asserted(self, node: ast.Assert) -> ast.stmt:
        message = ast.Constant("") if node.msg is None else self._value(node.msg)
        return ast.Expr(self._hook("asserted", node, self._value(node.test), message))

    def _if(self, node: ast.If) -> ast.stmt:
        test = self._hook("decides", node.test, self._value(node.test))
        return ast.If(test, self._body(node.body) or [ast.Pass()], self._body(node.orelse))

    def _for(self, node: ast.For) -> ast.stmt:
        if node.orelse:
            raise unsupported(node, "`else` after a loop")
        if not isinstance(node.target, ast.Name):
            raise unsupported(node.target, "a loop variable that is not a plain name")
        if not isinstance(node.iter, ast.Call):
            raise unsupported(node.iter, "a loop over anything but range, tl.range or tl.static_range")
        items = self._hook("loop", node, self._value(node.iter.func), *self._arguments(node.iter))
        return ast.For(node.target, items, self._body(node.body) or [ast.Pass()], [])

    def _while(self, node: ast.While) -> ast.stmt:
        if node.orelse:
            raise unsupported(node, "`else` after a loop")
        return ast.While(self._hook("goes_on", node.test, self._value(node.test)), self._body(node.body) or [ast.Pass()], [])

    def _return(self, node: ast.Return) -> ast.stmt:
        return ast.Return(None if node.value is None else self._value(node.value))

    # -- expressions

    def _value(self, node: ast.expr) -> ast.expr:
        handler = _EXPRESSIONS.get(type(node))
        try:
            if handler is None:
                raise unsupported(node)
            return ast.copy_location(handler(self, node), node)
        except KernelError as error:
            error.place = error.place or self.source.place(node)
            raise

    def _hook(self, name: str, node: ast.AST, *operands: ast.expr) -> ast.expr:
        self.nodes.append(node)
        called = ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load())
        made = ast.Call(called, [ast.Constant(len(self.nodes) - 1), *operands], [])
        for inner in (called.value, called, made.args[0], made):
            ast.copy_location(inner, node)
        return made

    def _name(self, node: ast.Name) -> ast.expr:
        return node if node.id in self._locals else self._hook("name", node)

    def _items(self, node: ast.Tuple | ast.List) -> ast.expr:
        return ast.Tuple([self._item(element) for element in node.elts], ast.Load())

    def _item(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            return ast.copy_location(ast.Starred(self._hook("starred", node, self._value(node.value)), ast.Load()), node)
        return self._value(node)

    def _binary(self, node: ast.BinOp) -> ast.expr:
        return self._hook("operated", node, self._value(node.left), self._value(node.right))

    def _unary(self, node: ast.UnaryOp) -> ast.expr:
        return self._hook("unary", node, self._value(node.operand))

    def _comparison(self, node: ast.Compare) -> ast.expr:
        return self._hook("compared", node, self._value(node.left), *map(self._value, node.comparators))

    def _boolean(self, node: ast.BoolOp) -> ast.expr:
        """`a and b`: `joined(again, b) if undecided(held(a)) else again`: b is not evaluated where a decides while compiling."""
        first, *others = node.values
        made = self._value(first)
        for other in others:
            kept, again = self._held(node, made)
            made = ast.IfExp(
                self._hook("undecided", node, kept), self._hook("joined", node, again, self._value(other)), again,
            )
        return made

    def _conditional(self, node: ast.IfExp) -> ast.expr:
        test, again = self._held(node, self._value(node.test))
        chosen = ast.IfExp(self._hook("decides", node.test, test), self._value(node.body), self._value(node.orelse))
        return self._hook("chosen", node, chosen, again)

    def _held(self, node: ast.expr, value: ast.expr) -> tuple[ast.expr, ast.expr]:
        """A value where it is computed, and where it is used again; Python refuses `:=` in what a comprehension goes over."""
        kept = self._hook("held", node, value)
        return kept, self._hook("held_before", node, ast.Constant(len(self.nodes) - 1))

    def _subscript(self, node: ast.Subscript) -> ast.expr:
        return self._hook("picked", node, self._value(node.value), self._index(node.slice))

    def _index(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Slice):
            parts = [ast.Constant(None) if part is None else self._value(part) for part in (node.lower, node.upper, node.step)]
            return ast.copy_location(self._hook("sliced", node, *parts), node)
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self._index(element) for element in node.elts], ast.Load()), node)
        return self._value(node)

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        return self._hook("attribute", node, self._value(node.value))

    def _formatted(self, node: ast.JoinedStr) -> ast.expr:
        return ast.JoinedStr([self._part(part) for part in node.values])

    def _part(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.FormattedValue):
            return node
        spec = [] if node.format_spec is None else [self._part(part) for part in node.format_spec.values]  # type: ignore[attr-defined]
        item = self._hook("formatted", node, self._value(node.value), ast.JoinedStr(spec))
        return ast.copy_location(ast.FormattedValue(item, -1, None), node)

    def _comprehension(self, node: ast.ListComp) -> ast.expr:
        if len(node.generators) != 1 or node.generators[0].is_async:
            raise unsupported(node, "a comprehension with several `for`")
        clause = node.generators[0]
        items = self._hook("over", clause.iter, self._value(clause.iter))
        around, self._locals = self._locals, self._locals | _stored(ast.walk(clause.target))
        tests = [self._hook("certain", test, self._value(test)) for test in clause.ifs]
        made = ast.ListComp(self._value(node.elt), [ast.comprehension(self._target(clause.target), items, tests, 0)])
        self._locals = around
        return self._hook("collected", node, ast.copy_location(made, node))

    def _walrus(self, node: ast.NamedExpr) -> ast.expr:
        return ast.NamedExpr(node.target, self._hook("bound", node, self._value(node.value)))

    def _call(self, node: ast.Call) -> ast.expr:
        if self._is_left(node.func):
            keywords = [ast.keyword(keyword.arg, self._value(keyword.value)) for keyword in node.keywords]
            return ast.Call(node.func, [self._item(argument) for argument in node.args], keywords)
        return self._hook("call", node, self._value(node.func), *self._arguments(node))

    def _arguments(self, node: ast.Call) -> tuple[ast.expr, ast.expr]:
        for keyword in node.keywords:
            if keyword.arg is None:
                raise unsupported(keyword, "`**` in a call")
        args = ast.Tuple([self._item(argument) for argument in node.args], ast.Load())
        names: list[ast.expr | None] = [ast.Constant(keyword.arg) for keyword in node.keywords]
        keywords = ast.Dict(names, [self._value(keyword.value) for keyword in node.keywords])
        return args, keywords

    def _is_left(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return function.id in _LEFT and function.id not in self._locals
        return isinstance(function, ast.Attribute) and function.attr in _STOPS


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _constant(annotation: ast.expr) -> bool:
    return "constexpr" in ast.unparse(annotation)


_STATEMENTS: dict[type[ast.stmt], Any] = {
    ast.Assign: KernelRewriter._assign, ast.AnnAssign: KernelRewriter._annotated, ast.AugAssign: KernelRewriter._augmented,
    ast.Expr: KernelRewriter._expression_statement, ast.Assert: KernelRewriter._asserted, ast.If: KernelRewriter._if,
    ast.For: KernelRewriter._for, ast.While: KernelRewriter._while, ast.Return: KernelRewriter._return,
    ast.Pass: lambda rewriter, node: node, ast.Import: lambda rewriter, node: node, ast.ImportFrom: lambda rewriter, node: node,
}
_EXPRESSIONS: dict[type[ast.expr], Any] = {
    ast.Constant: lambda rewriter, node: node, ast.Name: KernelRewriter._name, ast.Tuple: KernelRewriter._items,
    ast.List: KernelRewriter._items, ast.BinOp: KernelRewriter._binary, ast.UnaryOp: KernelRewriter._unary,
    ast.Compare: KernelRewriter._comparison, ast.BoolOp: KernelRewriter._boolean, ast.IfExp: KernelRewriter._conditional,
    ast.Subscript: KernelRewriter._subscript, ast.Attribute: KernelRewriter._attribute, ast.JoinedStr: KernelRewriter._formatted,
    ast.ListComp: KernelRewriter._comprehension, ast.NamedExpr: KernelRewriter._walrus, ast.Call: KernelRewriter._call,
}
