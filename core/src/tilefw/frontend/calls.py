"""Calls in a kernel: functions of the language, jit functions (inlined), compile-time functions, builtins of Python."""

from __future__ import annotations

import ast
import inspect
import math
import types
from collections.abc import Callable
from typing import Any

import tilefw.language as tl
from tilefw.api.errors import CompileError
from tilefw.frontend import arithmetic
from tilefw.frontend.activation import Activation
from tilefw.frontend.arguments import bind, parameters_of
from tilefw.frontend.attributes import BoundMethod, HostFunction, LogicalMethod, attribute
from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins import MEANINGS
from tilefw.frontend.casts import to_value
from tilefw.frontend.combine import UserCombine
from tilefw.frontend.constructs import unsupported
from tilefw.frontend.expressions import Expressions, as_tuple, evaluate
from tilefw.frontend.scalar_function import ScalarFunction
from tilefw.frontend.scope import PYTHON_BUILTINS, WrappedFunction, is_builtin, is_constexpr_function, is_jit_function, runs_on_host
from tilefw.frontend.values import CompositeValue, RuntimeValue, describe, is_number, leaves, named
from tilefw.language.aggregates import Aggregate, AggregateType, opened, wrapped
from tilefw.language.constants import unwrap


class Calls(Expressions):
    """The visitor of calls."""

    def call(self, node: ast.Call) -> Any:
        function = unwrap(self.expression(node.func))
        if function is tl.static_assert:
            return self.static_assert(node)
        args, keywords = self._arguments(node)
        self.frame.at(node)
        return self.invoke(node, function, args, keywords)

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                args += self.starred(argument)
            else:
                args.append(self.expression(argument))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise unsupported(keyword, "`**` in a call")
            keywords[keyword.arg] = self.expression(keyword.value)
        return args, keywords

    def invoke(self, node: ast.Call, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """The value of a call whose arguments are known."""
        if isinstance(function, BoundMethod):
            return self.invoke(node, function.function, [function.value, *args], keywords)
        if isinstance(function, LogicalMethod):
            (other,) = bind(f"logical_{function.word}", parameters_of(tl.tensor.logical_and)[1:], args, keywords).values()
            return arithmetic.logical(self.frame.b, function.word, function.value, to_value(self.frame.b, other))
        if isinstance(function, HostFunction):
            return self._on_host(node, function.function, args, keywords)
        if isinstance(function, AggregateType) or runs_on_host(function):
            return self._on_host(node, function, args, keywords)
        if is_jit_function(function):
            return self.inline(node, function, args, keywords)
        if is_builtin(function):
            try:
                return self._language(node, function, args, keywords)
            except CompileError as error:
                if error.code == "TFW0106" and error.place is None:
                    self._name_culprits(node, error)
                raise
        if isinstance(function, type) and function.__module__.startswith("tilefw.language"):
            return unwrap(evaluate(function, *args, **keywords))
        if any(function is builtin for builtin in PYTHON_BUILTINS.values()):
            return self._python(node, function, args, keywords)
        return _at_compile_time(function, args, keywords)

    def _language(self, node: ast.Call, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        name = function.__tilefw_builtin__
        bound = bind(f"tl.{name}", parameters_of(function), args, keywords)
        if function is tl.static_print:
            return _print(bound)
        if is_jit_function(kernel := bound.get("combine_fn")):
            bound["combine_fn"] = UserCombine(kernel, lambda b, values: self.inline(node, kernel, values, {}, b))
        if is_jit_function(mapped := bound.get("scalar_fn")):
            bound["scalar_fn"] = ScalarFunction(mapped, lambda b, values: self.inline(node, mapped, values, {}, b))
        return MEANINGS[name](self.frame.b, *bound.values())

    def _on_host(self, node: ast.Call, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """A call of an aggregate class or of its Python functions: they run now, and know compile-time values as constexprs.

        Functions of the language that they call with `_semantic=_semantic`, as Triton's do, are built here.
        """
        keywords = {name: wrapped(value) for name, value in keywords.items()}
        code = function.__init__ if isinstance(function, AggregateType) else function
        if "_semantic" in inspect.signature(code).parameters:
            def build(called: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
                return self.invoke(node, called, list(opened(given)), {name: opened(value) for name, value in named.items()})

            keywords["_semantic"] = build
        return opened(evaluate(function, *[wrapped(value) for value in args], **keywords))

    def _name_culprits(self, node: ast.Call, error: CompileError) -> None:
        """Say which scalars of a call were made run-time values, and where."""
        scope = self.frame.scope
        for name in dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name)):
            value = scope.locals.get(name)
            if isinstance(value, RuntimeValue) and not value.is_tile and not value.dtype.is_ptr():
                error.place = self.frame.place(node)
                error.note = f"`{name}` is a run-time {value.dtype} since line {scope.lines[name]}; {error.note}"

    def inline(
        self, node: ast.Call, kernel: Any, args: list[Any], keywords: dict[str, Any], builder: Builder | None = None
    ) -> Any:
        """The body of a jit function at this place, or where `builder` stands; its value is what it returns."""
        bound = self.bound_arguments(node, kernel, args, keywords)
        activation = Activation(kernel, builder or self.frame.b, self.frame, node)
        activation.scope.locals = bound
        activation.scope.lines = dict.fromkeys(bound, activation.source.tree.lineno)
        result = type(self)(activation).body()
        self.frame.at(node)
        return result

    def bound_arguments(self, node: ast.Call, kernel: Any, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """The values of the parameters of a jit function that is called."""
        for parameter in kernel.signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                raise unsupported(node, f"`**{parameter.name}` in the parameters of a jit function")
        bound = bind(kernel.__name__, tuple(kernel.signature.parameters.values()), args, keywords)
        return {name: unwrap(value) for name, value in bound.items()}

    def body(self) -> Any:
        raise NotImplementedError

    def static_assert(self, node: ast.Call) -> None:
        """`tl.static_assert(condition, message)`: the message is evaluated only when the condition fails."""
        if not 1 <= len(node.args) <= 2 or any(k.arg != "msg" for k in node.keywords):
            raise CompileError("tl.static_assert takes a condition and a message", "TFW0107")
        self._assert(node.args[0], node.args[1] if len(node.args) == 2 else next((k.value for k in node.keywords), None))

    def _assert(self, test: ast.expr, message: ast.expr | None) -> None:
        condition = self.expression(test)
        if isinstance(condition, RuntimeValue):
            raise CompileError(
                "this assertion depends on run-time values, and must be known at compile time",
                "TFW0106",
                self.frame.place(test),
                help="assert on tl.constexpr parameters, shapes and dtypes",
            )
        if not condition:
            text = "" if message is None else f": {self.expression(message)}"
            raise CompileError(f"static assertion failed{text}", "TFW0108", self.frame.place(test))

    def _python(self, node: ast.Call, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        runtime = any(isinstance(leaf, RuntimeValue) for argument in (*args, *keywords.values()) for leaf in leaves(argument))
        if function is print:
            return self._language(node, tl.device_print, args, keywords)
        if function in (getattr, hasattr):
            return self._getattr(function, args)
        if function is isinstance and len(args) == 2:
            return _is_instance(*args)
        if function in (min, max) and runtime:
            return self._extremum("minimum" if function is min else "maximum", args, keywords)
        if function in (float, int, bool) and runtime:
            raise CompileError(
                f"{function.__name__}() works at compile time, but got {named(args[0])}",
                "TFW0106",
                help={float: "use `x.to(tl.float32)`", int: "use `x.to(tl.int32)`", bool: "use `x != 0`"}[function],
            )
        if function is len and args and isinstance(args[0], RuntimeValue):
            raise CompileError("a tensor has no len()", "TFW0201", help="use `x.shape[0]`")
        if function in (list, tuple) and len(args) == 1 and isinstance(args[0], range):
            return as_tuple(args[0])
        result = evaluate(function, *args, **keywords)
        return tuple(result) if isinstance(result, list) else result

    def _getattr(self, function: Any, args: list[Any]) -> Any:
        if not 2 <= len(args) <= 3 or not isinstance(args[1], str):
            raise CompileError(f"{function.__name__}() takes a value and a name", "TFW0107")
        try:
            found = unwrap(attribute(self.frame.b, args[0], args[1]))
        except CompileError as error:
            if error.code != "TFW0117" or (function is getattr and len(args) == 2):
                raise
            return False if function is hasattr else args[2]
        return True if function is hasattr else found

    def _extremum(self, name: str, args: list[Any], keywords: dict[str, Any]) -> RuntimeValue:
        """`min` and `max` of Python with run-time arguments are chains of tl.minimum and tl.maximum."""
        propagate = keywords.pop("propagate_nan", tl.PropagateNan.NONE)
        if len(args) < 2 or keywords:
            raise CompileError(
                f"{name[:3]}() of run-time values takes two or more of them",
                "TFW0107",
                help=f"to reduce a tile use tl.{name[:3]}" if len(args) == 1 else None,
            )
        result = args[0]
        for other in args[1:]:
            if is_number(result) and is_number(other):
                result = (min if name == "minimum" else max)(result, other)
            else:
                result = MEANINGS[name](self.frame.b, result, other, propagate)
        return result


def _is_instance(value: Any, classes: Any) -> bool:
    """`isinstance`, where whatever is known at compile time is a constexpr."""
    kinds = list(leaves(classes))
    if tl.constexpr in kinds and not isinstance(value, RuntimeValue | CompositeValue | tuple):
        return True
    return evaluate(isinstance, value, tuple(kinds))


def _at_compile_time(function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A call that only Python makes: functions of `math`, methods of compile-time values, @constexpr_function."""
    if isinstance(function, WrappedFunction):
        _refuse_runtime(function.function, args, keywords)
        named_args = {name: _as_given(value) for name, value in keywords.items()}
        return opened(evaluate(function.function, *map(_as_given, args), **named_args))
    if not _runs_at_compile_time(function):
        if not callable(function):
            raise CompileError(f"{describe(function)} cannot be called", "TFW0201")
        name = getattr(function, "__name__", repr(function))
        ways = "@tilefw.jit (to run on the device) or @tilefw.constexpr_function (to run while compiling)"
        raise CompileError(
            f"a kernel cannot call `{name}`, a plain Python function",
            "TFW0105",
            help=f"decorate it with {ways}",
        )
    if _is_named_tuple(function):
        return evaluate(function, *args, **keywords)
    _refuse_runtime(function, args, keywords)
    return unwrap(evaluate(function, *args, **keywords))


def _as_given(value: Any) -> Any:
    """What a plain function gets: numbers and words as constexprs, which is how Triton hands them on, and types as they are."""
    return value if isinstance(value, tl.dtype) else wrapped(value)


def _refuse_runtime(function: Any, args: list[Any], keywords: dict[str, Any]) -> None:
    for argument in (*args, *keywords.values()):
        if not isinstance(argument, Aggregate) and any(isinstance(leaf, RuntimeValue) for leaf in leaves(argument)):
            raise CompileError(
                f"`{getattr(function, '__name__', function)}` runs at compile time, but got {named(argument)}",
                "TFW0106",
                help="use the function of tl, e.g. tl.exp or tl.cdiv",
            )


def _runs_at_compile_time(function: Any) -> bool:
    if is_constexpr_function(function):
        return True
    if isinstance(function, types.BuiltinFunctionType | types.MethodType):
        owner = function.__self__
        return owner is math or isinstance(owner, str | tuple | int | float | tl.dtype)
    return _is_named_tuple(function)


def _is_named_tuple(function: Any) -> bool:
    return isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields")


def _shown(value: RuntimeValue | CompositeValue | tuple[Any, ...]) -> str:
    """What static_print writes of a value: of a tensor its type as Triton writes it, `int32[constexpr[128]]`."""
    if not isinstance(value, RuntimeValue):
        return str(value)
    return f"{value.dtype}[{', '.join(f'constexpr[{extent}]' for extent in value.shape)}]"


def _print(bound: dict[str, Any]) -> None:
    values = [_shown(value) if isinstance(value, RuntimeValue | CompositeValue | tuple) else value for value in bound["values"]]
    options: dict[str, Callable[..., Any] | Any] = {name: bound[name] for name in ("sep", "end", "file", "flush")}
    evaluate(print, *values, **options)
