"""Expressions of a kernel: folded in Python when all is known at compile time, else built as IR."""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

from xdsl.ir import Block

import tilefw.language as tl
from tilefw.api.errors import CompileError, KernelError
from tilefw.api.signals import from_signal_handler
from tilefw.frontend import arithmetic
from tilefw.frontend.activation import Activation
from tilefw.frontend.attributes import attribute
from tilefw.frontend.builtins.shape import inserted_axis
from tilefw.frontend.casts import cast, to_value
from tilefw.frontend.constructs import unsupported
from tilefw.frontend.values import CompositeValue, RuntimeValue, describe, flatten, is_number, named, rebuild, same_type, transform
from tilefw.language.aggregates import METHOD_NAMES, MIRRORED, Aggregate, defines
from tilefw.language.constants import unwrap

_BINARY: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul), ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod), ast.Pow: ("**", operator.pow),
    ast.LShift: ("<<", operator.lshift), ast.RShift: (">>", operator.rshift), ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_), ast.BitXor: ("^", operator.xor), ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
}
# A compile-time integer of more bits than this is a mistake (`2 ** 10 ** 9`), not a size; nor is a longer tuple or string.
_LARGEST_EXPONENT = 4096
LONGEST_SEQUENCE = 65536


class Expressions:
    """The visitor of expressions; `expression` is its entry. Statements and calls are mixed in beside it."""

    def __init__(self, frame: Activation) -> None:
        self.frame = frame

    def expression(self, node: ast.expr) -> Any:
        """The value of an expression: a run-time value, a compile-time Python object, or a tuple of both."""
        handler = _HANDLERS.get(type(node))
        try:
            if handler is None:
                raise unsupported(node)
            return handler(self, node)
        except KernelError as error:
            if error.place is None:
                error.place = self.frame.place(node)
            raise

    def call(self, node: ast.Call) -> Any:
        raise NotImplementedError

    def invoke(self, node: Any, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        raise NotImplementedError

    def constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bytes | complex) or node.value is Ellipsis:
            raise unsupported(node, f"the constant {node.value!r}")
        return node.value

    def name(self, node: ast.Name) -> Any:
        return self.frame.scope.read(node.id)

    def items(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        """A tuple; lists are tuples too, since kernels cannot change them."""
        found: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                found += self.starred(element)
            else:
                found.append(self.expression(element))
        return tuple(found)

    def starred(self, node: ast.Starred) -> tuple[Any, ...]:
        value = self.expression(node.value)
        if not isinstance(value, tuple):
            raise CompileError(f"`*` unpacks tuples, not {describe(value)}", "TFW0116", self.frame.place(node))
        return value

    def binary(self, node: ast.BinOp) -> Any:
        left, right = self.expression(node.left), self.expression(node.right)
        return self.operate(node, node.op, left, right)

    def operate(self, node: ast.AST, op: ast.AST, left: Any, right: Any) -> Any:
        """One binary operator or comparison."""
        if type(op) not in _BINARY:
            raise unsupported(op, f"the operator `{type(op).__name__}`")
        symbol, function = _BINARY[type(op)]
        if isinstance(left, Aggregate) or isinstance(right, Aggregate):
            return self._by_method(node, symbol, left, right)
        if isinstance(left, CompositeValue) or isinstance(right, CompositeValue):
            raise CompileError(f"`{symbol}` does not take {describe(left)} and {describe(right)}", "TFW0201")
        if isinstance(left, RuntimeValue) or isinstance(right, RuntimeValue):
            build = arithmetic.BINARY.get(symbol)
            if build is None:
                raise CompileError(
                    f"`{symbol}` does not take {describe(left)} and {describe(right)}",
                    "TFW0201",
                    help="use tl.exp2, or multiply" if symbol == "**" else None,
                )
            self.frame.at(node)
            return build(self.frame.b, left, right)
        if isinstance(op, ast.Pow) and is_number(right) and abs(right) > _LARGEST_EXPONENT:
            raise CompileError(f"the exponent {right} is too large to compute at compile time", "TFW0114")
        if isinstance(op, ast.LShift) and is_number(right) and right > _LARGEST_EXPONENT:
            raise CompileError(f"the shift by {right} is too large to compute at compile time", "TFW0114")
        if isinstance(op, ast.Mult) and any(isinstance(side, tuple | str) for side in (left, right)):
            count = next((side for side in (left, right) if is_number(side)), 0)
            checked_length(len(left if isinstance(left, tuple | str) else right) * int(count))
        return evaluate(function, left, right)

    def _by_method(self, node: Any, symbol: str, left: Any, right: Any) -> Any:
        """An operator that a method of an aggregate means: that of the left side, else of the right one."""
        name = METHOD_NAMES[symbol]
        reflected = MIRRORED.get(symbol, name if symbol in ("==", "!=") else f"r{name}")
        for owner, method, other in ((left, name, right), (right, reflected, left)):
            if isinstance(owner, Aggregate) and defines(owner, f"__{method}__"):
                return self.invoke(node, attribute(self.frame.b, owner, f"__{method}__"), [other], {})
        raise CompileError(
            f"`{symbol}` does not take {describe(left)} and {describe(right)}", "TFW0201",
            help=f"define `__{name}__` in the aggregate's class",
        )

    def unary(self, node: ast.UnaryOp) -> Any:
        return self.unary_of(node, self.expression(node.operand))

    def unary_of(self, node: ast.UnaryOp, value: Any) -> Any:
        """One unary operator."""
        if not isinstance(value, RuntimeValue):
            return evaluate(_UNARY[type(node.op)], value)
        self.frame.at(node)
        if isinstance(node.op, ast.USub):
            return arithmetic.negate(self.frame.b, value)
        if isinstance(node.op, ast.Invert):
            return arithmetic.invert(self.frame.b, value)
        if isinstance(node.op, ast.Not):
            return arithmetic.invert(self.frame.b, arithmetic.truth(self.frame.b, value, "not"))
        raise CompileError(f"unary + does not take {describe(value)}", "TFW0201", help="leave it out")

    def comparison(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1:
            return self.compare(node, node.ops[0], self.expression(node.left), self.expression(node.comparators[0]))
        return self.all_or_any(node, "and", self._links(node))

    def _links(self, node: ast.Compare) -> Iterator[Any]:
        left = self.expression(node.left)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.expression(right_node)
            yield self.compare(node, op, left, right)
            left = right

    def compare(self, node: ast.Compare, op: ast.cmpop, left: Any, right: Any) -> Any:
        """One comparison."""
        if isinstance(op, ast.Is | ast.IsNot):
            return (left is right) == isinstance(op, ast.Is)
        if isinstance(op, ast.In | ast.NotIn):
            return self._membership(op, left, right)
        if isinstance(left, RuntimeValue) != isinstance(right, RuntimeValue) and None in (left, right):
            raise CompileError("a run-time value cannot be compared with None by `==`", "TFW0201", help="use `is None`")
        whole = isinstance(left, tuple) or isinstance(right, tuple) or left is None or right is None
        if whole and isinstance(op, ast.Eq | ast.NotEq):
            return _equal(left, right) == isinstance(op, ast.Eq)
        return self.operate(node, op, left, right)

    def _membership(self, op: ast.cmpop, left: Any, right: Any) -> bool:
        known = isinstance(right, tuple | str) and not any(isinstance(item, RuntimeValue) for item in right)
        if isinstance(left, RuntimeValue) or not known:
            raise CompileError("`in` needs values known at compile time", "TFW0106", help="compare with == and |")
        return evaluate(operator.contains, right, left) == isinstance(op, ast.In)

    def boolean(self, node: ast.BoolOp) -> Any:
        word = "and" if isinstance(node.op, ast.And) else "or"
        return self.all_or_any(node, word, (self.expression(value) for value in node.values))

    def all_or_any(self, node: ast.AST, word: str, values: Iterator[Any]) -> Any:
        """`and`/`or`: compile-time operands decide or drop out, in order; what is left is computed at run time, all of it."""
        left: list[RuntimeValue] = []
        value: Any = None
        for value in values:
            if isinstance(value, RuntimeValue):
                left.append(value)
            elif bool(value) == (word == "or"):
                return value
        if not left:
            return value
        result = left[-1]
        for operand in reversed(left[:-1]):
            self.frame.at(node)
            result = arithmetic.logical(self.frame.b, word, operand, result)
        return result

    def conditional(self, node: ast.IfExp) -> Any:
        condition = self.expression(node.test)
        if not isinstance(condition, RuntimeValue):
            return self.expression(node.body if truth_of(condition) else node.orelse)
        b = self.frame.b
        self.frame.at(node)
        condition = self.condition(condition)
        blocks, sides = (Block(), Block()), []
        for block, branch in zip(blocks, (node.body, node.orelse), strict=True):
            with b.inside(block):
                value = self.expression(branch)
                self.frame.at(node)
                sides.append(transform(value, lambda leaf: to_value(b, leaf) if is_number(leaf) else leaf))
        left, right = sides
        if not same_type(left, right):
            raise CompileError(
                "Ternary expression with dynamic condition has inconsistent types: "
                f"{describe(left)} and {describe(right)}",
                "TFW0110",
                help="cast one to the other's type",
            )
        return rebuild(left, iter(b.branch(condition, *blocks, list(zip(flatten(left), flatten(right), strict=True)))))

    def condition(self, value: RuntimeValue) -> RuntimeValue:
        """A run-time value as the int1 scalar on which a program branches."""
        if value.numel != 1:
            raise CompileError(
                f"a condition must be a scalar, not {named(value)}",
                "TFW0118",
                note="the program branches as one; its tiles cannot take different ways",
                help="use tl.where, or the mask of tl.load and tl.store",
            )
        if value.is_tile:
            value = self.frame.b.reshape(value, ())
        return cast(self.frame.b, value, tl.int1)

    def subscript(self, node: ast.Subscript) -> Any:
        return self.picked(node, self.expression(node.value), self._index(node.slice))

    def picked(self, node: ast.Subscript, value: Any, index: Any) -> Any:
        """`value[index]`."""
        if isinstance(value, RuntimeValue):
            self.frame.at(node)
            return self._new_axes(value, index if isinstance(index, tuple) else (index,))
        if isinstance(value, Aggregate) and defines(value, "__getitem__"):
            return self.invoke(node, attribute(self.frame.b, value, "__getitem__"), [index], {})
        if any(isinstance(part, RuntimeValue) for part in (index if isinstance(index, tuple) else (index,))):
            raise CompileError("the index of a tuple must be known at compile time", "TFW0106", help="use tl.static_range")
        if isinstance(value, tuple | str):
            return evaluate(operator.getitem, value, index)
        raise CompileError(f"{describe(value)} cannot be indexed", "TFW0201")

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            parts = [None if part is None else self.expression(part) for part in (node.lower, node.upper, node.step)]
            return slice(*parts)
        if isinstance(node, ast.Tuple):
            return tuple(self._index(element) for element in node.elts)
        return self.expression(node)

    def _new_axes(self, value: RuntimeValue, index: tuple[Any, ...]) -> RuntimeValue:
        """`x[:, None]`: None inserts an axis, `:` keeps one."""
        rank, kept = len(value.shape), 0
        for axis, part in enumerate(index):
            if part is None:
                value = inserted_axis(self.frame.b, value, axis)
            elif part == slice(None):
                kept += 1
            else:
                raise CompileError(
                    f"unsupported tensor index: {'a slice' if isinstance(part, slice) else describe(part)}",
                    "TFW0201",
                    note="only `:` and None are allowed: elements of a tile live in different lanes",
                    help="load the part that you need, or select it with tl.where",
                )
        if kept > rank:
            raise CompileError(f"too many indices: the tile has {rank} axes, but {kept} are named", "TFW0202")
        return value

    def attribute(self, node: ast.Attribute) -> Any:
        return self.attribute_of(node, self.expression(node.value))

    def attribute_of(self, node: ast.Attribute, value: Any) -> Any:
        """`value.name`."""
        self.frame.at(node)
        return unwrap(attribute(self.frame.b, value, node.attr))

    def formatted(self, node: ast.JoinedStr) -> str:
        """An f-string of compile-time values; tensors show as their type."""
        parts: list[str] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.expression(part.value)
                spec = "" if part.format_spec is None else self.expression(part.format_spec)
                parts.append(self.formatted_item(part, value, spec))
            else:
                parts.append(self.expression(part))
        return "".join(parts)

    def formatted_item(self, node: ast.FormattedValue, value: Any, spec: str) -> str:
        """`{value!r:spec}` in an f-string."""
        conversion = {115: str, 114: repr, 97: ascii}.get(node.conversion)
        return evaluate(format, conversion(value) if conversion else _shown(value), spec)

    def comprehension(self, node: ast.ListComp) -> tuple[Any, ...]:
        if len(node.generators) != 1 or node.generators[0].is_async:
            raise unsupported(node, "a comprehension with several `for`")
        clause = node.generators[0]
        items = self.expression(clause.iter)
        if isinstance(items, range):
            items = as_tuple(items)
        if not isinstance(items, tuple):
            place = self.frame.place(clause.iter)
            raise CompileError(f"a comprehension goes over a tuple, not {describe(items)}", "TFW0116", place)
        outer, found = dict(self.frame.scope.locals), []
        for item in items:
            self.bind(clause.target, item, keep=True)
            if all(truth_of(self.expression(test)) for test in clause.ifs):
                found.append(self.expression(node.elt))
        self.frame.scope.locals = outer
        return tuple(found)

    def bind(self, target: ast.expr, value: Any, *, keep: bool = False) -> None:
        raise NotImplementedError

    def walrus(self, node: ast.NamedExpr) -> Any:
        self.bind(node.target, self.expression(node.value))
        return self.frame.scope.read(node.target.id)


def checked_length(length: int) -> None:
    if length > LONGEST_SEQUENCE:
        raise CompileError(f"a compile-time sequence of {length} items is too long; the limit is {LONGEST_SEQUENCE}", "TFW0114")


def as_tuple(items: Any) -> Any:
    """A compile-time range as a tuple."""
    checked_length(len(items))
    return tuple(items)


def evaluate(function: Callable[..., Any], *operands: Any, **keywords: Any) -> Any:
    """A compile-time computation; whatever Python raises becomes an error of the kernel, since the user's own code may run."""
    try:
        return function(*operands, **keywords)
    except KernelError:
        raise
    except Exception as error:
        if from_signal_handler(error):
            raise
        raise CompileError(f"this cannot be computed at compile time: {error}", "TFW0114", note=type(error).__name__) from None


def truth_of(value: Any) -> bool:
    """Whether a compile-time condition holds; run-time values are not compile-time conditions."""
    if isinstance(value, RuntimeValue):
        raise CompileError("this condition must be known at compile time", "TFW0106")
    if not isinstance(value, bool | int | None | float | str | tuple):
        raise CompileError(f"{describe(value)} cannot be a condition", "TFW0118")
    return bool(value)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, RuntimeValue) or isinstance(right, RuntimeValue):
        return left is right
    return bool(left == right)


def _shown(value: Any) -> Any:
    return str(value) if isinstance(value, tuple | types.NoneType) else value


_HANDLERS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.Tuple: Expressions.items,
    ast.List: Expressions.items,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.Compare: Expressions.comparison,
    ast.BoolOp: Expressions.boolean,
    ast.IfExp: Expressions.conditional,
    ast.Subscript: Expressions.subscript,
    ast.Attribute: Expressions.attribute,
    ast.JoinedStr: Expressions.formatted,
    ast.ListComp: Expressions.comprehension,
    ast.NamedExpr: Expressions.walrus,
    ast.Call: lambda visitor, node: visitor.call(node),
}
