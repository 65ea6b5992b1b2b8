"""What the operations of a rewritten kernel do: the front end's meaning of each, carried out at once."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from functools import lru_cache
from traceback import walk_tb
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import tilefw.language as tl
from tilefw.api.errors import CompileError, KernelError, Place
from tilefw.debug.program import EagerProgram
from tilefw.debug.rewritten import HOOKS, KernelRewriter
from tilefw.frontend.activation import Activation
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins import MEANINGS
from tilefw.frontend.casts import to_value
from tilefw.frontend.expressions import as_tuple, truth_of
from tilefw.frontend.loops import is_range, static_items
from tilefw.frontend.source import KernelSource
from tilefw.frontend.statements import Statements
from tilefw.frontend.values import RuntimeValue, describe, is_number, named, transform
from tilefw.language.constants import unwrap


class EagerVisitor(Statements):
    """The front end's visitor over values that are known; calls of jit functions run their code."""

    def __init__(self, frame: Activation, program: EagerProgram) -> None:
        super().__init__(frame)
        self.program = program

    def invoke(self, node: Any, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        return self.program.presented(super().invoke(node, function, args, keywords))

    def inline(
        self, node: ast.Call, kernel: Any, args: list[Any], keywords: dict[str, Any], builder: Builder | None = None
    ) -> Any:
        if builder is not None:  # a combine function, which has no one element to run on
            return Statements(self.frame).inline(node, kernel, args, keywords, builder)
        bound = self.bound_arguments(node, kernel, args, keywords)
        return run_function(Activation(kernel, self.frame.b, self.frame, node), self.program, bound)


def run_function(activation: Activation, program: EagerProgram, values: dict[str, Any]) -> Any:
    """Run a jit function's own code on values; gives what it returns."""
    code, nodes = _code_of(activation.source)
    visitor = EagerVisitor(activation, program)
    names = {**activation.kernel.fn.__globals__, HOOKS: KernelHooks(nodes, visitor)}
    outer, program.visitor = program.visitor, visitor
    try:
        return FunctionType(code, names)(**values)
    except NameError as error:  # an unset local, in a comprehension too
        raise _without_value(error, activation) from error
    finally:
        program.visitor = outer


@lru_cache(maxsize=256)
def _code_of(source: KernelSource) -> tuple[CodeType, list[ast.AST]]:
    rewriter = KernelRewriter(source)
    module = compile(rewriter.function(), source.file, "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType)), rewriter.nodes


def _without_value(error: NameError, activation: Activation) -> CompileError:
    """The error for a name that nothing has given a value on the way here; `error` comes from the last line that ran."""
    source = activation.source
    line = max((line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == source.file), default=0)
    place = Place(source.file, line, text=source.line(line), function=source.name)
    name = str(error).split("'")[1]
    return CompileError(f"`{name}` has no value here", "TFW0104", place, help="give it a value before, of the same type")


class KernelHooks:
    """What a rewritten kernel calls, by the names that `KernelRewriter` writes."""

    def __init__(self, nodes: list[ast.AST], visitor: EagerVisitor) -> None:
        self._nodes = nodes
        self._visitor = visitor
        self._frame = visitor.frame
        self._program = visitor.program
        self._held: dict[int, Any] = {}

    def _at(self, number: int, act: Callable[[Any], Any]) -> Any:
        """What `act` makes of a node, as the kernel's names have it; errors stand at the node."""
        node: Any = self._nodes[number]
        try:
            self._frame.at(node)
            return self._program.presented(act(node))
        except KernelError as error:
            error.place = error.place or self._frame.place(node)
            raise

    def name(self, number: int) -> Any:
        return self._at(number, self._visitor.name)

    def operated(self, number: int, left: Any, right: Any) -> Any:
        return self._at(number, lambda node: self._visitor.operate(node, node.op, left, right))

    def unary(self, number: int, value: Any) -> Any:
        return self._at(number, lambda node: self._visitor.unary_of(node, value))

    def compared(self, number: int, *values: Any) -> Any:
        def compare(node: ast.Compare) -> Any:
            links = zip(node.ops, values, values[1:], strict=False)
            found = (self._visitor.compare(node, op, left, right) for op, left, right in links)
            return next(found) if len(node.ops) == 1 else self._visitor.all_or_any(node, "and", found)

        return self._at(number, compare)

    def held(self, number: int, value: Any) -> Any:
        """A value, which `held_before` gives once more."""
        self._held[number] = value
        return value

    def held_before(self, number: int, held: int) -> Any:
        return self._held.pop(held)

    def undecided(self, number: int, value: Any) -> bool:
        """Whether `and` or `or` looks at its next operand."""
        node: Any = self._nodes[number]
        return isinstance(value, RuntimeValue) or bool(value) == isinstance(node.op, ast.And)

    def joined(self, number: int, left: Any, right: Any) -> Any:
        def join(node: ast.BoolOp) -> Any:
            return self._visitor.all_or_any(node, "and" if isinstance(node.op, ast.And) else "or", iter((left, right)))

        return self._at(number, join)

    def decides(self, number: int, value: Any) -> bool:
        """A condition that the program branches on."""
        if isinstance(value, RuntimeValue):
            return self._at(number, lambda node: self._program.decided(value))
        return self._at(number, lambda node: truth_of(value))

    def certain(self, number: int, value: Any) -> bool:
        return self._at(number, lambda node: truth_of(value))

    def goes_on(self, number: int, value: Any) -> bool:
        """The condition of a `while`, asked before each round."""
        condition = value.condition if isinstance(value, tl.condition) else value
        going = self.decides(number, condition)
        if going and not isinstance(condition, RuntimeValue):
            raise CompileError(
                "this loop never ends: its condition is true at compile time", "TFW0118",
                self._frame.place(self._nodes[number]),
            )
        if going:
            self._at(number, lambda node: self._program.went_round())
        return going

    def chosen(self, number: int, value: Any, test: Any) -> Any:
        return self._at(number, lambda node: self._scalars(value) if isinstance(test, RuntimeValue) else value)

    def bound(self, number: int, value: Any) -> Any:
        """What a name is given: numbers become run-time scalars."""
        found = self._at(number, lambda node: self._scalars(unwrap(value)))
        self._program.forget()
        return found

    def kept(self, number: int, value: Any) -> Any:
        return unwrap(value)

    def _scalars(self, value: Any) -> Any:
        return transform(value, lambda leaf: to_value(self._frame.b, leaf) if is_number(leaf) else leaf)

    def unpacked(self, number: int, value: Any) -> Any:
        def unpack(node: ast.Tuple) -> Any:
            if not isinstance(value, tuple):
                raise CompileError(f"{named(value)} cannot be unpacked", "TFW0116", note="only tuples can")
            if len(value) != len(node.elts):
                raise CompileError(f"{len(value)} values cannot be unpacked into {len(node.elts)} names", "TFW0116")
            return self._scalars(value)

        return self._at(number, unpack)

    def starred(self, number: int, value: Any) -> tuple[Any, ...]:
        def items(node: ast.AST) -> tuple[Any, ...]:
            if not isinstance(value, tuple):
                raise CompileError(f"`*` unpacks tuples, not {describe(value)}", "TFW0116")
            return value

        return self._at(number, items)

    def picked(self, number: int, value: Any, index: Any) -> Any:
        return self._at(number, lambda node: self._visitor.picked(node, value, index))

    def sliced(self, number: int, *parts: Any) -> slice:
        return slice(*parts)

    def attribute(self, number: int, value: Any) -> Any:
        return self._at(number, lambda node: self._visitor.attribute_of(node, value))

    def formatted(self, number: int, value: Any, spec: str) -> Any:
        return self._at(number, lambda node: self._visitor.formatted_item(node, value, spec))

    def over(self, number: int, items: Any) -> Any:
        found = as_tuple(items) if isinstance(items, builtins.range) else items
        if not isinstance(found, tuple):
            place = self._frame.place(self._nodes[number])
            raise CompileError(f"a comprehension goes over a tuple, not {describe(items)}", "TFW0116", place)
        return found

    def collected(self, number: int, items: list[Any]) -> tuple[Any, ...]:
        return tuple(items)

    def call(self, number: int, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        def invoke(node: ast.Call) -> Any:
            called = unwrap(function)
            if called is tl.static_assert:
                return self._static_assertion(node, *args, **keywords)
            return self._visitor.invoke(node, called, list(args), keywords)

        return self._at(number, invoke)

    def _static_assertion(self, node: ast.Call, condition: Any, msg: Any = None) -> None:
        if isinstance(condition, RuntimeValue):
            raise CompileError("this assertion depends on run-time values, and must be known at compile time", "TFW0106")
        if not condition:
            raise CompileError(f"static assertion failed{'' if msg is None else f': {msg}'}", "TFW0108")

    def asserted(self, number: int, condition: Any, message: Any) -> None:
        def check(node: ast.Assert) -> None:
            known = not isinstance(condition, RuntimeValue)
            if not known or (not condition and self._program.branched):
                MEANINGS["device_assert"](self._frame.b, bool(condition) if known else condition, message, None)
            elif not condition:
                raise CompileError(f"assertion failed{f': {message}' if message else ''}", "TFW0108", self._frame.place(node.test))

        self._at(number, check)

    def loop(self, number: int, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Iterator[Any]:
        """The values of a loop's variable: scalars of a run-time loop, numbers of one that is unrolled."""
        def head(node: ast.For) -> Any:
            return self._visitor.head_of(node, function, list(args), keywords)

        found = self._at(number, head)
        if not is_range(found):
            return iter(self._at(number, lambda node: tuple(static_items(found))))
        start, end, step, mirrored = self._at(number, lambda node: self._visitor.bounds(node, found))
        # With their signs, whatever the type: so loops count.
        first, last, by = (int(np.ravel(self._program.value(bound.ssa).x)[0]) for bound in (start, end, step))
        if by <= 0:
            raise CompileError(f"a loop steps by {by}; steps are positive", "TFW0212", self._frame.place(self._nodes[number]))
        rounds = builtins.range(first, last, by)

        def variable(index: int) -> Any:
            return self._at(number, lambda node: to_scalar(self._frame.b, last - index + first if mirrored else index, start))

        return map(variable, rounds)


def to_scalar(b: Builder, number: int, like: RuntimeValue) -> RuntimeValue:
    """A number as a scalar of the type of another one."""
    return b.constant(number, like.dtype)
