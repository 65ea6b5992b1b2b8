"""Token by token through one statement: marks, numbers with their operators, names; what operands and directives are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tilefw_amd.isa.text import expression as ex
from tilefw_amd.isa.text.expression import Expression
from tilefw_amd.isa.text.source import SYMBOLS, Fault


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<real>0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+ | (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+(?![\w.]))
    | (?P<integer>\d\w*)
    | (?P<name>[A-Za-z_.$][\w.$]*(?:@\w+)*)
    | (?P<string>"[^"\n]*")
    | (?P<mark><<|>>|<=|>=|==|!=|<>|&&|\|\||[-+*/%&|^~!()\[\]{},:<>=])
    | (?P<bad>\S)
    )""",
    re.VERBOSE,
)


def tokens(text: str) -> list[Token]:
    """The tokens of a statement, and one of kind "end" behind them."""
    found = [Token(m.lastgroup or "", m[m.lastgroup or 0], m.start(m.lastgroup or 0), m.end()) for m in _TOKEN.finditer(text)]
    return [*found, Token("end", "", len(text), len(text) + 1)]


def unresolved(name: str) -> int:
    raise LookupError(name)


class Cursor:
    """A position in a statement, from `start` on. `resolve` knows the values of absolute symbols."""

    def __init__(self, text: str, start: int = 0, resolve: Callable[[str], int] = unresolved) -> None:
        self.tokens = [t for t in tokens(text) if t.start >= start]
        self.at = 0
        self.resolve = resolve

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    @property
    def last(self) -> Token:
        """The token before."""
        return self.tokens[self.at - 1]

    def peek(self, ahead: int) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)].text

    def take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, mark: str) -> bool:
        if self.next.text != mark or self.next.kind == "string":
            return False
        self.at += 1
        return True

    def expect(self, mark: str, what: str) -> Token:
        if self.next.text != mark:
            raise self.fault(f"expected {what}")
        return self.take()

    def fault(self, message: str, help: str | None = None) -> Fault:
        token = self.next
        found = "the end of the line" if token.kind == "end" else repr(token.text)
        return Fault(f"{message}, found {found}", token.start, token.end, help=help)

    def end(self) -> None:
        """Raises Fault where anything is left."""
        if self.next.kind != "end":
            raise self.fault("expected the end of the line")

    def name(self, what: str) -> str:
        """A name, quoted or not."""
        token = self.next
        if token.kind not in ("name", "string"):
            raise self.fault(f"expected {what}")
        return self.take().text.strip('"')

    def string(self, what: str) -> str:
        if self.next.kind != "string":
            raise self.fault(f"expected {what}")
        return self.take().text[1:-1]

    def evaluated(self, expression: Expression) -> Expression:
        """A number where every symbol is known now."""
        try:
            return ex.evaluate(expression, self.resolve)
        except (LookupError, ZeroDivisionError):
            return expression

    def absolute(self) -> int:
        start = self.next.start
        found = self.evaluated(self.expression())
        if not isinstance(found, int):
            names = ", ".join(s.name for s in ex.symbols(found))
            why = f"{names} is not known here" if names else "it divides by zero"
            raise Fault("expected an absolute expression", start, self.last.end, code=SYMBOLS, note=why)
        return found

    def expression(self, least: int = 1, depth: int = 0) -> Expression:
        if depth > ex.DEPTH:
            raise self.fault("too many parentheses and signs")
        left = self.primary(depth)
        while (level := ex.BINARY.get(self.next.text, 0)) >= least and self.next.kind == "mark":
            operator = self.take()
            right = self.expression(level + 1, depth + 1)
            try:
                left = ex.fold(operator.text, left, right)
            except ZeroDivisionError:
                raise Fault("division by zero", operator.start, operator.end) from None
        return left

    def primary(self, depth: int = 0) -> Expression:
        token = self.next
        if token.text in ex.UNARY and token.kind == "mark":
            self.take()
            if depth > ex.DEPTH:
                raise self.fault("too many parentheses and signs")
            return ex.fold_unary(token.text, self.primary(depth + 1))
        if self.accept("("):
            inner = self.expression(1, depth + 1)
            self.expect(")", "')'")
            return inner
        if token.kind == "integer":
            value = ex.integer(token.text)
            if value is None:
                raise Fault(f"{token.text} is not an integer of 64 bits", token.start, token.end)
            self.take()
            return ex.wrap(value)
        if token.kind == "name" and token.text in ex.FUNCTIONS and self.peek(1) == "(":
            return self._function(depth)
        if token.kind == "name":
            self.take()
            name, _, variant = token.text.partition("@")
            return ex.SymbolExpression(name, variant)
        if token.kind == "string" and len(token.text) > 2:
            self.take()
            return ex.SymbolExpression(token.text[1:-1])
        raise self.fault("expected an operand")

    def _function(self, depth: int) -> Expression:
        name = self.take().text
        self.take()
        arguments = [self.expression(1, depth + 1)]
        while self.accept(","):
            arguments.append(self.expression(1, depth + 1))
        end = self.expect(")", "')'")
        found = ex.FunctionExpression(name, tuple(arguments))
        if all(isinstance(a, int) for a in arguments):
            try:
                return ex.evaluate(found, self.resolve)
            except (TypeError, ZeroDivisionError):
                raise Fault(f"{name} does not take these arguments", end.start, end.end) from None
        return found
