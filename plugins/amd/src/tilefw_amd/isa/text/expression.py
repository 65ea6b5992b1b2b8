"""Numbers and expressions of assembler text: LLVM's operators, 64-bit arithmetic, symbols that may be known only later.

Precedence is GNU's, as LLVM's AsmParser has it for ELF targets (`AsmParser.cpp`, getGNUBinOpPrecedence).
"""

from __future__ import annotations

import functools
import operator as operator_module
import re
from collections.abc import Callable
from dataclasses import dataclass

from tilefw.api.integers import ceil_div, round_up

Resolve = Callable[[str], int]
"""The value of a symbol; raises LookupError for one that is not known."""


@dataclass(frozen=True, slots=True)
class SymbolExpression:
    """A name, with the variant that `@rel32@lo` and the like ask for; "." is the place of the statement."""

    name: str
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class FunctionExpression:
    """`max(a, b)` and the other functions that llc writes about resources of kernels (LLVM, `AMDGPUMCExpr.cpp`)."""

    name: str
    arguments: tuple[Expression, ...]


Expression = int | SymbolExpression | Unary | Binary | FunctionExpression

BINARY = {
    "||": 1, "&&": 2,
    "==": 3, "!=": 3, "<>": 3, "<": 3, "<=": 3, ">": 3, ">=": 3,
    "+": 4, "-": 4,
    "|": 5, "^": 5, "&": 5, "!": 5,
    "*": 6, "/": 6, "%": 6, "<<": 6, ">>": 6,
}  # fmt: skip
UNARY = frozenset("-+~!")
DEPTH = 64  # of parentheses and signs

_SIGN = 1 << 63
_ALL = (1 << 64) - 1


def wrap(value: int) -> int:
    """`value` in 64 bits, two's complement."""
    return ((value + _SIGN) & _ALL) - _SIGN


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise ZeroDivisionError
    return ceil_div(a, b) if (a < 0) != (b < 0) else a // b


def _shift(a: int, b: int) -> int:
    return a << b if 0 <= b < 64 else 0


_APPLY: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a) or bool(b)), "&&": lambda a, b: int(bool(a) and bool(b)),
    # A comparison that holds is -1 (all bits), as in GNU as; LLVM gives 1 to the logical operators only.
    "==": lambda a, b: -(a == b), "!=": lambda a, b: -(a != b), "<>": lambda a, b: -(a != b),
    "<": lambda a, b: -(a < b), "<=": lambda a, b: -(a <= b), ">": lambda a, b: -(a > b), ">=": lambda a, b: -(a >= b),
    "+": lambda a, b: a + b, "-": lambda a, b: a - b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "!": lambda a, b: a | ~b,
    "*": lambda a, b: a * b, "/": _quotient, "%": lambda a, b: a - _quotient(a, b) * b,
    "<<": _shift, ">>": lambda a, b: (a & _ALL) >> b if 0 <= b < 64 else 0,
}  # fmt: skip


def _total_vgprs(accumulators: int, vectors: int) -> int:
    """Both files of a lane share its registers; accumulators begin at a multiple of 4."""
    return round_up(vectors, 4) + accumulators if accumulators else vectors


def _alignto(value: int, step: int) -> int:
    return round_up(value, step)


FUNCTIONS: dict[str, Callable[..., int]] = {
    "max": max,
    "or": lambda *values: functools.reduce(operator_module.or_, values),
    "alignto": _alignto,
    "totalnumvgprs": _total_vgprs,
    # With architected flat scratch, six registers are always taken (AMDGPUBaseInfo.cpp, getNumExtraSGPRs).
    "extrasgprs": lambda vcc, flat_scratch, xnack: 6,
}


def evaluate(expression: Expression, resolve: Resolve) -> int:
    """The value, in 64 bits. Raises LookupError for an unknown symbol, ZeroDivisionError for x/0."""
    match expression:
        case int():
            return wrap(expression)
        case SymbolExpression():
            return wrap(resolve(expression.name))
        case Unary(operator, operand):
            value = evaluate(operand, resolve)
            return wrap({"-": -value, "+": value, "~": ~value, "!": int(not value)}[operator])
        case Binary(operator, left, right):
            return wrap(_APPLY[operator](evaluate(left, resolve), evaluate(right, resolve)))
        case FunctionExpression(name, arguments):
            return wrap(FUNCTIONS[name](*(evaluate(a, resolve) for a in arguments)))


def fold(operator: str, left: Expression, right: Expression) -> Expression:
    """`left operator right`, computed now where both are numbers."""
    if isinstance(left, int) and isinstance(right, int):
        return wrap(_APPLY[operator](left, right))
    return Binary(operator, left, right)


def fold_unary(operator: str, operand: Expression) -> Expression:
    """`operator operand`, computed now where it is a number."""
    if isinstance(operand, int):
        return evaluate(Unary(operator, operand), dict[str, int]().__getitem__)
    return Unary(operator, operand)


def symbols(expression: Expression) -> list[SymbolExpression]:
    """The symbols of an expression, in the order of the text."""
    match expression:
        case SymbolExpression():
            return [expression]
        case Unary(_, operand):
            return symbols(operand)
        case Binary(_, left, right):
            return symbols(left) + symbols(right)
        case FunctionExpression(_, arguments):
            return [symbol for argument in arguments for symbol in symbols(argument)]
    return []


_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+$|0[bB][01]+$|[1-9]\d*$|0[0-7]*$")


def integer(digits: str) -> int | None:
    """An unsigned integer: decimal, hexadecimal, binary or, after a zero, octal; None where it has over 64 bits or is none."""
    if not _INTEGER.match(digits) or len(digits) > 66:
        return None
    prefix = digits[:2].lower()
    base = 16 if prefix == "0x" else 2 if prefix == "0b" else 8 if digits[0] == "0" else 10
    value = int(digits, base)
    return value if value <= _ALL else None


def renamed(expression: Expression, old: str, new: str) -> Expression:
    """The expression with one symbol under another name."""
    match expression:
        case SymbolExpression(name, variant):
            return SymbolExpression(new, variant) if name == old else expression
        case Unary(operator, operand):
            return Unary(operator, renamed(operand, old, new))
        case Binary(operator, left, right):
            return Binary(operator, renamed(left, old, new), renamed(right, old, new))
        case FunctionExpression(name, arguments):
            return FunctionExpression(name, tuple(renamed(a, old, new) for a in arguments))
    return expression
