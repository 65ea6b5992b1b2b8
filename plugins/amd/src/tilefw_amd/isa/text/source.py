"""AMDGPU text with places, and the codes of what may be wrong with it: offsets become lines and columns only for an error."""

from __future__ import annotations

import bisect
import re
from functools import cached_property

from tilefw.api import CodeError, Place

UNKNOWN = "TFW0720"  # no such mnemonic
OPERANDS = "TFW0721"  # kind, width, alignment or number of operands
RANGE = "TFW0722"  # a number beyond its field
SYNTAX = "TFW0725"  # text that cannot be read
SYMBOLS = "TFW0726"  # labels, symbols, directives

_NEWLINE = re.compile("\n")


class Fault(Exception):
    """What is wrong in one statement: `start` and `end` are offsets into the statement's text."""

    def __init__(
        self, message: str, start: int = 0, end: int | None = None, *,
        code: str = SYNTAX, note: str | None = None, help: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = start + 1 if end is None else end
        self.code = code
        self.note = note
        self.help = help


class Source:
    """The text of one file, or of one instruction."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(m.end() for m in _NEWLINE.finditer(self.text))]

    def line(self, offset: int) -> int:
        return bisect.bisect_right(self._line_starts, offset)

    def place(self, start: int, end: int) -> Place:
        """The place of text[start:end], cut at the end of its first line."""
        line = self.line(start)
        begin = self._line_starts[line - 1]
        stop = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        last = min(max(end, start + 1), max(stop, start + 1))
        return Place(self.filename, line, start - begin + 1, last - begin + 1, self.text[begin:stop])

    def error(self, fault: Fault, statement: int = 0) -> CodeError:
        """The error to raise for a fault of the statement that begins at offset `statement`."""
        place = self.place(statement + fault.start, statement + fault.end)
        return CodeError(fault.message, fault.code, place, fault.note, fault.help)
