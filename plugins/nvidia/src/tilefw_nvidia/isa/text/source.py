"""PTX text with places: offsets become lines and columns only when somebody asks, so that parsing pays nothing for them."""

from __future__ import annotations

import re
from typing import ClassVar

from tilefw.api.errors import CodeError
from tilefw.api.source_text import SourceText, TextFault

SYNTAX = "TFW0710"
UNKNOWN = "TFW0711"
NOT_SERVED = "TFW0712"
OPERANDS = "TFW0713"
NAMES = "TFW0714"
VERSION = "TFW0715"

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")


def _blank(match: re.Match[str]) -> str:
    """A comment as spaces of the same length, so that offsets stay true; strings are left alone."""
    text = match.group()
    if text[0] == '"':
        return text
    return _NOT_NEWLINE.sub(" ", text) if "\n" in text else " " * len(text)


class Fault(TextFault):
    """What is wrong in PTX text; offsets are into the whole."""

    syntax: ClassVar[str] = SYNTAX


class PtxSource(SourceText):
    """The text of one PTX file: `code` is the text with its comments blanked out, offset for offset."""

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text, filename)
        self.code = _COMMENT.sub(_blank, text)

    def refusal(
        self, message: str, start: int, end: int | None = None, *, code: str = SYNTAX, note: str | None = None,
        help: str | None = None,
    ) -> CodeError:
        """The error to raise for text[start:end]."""
        return self.error(Fault(message, start, end, code=code, note=note, help=help))
