"""The parser of IR text gives what xDSL's own gives, and cuts text into the same tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from tilefw.api.errors import IRError
from tilefw.tile.dialect.context import context
from tilefw.tile.text.located_parser import Lexer, LocatedParser
from tilefw.tile.text.module import parse, with_locations

FOLDER = Path(__file__).parents[1] / "filecheck"
TEXTS = [module for path in sorted(FOLDER.rglob("*.mlir")) for module in path.read_text().split("// -----")]
SPELLINGS = (
    'loc("a.py":3:4)', 'loc("a.py" : 3:4)', 'loc("b.py":3:4)', "loc(unknown)", 'loc("a\\22.py":3:4)',
    'loc(fused["a.py":1:2, unknown])',
)
TYPES = (
    "tensor<4xf32>", "tensor<4xi32>", "tensor<4x!tile.ptr<f32>>", "tensor< 4xf32 >", "!tile.ptr<bf16>", "!tile.ptr<f16>", "i1",
    "i16", "f16", "bf16", "index", "f8E5M2", "tuple<i1, tensor<2xf16>>", "complex<f32>", "tensor<2xcomplex<f32>>",
)


def _plain(text: str) -> Parser:
    return Parser(context(), text, "test")


def _fast(text: str) -> LocatedParser:
    return LocatedParser(context(), text, "test")


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_modules_are_those_of_the_plain_parser(text):
    try:
        due = _plain(text).parse_module()
    except (ParseError, NotImplementedError) as error:
        with pytest.raises(type(error)):
            _fast(text).parse_module()
        return
    located = with_locations(due)  # says `unknown` where the text says nothing
    for source in (text, located):
        found = _fast(source).parse_module()
        assert str(found) == str(due)
        for ours, theirs in zip(found.walk(), _plain(source).parse_module().walk(), strict=True):
            assert ours.attributes == theirs.attributes and ours.properties == theirs.properties
            assert isinstance(theirs.location, UnknownLoc) or ours.location == theirs.location


def test_each_spelling_has_its_own_meaning_wherever_it_stands():
    text = " ".join(2 * SPELLINGS)
    fast, plain = _fast(text), _plain(text)
    for _ in 2 * SPELLINGS:
        assert (found := fast.parse_optional_location()) == plain.parse_optional_location()
        assert found is not None
    text = " ".join(2 * TYPES)
    fast, plain = _fast(text), _plain(text)
    for _ in 2 * TYPES:
        assert fast.parse_type() == plain.parse_type()
        assert fast.pos == plain.pos


@pytest.mark.parametrize("name", ["a.py", "", 'q"u\\o te.py', "\u00e9 [~]!#.py", "tab\t.py"])
def test_locations_in_files_of_any_name_read_back(name):
    module = _fast(TEXTS[0]).parse_module()
    place = FileLineColLoc(StringAttr(name), IntAttr(3), IntAttr(4))
    for op in module.walk():
        op.location = place
    assert all(op.location == place for op in _fast(with_locations(module)).parse_module().body.walk())


def _tokens(lexer: MLIRLexer) -> list[tuple[MLIRTokenKind, int, int]]:
    found = []
    while not found or found[-1][0] is not MLIRTokenKind.EOF:
        token = lexer.lex()
        found.append((token.kind, token.span.start, token.span.end))
    return found


ODD = ('%a%1 ^b !c.d #e @f "g\\n" 0x1F 1.5e-3 - -> :: ... {-# #-} // end\n\tx\u00e9', "%0:2=f(%-,%.$)")


@pytest.mark.parametrize("text", [*TEXTS, *ODD])
def test_tokens_are_those_of_the_plain_lexer(text):
    try:
        due = _tokens(MLIRLexer(Input(text, "test")))
    except ParseError as error:
        with pytest.raises(ParseError) as raised:
            _tokens(Lexer(Input(text, "test")))
        assert raised.value.span.start == error.span.start
        return
    assert _tokens(Lexer(Input(text, "test"))) == due


@pytest.mark.parametrize("length", [60, 10_000])
@pytest.mark.parametrize("before", ["", "func.func @f() {\n  ", "func.func @", "func.func @f() attributes {x = "])
def test_a_string_without_its_closing_quote_is_refused_at_its_place(before: str, length: int) -> None:
    with pytest.raises(IRError, match="the string has no closing quote on its line") as caught:
        parse(f'{before}"{"a" * length}\n', "q.mlir")
    place = caught.value.place
    lines = before.split("\n")
    assert place is not None
    assert (place.file, place.line, place.column) == ("q.mlir", len(lines), len(lines[-1]) + 1)


@pytest.mark.parametrize("escape", [r"\q", r"\4", r"\x"])
def test_an_unknown_escape_is_refused_at_its_place(escape: str) -> None:
    with pytest.raises(IRError) as caught:
        parse(f'func.func @f() attributes {{x = "{"a" * 100}{escape} c"}} {{ func.return }}', "q.mlir")
    assert caught.value.message == f"unknown escape {escape} in a string"
    assert caught.value.place is not None and caught.value.place.column == 133
