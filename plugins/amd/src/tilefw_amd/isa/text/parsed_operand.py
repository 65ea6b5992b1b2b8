"""One operand or modifier as it was written, before anybody knows which instruction it belongs to.

What one says does not depend on the line that it stands in, unless it names symbols, so that each text is read once: `simple`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tilefw_amd.isa.encoding.modifiers import MODIFIERS
from tilefw_amd.isa.model import RegisterTuple
from tilefw_amd.isa.registers import misaligned, missing, named
from tilefw_amd.isa.text import expression as ex
from tilefw_amd.isa.text.cursor import Cursor, Token
from tilefw_amd.isa.text.expression import Expression
from tilefw_amd.isa.text.source import OPERANDS, Fault

Kind = Literal["register", "integer", "float", "symbol", "off", "call", "modifier"]
NEG, ABS, SEXT, LIT = 1, 2, 4, 8
_BARS = 16  # while the reader is between `|` and `|`
SIGNS = {"neg": NEG, "abs": ABS, "sext": SEXT, "lit": LIT}
# Operands that are written as calls: LLVM's AMDGPUOperandSyntax.rst, "hwreg", "sendmsg", "waitcnt", "gpr_idx".
COUNTERS = ("vmcnt", "expcnt", "lgkmcnt")
CALLS = frozenset({"hwreg", "sendmsg", "gpr_idx", *COUNTERS, *(f"{c}_sat" for c in COUNTERS)})
FLAGS = frozenset(s.word for s in MODIFIERS.values() if s.kind == "flag")
FLAGS |= {f"no{word}" for word in FLAGS}  # a modifier said not to be there
WORDS = FLAGS | {w for s in MODIFIERS.values() if s.kind != "inline" for w in s.words}
# Registers of other chips of the family: names that no symbol may have.
FOREIGN = frozenset({"null", "lds_direct", "src_lds_direct", *(f"{t}_{half}" for t in ("tba", "tma") for half in ("lo", "hi"))})


class OperandCall(NamedTuple):
    """`hwreg(HW_REG_MODE, 0, 4)`: arguments that are a lone name stay names. `start` and `end` are offsets into the statement."""

    name: str
    arguments: tuple[str | int, ...]
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """`value` is a Register, an int, a float, an Expression, calls that stand together, or (word, text) of a modifier.

    `sign` has the bits NEG, ABS, SEXT and LIT; `key` tells apart what the choice of a form may depend on.
    """

    kind: Kind
    value: Any
    sign: int
    key: Hashable


def register_written(register: RegisterTuple, sign: int) -> Written:
    """A register or tuple as an operand, with the bits of `sign`."""
    return Written("register", register, sign, (register.file, register.count, sign, _name_key(register)))


class Spanned(NamedTuple):
    """Something written, and its offsets into the statement."""

    written: Written
    start: int
    end: int


_FILE = frozenset({"v", "a", "s", "acc", "ttmp"})


class OperandParser(Cursor):
    """The operands and modifiers of one statement."""

    def all(self) -> list[Spanned]:
        """Everything up to the end: a comma may stand behind each, as in LLVM."""
        found: list[Spanned] = []
        while self.next.kind != "end":
            found.append(self._spanned())
            comma = self.accept(",")
            if found[-1].written.kind == "call" and not comma:
                self.accept("&")
        return _joined(found)

    def _spanned(self) -> Spanned:
        start = self.next.start
        written = self._operand()
        return Spanned(written, start, self.last.end)

    def _operand(self) -> Written:
        token = self.next
        if token.kind == "name":
            if token.text in WORDS and (self.peek(1) == ":" or token.text in FLAGS or token.text not in _WITH_VALUE):
                return self._modifier()
            if token.text == "off":
                self.take()
                return Written("off", None, 0, "off")
            if self.peek(1) == "(" and token.text in CALLS:
                return self._call()
        if token.text == "{":
            return self._structure()
        return self._value(0, 0)

    def _value(self, sign: int, depth: int) -> Written:
        """A register, a number or an expression, with its signs: -v1, |v1|, abs(v1), neg(1.0), sext(v1), lit(1)."""
        if depth > ex.DEPTH:
            raise self.fault("too many parentheses and signs")
        token = self.next
        if token.text == "-" and (self._register_at(1) or self.peek(1) in ("|", "abs")):
            self.take()
            return self._value(sign | NEG, depth + 1)
        if token.text == "|":
            self.take()
            inner = self._value(sign | ABS | _BARS, depth + 1)
            self.expect("|", "'|' behind the operand")
            return inner
        if token.kind == "name" and token.text in FOREIGN:
            raise Fault(f"{token.text} is a register of other chips", token.start, token.end, code=OPERANDS)
        if token.text in SIGNS and self.peek(1) == "(":
            self.take()
            self.take()
            if SIGNS[token.text] == LIT and (sign & LIT or self._register_at(0)):
                raise self.fault("lit takes a number")
            inner = self._value(sign | SIGNS[token.text], depth + 1)
            self.expect(")", "')'")
            return inner
        if self._register_at(0):
            return self._register(sign & ~_BARS)
        return self._number(sign & ~_BARS, self.primary if sign & _BARS else self.expression)

    # -- registers

    def _register_at(self, ahead: int) -> bool:
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        if token.text == "[":
            return True
        if token.kind != "name":
            return False
        if token.text in _FILE:
            return self.peek(ahead + 1) == "["
        return named(token.text) is not None or _LIKE_REGISTER.match(token.text) is not None

    def _register(self, sign: int) -> Written:
        first = self.next
        register = self._list() if first.text == "[" else self._single()
        last = self.last
        absent = missing(register)
        if absent:
            raise Fault(absent, first.start, last.end, code=OPERANDS)
        odd = misaligned(register) if register.file == "s" else ""  # where vector registers begin the instruction says
        if odd:
            note = "a tuple of scalar registers begins at an even one, from four registers on at a multiple of four"
            raise Fault(odd, first.start, last.end, code=OPERANDS, note=note)
        return register_written(register, sign)

    def _single(self) -> RegisterTuple:
        token = self.take()
        text = token.text
        if text in _FILE and self.next.text == "[":
            text = self._subscript(text)
        register = named(text)
        if register is None:
            end = self.last.end
            help = "there are s0 to s101, v0 to v255, a0 to a255 and ttmp0 to ttmp15"
            raise Fault(f"there is no register {text}", token.start, end, code=OPERANDS, help=help)
        return register

    def _subscript(self, file: str) -> str:
        """`[4]`, `[4:7]`, `[2*2:7]`: its numbers, as a canonical text."""
        self.take()
        first = self.absolute()
        last = self.absolute() if self.accept(":") else None
        self.expect("]", "']'")
        if not 0 <= first < 1000 or (last is not None and not 0 <= last < 1000):
            return f"{file}[{first}:{first if last is None else last}]"
        return f"{file}{first}" if last is None or last == first else f"{file}[{first}:{last}]"

    def _list(self) -> RegisterTuple:
        """`[s0,s1]`: registers in order, together a tuple."""
        self.take()
        found = self._single_of_list()
        while self.accept(","):
            token = self.next
            more = self._single_of_list()
            if more.file != found.file or more.index != found.index + found.count:
                raise Fault("registers of a list follow one another", token.start, token.end, code=OPERANDS)
            found = RegisterTuple(found.file, found.index, found.count + more.count)
        self.expect("]", "']'")
        return found

    def _single_of_list(self) -> RegisterTuple:
        if not self._register_at(0) or self.next.text == "[":
            raise self.fault("expected a register")
        token = self.next
        found = self._single()
        if found.count != 1:
            raise Fault("a list names single registers", token.start, token.end, code=OPERANDS)
        return found

    # -- numbers

    def _number(self, sign: int, expression: Callable[[], Expression]) -> Written:
        """`expression` reads what may stand here: between bars no operators, as `|` is one."""
        negative = self.next.text == "-" and self.tokens[self.at + 1].kind == "real"
        if negative:
            self.take()
        elif self.next.text == "-" and self.peek(1) == "-":
            raise self.fault("expected one sign")
        if self.next.kind == "real":
            value = _real(self.take())
            return Written("float", -value if negative else value, sign, ("float", sign))
        start = self.next.start
        found = self.evaluated(expression())
        if isinstance(found, int):
            return Written("integer", found, sign, ("integer", sign))
        if sign:
            raise Fault("neg, abs and sext take a register or a number", start, self.last.end)
        return Written("symbol", found, 0, "symbol")

    # -- calls and modifiers

    def _call(self) -> Written:
        name = self.take()
        self.take()
        arguments: list[str | int] = []
        while self.next.text != ")":
            arguments.append(self._argument())
            if not self.accept(","):
                break
        end = self.expect(")", "')'").end
        call = OperandCall(name.text, tuple(arguments), name.start, end)
        return Written("call", (call,), 0, ("call", name.text))

    def _argument(self) -> str | int:
        token = self.next
        if token.kind in ("name", "string") and self.peek(1) in (",", ")", "}"):
            self.take()
            try:
                return self.resolve(token.text)
            except LookupError:
                return token.text
        return self.absolute()

    def _structure(self) -> Written:
        """`{id: 1, offset: 2, size: 4}`: hwreg's other form; the fields are arguments by name."""
        start = self.take().start
        fields: dict[str, str | int] = {}
        while not fields or self.accept(","):
            name = self.take()
            if name.text not in ("id", "offset", "size") or name.text in fields:
                raise Fault("expected id, offset or size, each once", name.start, name.end)
            self.expect(":", "':'")
            fields[name.text] = self._argument()
        end = self.expect("}", "'}'").end
        arguments = (fields.get("id", 0), fields.get("offset", 0), fields.get("size", 32))
        return Written("call", (OperandCall("hwreg", arguments, start, end),), 0, ("call", "hwreg"))

    def _modifier(self) -> Written:
        word = self.take().text
        if not (word in _WITH_VALUE and self.accept(":")):
            return Written("modifier", (word, word), 0, ("modifier", word))
        text = f"{word}:{self._modifier_value()}"
        return Written("modifier", (word, text), 0, ("modifier", word))

    def _modifier_value(self) -> str:
        token = self.next
        if token.text == "[":
            return self._bracketed("[", "]")
        if token.kind == "name" and self.peek(1) == "(":
            return self.take().text + self._bracketed("(", ")")
        if token.kind == "name":
            try:
                value = self.resolve(token.text)
            except LookupError:
                return self.take().text
            self.take()
            return str(value)
        return str(self.absolute())

    def _bracketed(self, opening: str, closing: str) -> str:
        """A list of numbers, names and strings without its spaces."""
        parts = [self.expect(opening, repr(opening)).text]
        while self.next.text != closing:
            if self.next.kind == "end" or self.next.text in ("[", "("):
                raise self.fault(f"expected {closing!r}")
            parts.append(self.take().text)
        self.take()
        return "".join([*parts, closing])


def _real(token: Token) -> float:
    """The value of a number with a point or an exponent."""
    try:
        return float.fromhex(token.text) if token.text[:2].lower() == "0x" else float(token.text)
    except (ValueError, OverflowError):  # without a digit, or beyond all floats
        raise Fault(f"{token.text} is not a number that a float has", token.start, token.end) from None


_WITH_VALUE = WORDS - FLAGS - {"row_mirror", "row_half_mirror"}
_LIKE_REGISTER = re.compile(r"(?:v|a|s|acc|ttmp)\d+$")
# Operands that some forms have as themselves: `vcc` of a carry, which another form takes as any pair.
_NAMED = {(106, 2): "vcc", (126, 2): "exec", (124, 1): "m0"}


def _name_key(register: RegisterTuple) -> str:
    if register.file != "s":
        return ""
    if register.index >= 128:
        return "read only"
    return _NAMED.get((register.index, register.count), "")


def _joined(found: list[Spanned]) -> list[Spanned]:
    """Calls that follow one another are one operand: `vmcnt(0) lgkmcnt(0)`."""
    joined: list[Spanned] = []
    for item in found:
        if item.written.kind == "call" and joined and joined[-1].written.kind == "call":
            before = joined.pop()
            joined.append(Spanned(together((before.written, item.written)), before.start, item.end))
        else:
            joined.append(item)
    return joined


def together(calls: tuple[Written, ...]) -> Written:
    """Calls as one operand."""
    return Written("call", tuple(call for w in calls for call in w.value), 0, calls[0].key)


@functools.lru_cache(maxsize=65536)
def simple(text: str) -> Written | None:
    """What a text of one operand or modifier without symbols says; None when it is anything else, or wrong."""
    try:
        found = OperandParser(text).all()
    except Fault:
        return None
    if len(found) != 1 or text[-1] == "," or found[0].written.kind == "symbol" or _names(found[0].written):
        return None
    return found[0].written


def _names(written: Written) -> bool:
    """Whether it holds a name that a symbol may have a value for."""
    if written.kind == "call":
        return any(isinstance(a, str) and not a.isupper() for call in written.value for a in call.arguments)
    if written.kind != "modifier":
        return False
    return False
