"""A text with places: what is wrong in it has offsets, which become lines and columns only for an error.

    source = SourceText(text, "kernel.s")
    raise source.error(TextFault("there is no such instruction", 12, 20, code="TFW0720"))
"""

from __future__ import annotations

import bisect
import re
from functools import cached_property
from typing import ClassVar

from tilefw.api.errors import CodeError, Place

__all__ = ["SourceText", "TextFault"]

_NEWLINE = re.compile("\n")


class TextFault(Exception):
    """What is wrong in a text, from offset `start` to below `end` (None: one character). A reader that parses piece by piece gives
    offsets into the piece. A subclass names the code of text that cannot be read."""

    syntax: ClassVar[str]

    def __init__(
        self, message: str, start: int = 0, end: int | None = None, *, code: str | None = None, note: str | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = start + 1 if end is None else end
        self.code = self.syntax if code is None else code
        self.note = note
        self.help = help


class SourceText:
    """The text of one file, or of one statement. Lines and columns begin at 1."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(m.end() for m in _NEWLINE.finditer(self.text))]

    def line(self, offset: int) -> int:
        """The line that an offset is in."""
        return bisect.bisect_right(self._line_starts, offset)

    def place(self, start: int, end: int | None = None) -> Place:
        """The place of text[start:end], of one character without `end`; at least a character, cut at the end of its first line."""
        starts, text = self._line_starts, self.text
        line = bisect.bisect_right(starts, start)
        begin = starts[line - 1]
        stop = starts[line] - 1 if line < len(starts) else len(text)
        last = start + 1 if end is None or end <= start else end
        if last > stop:
            last = max(stop, start + 1)
        return Place(self.filename, line, start - begin + 1, last - begin + 1, text[begin:stop])

    def error(self, fault: TextFault, offset: int = 0) -> CodeError:
        """The error to raise for a fault of the piece that begins at `offset`."""
        place = self.place(offset + fault.start, offset + fault.end)
        return CodeError(fault.message, fault.code, place, fault.note, fault.help)
