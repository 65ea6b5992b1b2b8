"""The pieces that the text of tile ops is made of, each printed and parsed: literals, groups of operands, hints, closing types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from tilefw.tile import types

Attributes = Mapping[str, Attribute]


def literal_text(attribute: IntegerAttr | FloatAttr, type: Attribute) -> str:
    """A constant's value as it is printed: `true`, `-3`, `1.5`, `inf`, `nan`; floats in full, so that they read back."""
    if isinstance(attribute, IntegerAttr):
        value = attribute.value.data
        return ("false", "true")[value & 1] if types.is_bool(type) else str(value)
    text = repr(attribute.value.data)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else text


def parse_literal(parser: Parser) -> int | float:
    """The reverse of `literal_text`."""
    sign = -1 if parser.parse_optional_punctuation("-") else 1
    for word, value in (("inf", float("inf")), ("nan", float("nan"))):
        if parser.parse_optional_keyword(word):
            return sign * value
    number = parser.parse_number(allow_boolean=True)
    return sign * float(number) if isinstance(number, float) else sign * int(number)


def print_operand_group(printer: Printer, word: str, values: Sequence[SSAValue]) -> None:
    """` word (%a, %b : i32, i64)`."""
    printer.print_string(f" {word} (")
    printer.print_list(values, printer.print_operand)
    printer.print_string(" : ")
    printer.print_list([v.type for v in values], printer.print_attribute)
    printer.print_string(")")


def parse_operand_group(parser: Parser) -> Sequence[SSAValue]:
    """The reverse of `print_operand_group`, after its word."""
    parser.parse_punctuation("(")
    unresolved = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    position = parser.pos
    found = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return parser.resolve_operands(unresolved, found, position)


def parse_optional_after(parser: Parser, keyword: str) -> UnresolvedOperand | None:
    """An operand after its keyword, when the keyword is there."""
    return parser.parse_unresolved_operand() if parser.parse_optional_keyword(keyword) else None


def resolve_optional(parser: Parser, operand: UnresolvedOperand | None, type: Attribute | None) -> SSAValue | None:
    """The value of an operand that may be absent, with its type."""
    return None if operand is None or type is None else parser.resolve_operand(operand, type)


def print_words(printer: Printer, properties: Attributes, names: Sequence[str]) -> None:
    """Print string properties as ` name "text"` and unit properties as ` name`."""
    for name in names:
        attribute = properties.get(name)
        if attribute is None:
            continue
        printer.print_string(f" {name}" if not isinstance(attribute, StringAttr) else f' {name} "{attribute.data}"')


def print_types(printer: Printer, attributes: Attributes, found: Sequence[Attribute]) -> None:
    """` {attributes} : f32, i32`: how most ops end."""
    printer.print_op_attributes(attributes)
    printer.print_string(" : ")
    printer.print_list(found, printer.print_attribute)


def parse_type_at_end(parser: Parser) -> tuple[dict[str, Attribute], Attribute]:
    """The reverse of `print_types` for one type."""
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return attributes, parser.parse_type()


def parse_types_at_end(parser: Parser) -> tuple[dict[str, Attribute], list[Attribute]]:
    """The reverse of `print_types`."""
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return attributes, parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """`%a, %b`, whose types come later."""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
