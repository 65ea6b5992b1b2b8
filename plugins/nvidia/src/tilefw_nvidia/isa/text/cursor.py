"""Token by token through PTX text, for directives; function bodies are read a statement at a time (see `body`)."""

from __future__ import annotations

import re
from typing import NoReturn

from tilefw_nvidia.isa.text.source import SYNTAX, PtxSource

_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<number>0[fF][0-9a-fA-F]{8}\b | 0[dD][0-9a-fA-F]{16}\b
                 | -?\d+\.\d*(?:[eE][+-]?\d+)? | -?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?)
    | (?P<word>\.?[A-Za-z_$%][\w$]*(?:::\w+)*)
    | (?P<mark>[{}()\[\];,:=<>@!|+-])
    )""",
    re.VERBOSE,
)


def integer(text: str) -> int:
    """An integer constant (PTX ISA, "Integer Constants"): decimal, hexadecimal, octal, binary, with an optional U."""
    digits = text.rstrip("U")
    magnitude = digits.lstrip("-")
    octal = len(magnitude) > 1 and magnitude[0] == "0" and magnitude[1] in "01234567"
    base = 8 if octal else {"0x": 16, "0b": 2}.get(magnitude[:2].lower(), 10)
    value = int(magnitude, base)
    return -value if digits.startswith("-") else value


class Cursor:
    """A position in a source, moved by tokens. `start` and `end` are the offsets of the last token taken."""

    def __init__(self, source: PtxSource, position: int = 0) -> None:
        self.source = source
        self.code = source.code
        self.position = position
        self.start = position
        self.end = position

    def skip_space(self) -> int:
        space = _SPACE.match(self.code, self.position)
        assert space is not None  # it matches nothing at all, too
        self.position = space.end()
        return self.position

    @property
    def at_end(self) -> bool:
        return self.skip_space() >= len(self.code)

    def fail(self, message: str, *, help: str | None = None, code: str = SYNTAX, note: str | None = None) -> NoReturn:
        """Raise at the last token taken."""
        raise self.source.refusal(message, self.start, self.end, code=code, note=note, help=help)

    def _token(self, kind: str | None, expected: str) -> str:
        match = _TOKEN.match(self.code, self.position)
        if match is None:
            self.start = min(self.skip_space(), max(0, len(self.code) - 1))
            self.end = self.start + 1
            self.fail(f"expected {expected}, but the file ends" if self.at_end else f"expected {expected}")
        self.start, self.end = match.start(match.lastgroup or 0), match.end()
        if kind is not None and match.lastgroup != kind:
            self.fail(f"expected {expected}, found {match.group().strip()!r}")
        self.position = match.end()
        return match.group().strip()

    def peek(self) -> str:
        """The next token, or '' where there is none; does not move."""
        match = _TOKEN.match(self.code, self.position)
        return match.group().strip() if match else ""

    def accept(self, token: str) -> bool:
        """Take the next token if it is this one."""
        if self.peek() != token:
            return False
        self._token(None, token)
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self._token(None, repr(token))
            self.fail(f"expected {token!r}, found {self.code[self.start : self.end]!r}")

    def word(self, expected: str) -> str:
        return self._token("word", expected)

    def name(self, expected: str) -> str:
        """An identifier that is not a directive."""
        word = self.word(expected)
        if word.startswith("."):
            self.fail(f"expected {expected}, found {word!r}")
        return word

    def integer(self, expected: str, low: int = 0, high: int = 2**32 - 1) -> int:
        text = self._token("number", expected)
        if "." in text or text[:2].lower() in ("0f", "0d"):
            self.fail(f"expected {expected}, found {text!r}")
        try:
            value = integer(text)
        except ValueError:
            self.fail(f"{text!r} is not an integer")
        if not low <= value <= high:
            self.fail(f"{expected} must lie in {low}..{high}, not {text}")
        return value

    def number(self, expected: str) -> str:
        return self._token("number", expected)

    def any(self, expected: str) -> str:
        return self._token(None, expected)

    def string(self, expected: str) -> str:
        return self._token("string", expected)[1:-1]
