"""A position in a text of Triton IR: what stands there, what is expected there, and errors that name line and column."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr

from tilefw.api.errors import IRError, Place
from tilefw.tile.text.located_parser import line_and_column

_BLANK = re.compile(r"(?:\s+|//[^\n]*)*")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(rb'\\([0-9A-Fa-f]{2}|["\\nt])')
_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|->|[()\[\]{}<>]')
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Scanner:
    """Goes through `text`, skipping blanks and comments before each match."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name, self.at = text, name, 0
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def skip(self) -> int:
        """Go to the next word; its position."""
        found = _BLANK.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return self.at

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the pattern matches here, if it does; the position goes behind it."""
        found = pattern.match(self.text, self.skip())
        if found is not None:
            self.at = found.end()
        return found

    def optional(self, word: str) -> bool:
        """Whether `word` stands here; the position goes behind it."""
        if not self.text.startswith(word, self.skip()):
            return False
        end = self.at + len(word)
        if word[-1].isalnum() and self.text[end : end + 1].isalnum():
            return False
        self.at = end
        return True

    def sees(self, word: str) -> bool:
        """Whether `word` stands here."""
        return self.text.startswith(word, self.skip())

    def expect(self, word: str) -> None:
        if not self.optional(word):
            raise self.malformed(f"expected `{word}`")

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """What the pattern matches here. Raises IRError (TFW0401) where it does not."""
        found = self.match(pattern)
        if found is None:
            raise self.malformed(f"expected {what}")
        return found

    def new_line(self) -> bool:
        """Whether the next word stands on a later line, or nothing follows."""
        before = self.at
        return "\n" in self.text[before : self.skip()] or self.at >= len(self.text)

    def bracketed(self) -> str:
        """The text from the bracket here to its partner, both included. Raises IRError (TFW0401) where it has none."""
        start, open_ = self.at, []
        for found in _BRACKET.finditer(self.text, start):
            mark = found[0]
            if mark in _CLOSING:
                open_.append(_CLOSING[mark])
            elif mark in _CLOSING.values():
                if mark != open_.pop():
                    raise self.malformed(f"`{mark}` closes no bracket", found.start())
                if not open_:
                    self.at = found.end()
                    return self.text[start : self.at]
        raise self.malformed("the bracket is not closed", start)

    def place(self, start: int) -> Place:
        """The place of the word at `start`, with its line."""
        number, column = line_and_column(self._line_starts, min(start, len(self.text)))
        line = self.text[self._line_starts[number - 1] :].partition("\n")[0]
        word = re.match(r"[^\s,():]*", line[column - 1 :])
        return Place(self.name, number, column, column + max(1, len(word[0]) if word is not None else 1), line)

    def own_location(self, start: int) -> LocationAttr:
        """The place of `start` as an attribute of ops."""
        line, column = line_and_column(self._line_starts, start)
        return FileLineColLoc(StringAttr(self.name), IntAttr(line), IntAttr(column))

    def malformed(self, message: str, start: int | None = None) -> IRError:
        """The error of a text that is no Triton IR, at `start` or here."""
        return IRError(f"malformed Triton IR: {message}", "TFW0401", self.place(self.skip() if start is None else start))


STRING = _STRING


def unescaped(string: str) -> str:
    """A string as it is meant: MLIR writes other characters than printable ASCII as `\\` and two hexadecimal digits."""
    named = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
    raw = _ESCAPE.sub(lambda m: named.get(m[1]) or bytes.fromhex(m[1].decode()), string.encode())
    return raw.decode("utf-8", "replace")
