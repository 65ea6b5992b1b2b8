"""A program's text with locations, and the codes of its errors: offsets become lines and columns only for an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from tilefw.api.source_text import TextFault

UNKNOWN = "TFW0730"  # no such instruction
OPERANDS = "TFW0731"  # kind, type, alignment or number of operands
RANGE = "TFW0732"  # a number beyond its field
SYNTAX = "TFW0733"  # text that cannot be read
DIRECTIVE = "TFW0734"  # queues, maps, arrays
PASSED = "TFW0738"  # a cycle that has passed

# What precedes a comment: anything but two slashes, which may be within a string.
_CODE = re.compile(r'(?:[^"/\n]|"(?:[^"\\\n]|\\.)*"|/(?!/)|")*')


class ProgramTextFault(TextFault):
    """What is wrong in a piece of text; offsets are into the whole."""

    syntax: ClassVar[str] = SYNTAX


class TextSpan(NamedTuple):
    """Text with its offset in the whole; no spaces around it."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + max(1, len(self.text))

    def part(self, begin: int, end: int | None = None) -> TextSpan:
        """text[begin:end] without the spaces around it."""
        found = self.text[begin:end]
        return TextSpan(found.strip(), self.start + begin + len(found) - len(found.lstrip()))

    def split(self, separator: str = ",") -> Iterator[TextSpan]:
        """The parts between separators; none of an empty text."""
        begin = 0
        while self.text:
            end = self.text.find(separator, begin)
            yield self.part(begin, None if end < 0 else end)
            if end < 0:
                return
            begin = end + len(separator)

    def words(self) -> list[TextSpan]:
        """The parts between spaces; a string is one."""
        return [TextSpan(m.group(), self.start + m.start()) for m in re.finditer(r'(?:"(?:[^"\\]|\\.)*"|\S)+', self.text)]

    def fault(self, message: str, code: str = SYNTAX, note: str | None = None, help: str | None = None) -> ProgramTextFault:
        return ProgramTextFault(message, self.start, self.end, code=code, note=note, help=help)

    def number(self, what: str = "a whole number") -> int:
        """A whole number, decimal or 0x…, of 64 bits."""
        if not re.fullmatch(r"[+-]?(\d{1,20}|0x[0-9a-fA-F]{1,16})", self.text):
            raise self.fault(f"{what} is expected here, not {self.text[:40]!r}")
        value = int(self.text, 16 if "x" in self.text else 10)
        if not -(1 << 63) <= value < 1 << 63:
            raise self.fault(f"{self.text} does not fit 64 bits", RANGE)
        return value


def lines(text: str) -> Iterator[TextSpan]:
    """The lines that have more than a comment."""
    start = 0
    for line in text.split("\n"):
        match = _CODE.match(line)
        found = TextSpan(line, start).part(0, match.end() if match else 0)
        if found.text:
            yield found
        start += len(line) + 1
