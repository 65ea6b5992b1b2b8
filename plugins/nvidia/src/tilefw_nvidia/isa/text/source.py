"""PTX text with places: offsets become lines and columns only when somebody asks, so that parsing pays nothing for them."""

from __future__ import annotations

import bisect
import re
from functools import cached_property

from tilefw.api.errors import CodeError, Place

SYNTAX = "TFW0710"
UNKNOWN = "TFW0711"
NOT_SERVED = "TFW0712"
OPERANDS = "TFW0713"
NAMES = "TFW0714"
VERSION = "TFW0715"

_NEWLINE = re.compile("\n")
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")


def _blank(match: re.Match[str]) -> str:
    """A comment as spaces of the same length, so that offsets stay true; strings are left alone."""
    text = match.group()
    if text[0] == '"':
        return text
    return _NOT_NEWLINE.sub(" ", text) if "\n" in text else " " * len(text)


class Source:
    """The text of one PTX file: `code` is the text with its comments blanked out, offset for offset."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename
        self.code = _COMMENT.sub(_blank, text)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(m.end() for m in _NEWLINE.finditer(self.text))]

    def place(self, start: int, end: int | None = None) -> Place:
        """The place of text[start:end], cut at the end of its first line."""
        line = bisect.bisect_right(self._line_starts, start)
        begin = self._line_starts[line - 1]
        stop = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        last = min(start + 1 if end is None else end, max(stop, start + 1))
        return Place(self.filename, line, start - begin + 1, last - begin + 1, self.text[begin:stop])

    def error(
        self,
        message: str,
        start: int,
        end: int | None = None,
        *,
        code: str = SYNTAX,
        note: str | None = None,
        help: str | None = None,
    ) -> CodeError:
        """The error to raise for text[start:end]."""
        return CodeError(message, code, self.place(start, end), note, help)
