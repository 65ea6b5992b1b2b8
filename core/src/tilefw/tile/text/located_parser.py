"""The parser of IR text: xDSL's, which stamps ops with their places and reads once what a text says again and again.

A location stands behind every op and a type behind most, in few different spellings: the first of each spelling is made, the
others are looked up. With that and one regular expression for the frequent tokens, a text is read in less than half of the time.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc
from xdsl.ir import Operation, TypeAttribute
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind

# Spellings whose meaning does not hang on where they stand; any other goes to xDSL's parser each time.
_LOCATION = re.compile(r'loc\("([^"\\\n\v\f]*)":([0-9]+):([0-9]+)\)')
_TYPE = re.compile(r"(?:(?:tensor|![\w.$]+)<[^<>\"]*(?:<[^<>\"]*>[^<>\"]*)*>|index|bf16|[if][0-9]+)(?![\w$.<])", re.ASCII)

_TOKEN = re.compile(
    r"[ \n]*(?:(%(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*))|([a-zA-Z_][a-zA-Z0-9_$.]*)|([:,()\[\]<>=]))", re.ASCII
)
# A string may hold any character but these four; each of them fits one branch only, so that a match takes linear time.
_STRING_PART = r'[^"\\\n\v\f]*'
_ESCAPE = r'\\(?:["nt\\]|[0-9A-Fa-f]{2})'
_STRING_BODY = re.compile(f'"{_STRING_PART}(?:{_ESCAPE}{_STRING_PART})*')
_PUNCTUATION = {character: MLIRTokenKind(character) for character in ":,()[]<>="}


class Lexer(MLIRLexer):
    """xDSL's, with one match for a name, a value or a mark that is not a part of a longer one."""

    def lex(self) -> MLIRToken:
        found = _TOKEN.match(self.input.content, self.pos)
        if found is None:
            return super().lex()
        group = found.lastindex or 0
        start, self.pos = found.span(group)
        if group == 3:
            kind = _PUNCTUATION[found[3]]
        else:
            kind = MLIRTokenKind.PERCENT_IDENT if group == 1 else MLIRTokenKind.BARE_IDENT
        return Token(kind, Span(start, self.pos, self.input))

    def _lex_string_literal(self, start_pos: int) -> MLIRToken:
        # The regular expression of xDSL's lexer takes exponential time on a string without its closing quote.
        found = _STRING_BODY.match(self.input.content, start_pos)
        end = start_pos if found is None else found.end()
        stopped_by = self.input.content[end : end + 1]
        if stopped_by == "\\":
            escape = self.input.content[end : end + 2].strip()
            raise ParseError(Span(end, end + len(escape), self.input), f"unknown escape {escape} in a string")
        if stopped_by != '"':
            raise ParseError(Span(start_pos, end, self.input), "the string has no closing quote on its line")
        return super()._lex_string_literal(start_pos)


class LocatedParser(Parser):
    """Stamps each op that has no location of its own with the place of its text, so that messages can name a line."""

    def __init__(self, ctx: Context, text: str, name: str) -> None:
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(Lexer(Input(text, name)))
        self._text = text
        self._line_starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        self._file = StringAttr(name)
        self._locations: dict[str, LocationAttr] = {}
        self._types: dict[str, TypeAttribute] = {}

    def parse_operation(self) -> Operation:
        start = self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            line, column = line_and_column(self._line_starts, start)
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        return op

    def parse_optional_location(self) -> LocationAttr | None:
        match = _LOCATION.match(self._text, self.pos)
        if match is None:
            return super().parse_optional_location()
        self._resume_from(match.end())
        if (found := self._locations.get(match[0])) is None:
            found = FileLineColLoc(StringAttr(match[1]), IntAttr(int(match[2])), IntAttr(int(match[3])))
            self._locations[match[0]] = found
        return found

    def parse_optional_type(self) -> TypeAttribute | None:
        match = _TYPE.match(self._text, self.pos)
        if match is None:
            return super().parse_optional_type()
        if (known := self._types.get(match[0])) is not None:
            self._resume_from(match.end())
            return known
        found = super().parse_optional_type()
        if found is not None and self.pos >= match.end() and not self._text[match.end() : self.pos].strip():
            self._types[match[0]] = found  # the type took the whole of what was matched
        return found


def line_and_column(line_starts: list[int], position: int) -> tuple[int, int]:
    """Line and column, from 1, of a position in a text whose lines begin at `line_starts`."""
    line = bisect_right(line_starts, position)
    return line, position - line_starts[line - 1] + 1
