"""The base of the hand-written tile ops: an xDSL Operation without IRDL, with the few text pieces that all share.

IRDL's verifier costs some 20 µs an op and its constructor three times `Operation.create`; these ops check themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import HasFolder, Pure
from xdsl.utils.exceptions import VerifyException

from tilefw.tile import types

Value = SSAValue | Operation



class Folds(HasFolder):
    """Lets xDSL's own drivers fold our ops; our passes call `tilefw.tile.fold` themselves."""

    @classmethod
    def fold(cls, op: Operation) -> Sequence[SSAValue | Attribute] | None:
        from tilefw.tile.fold import fold_to_attributes

        return fold_to_attributes(op)


PURE = OpTraits(lambda: (Pure(), Folds()))


class TileOp(Operation):
    """An op of the tile dialect. Subclasses say how many operands and results they have and verify the rest."""

    operand_count: int | None = None
    result_count: int | None = 1
    property_names: frozenset[str] = frozenset()
    traits = OpTraits(lambda: ())

    @property
    def result(self) -> SSAValue:
        """The one result; raises IndexError on ops without any."""
        return self.results[0]

    def verify_(self) -> None:
        if self.operand_count is not None and len(self._operands) != self.operand_count:
            raise VerifyException(f"{self.name} takes {self.operand_count} operands, got {len(self._operands)}")
        if self.result_count is not None and len(self.results) != self.result_count:
            raise VerifyException(f"{self.name} has {self.result_count} results, got {len(self.results)}")
        unknown = self.properties.keys() - self.property_names
        if unknown:
            raise VerifyException(f"{self.name} has no property {', '.join(sorted(unknown))}")
        try:
            problem = self.problem()
        except (AttributeError, IndexError, TypeError) as error:  # generic text can leave out what the accessors read
            problem = f"operands or properties are malformed ({error})"
        if problem is not None:
            raise VerifyException(f"{self.name}: {problem}")

    def problem(self) -> str | None:
        """What is wrong with the op's types and properties, in words; None when nothing is."""
        return None

    def integer(self, name: str) -> int:
        """An integer property; raises VerifyException when it is missing or no integer."""
        attribute = self.properties.get(name)
        if not isinstance(attribute, IntegerAttr):
            raise VerifyException(f"{self.name} needs the integer property {name}")
        return attribute.value.data


@cache
def integer_attr(value: int) -> IntegerAttr:
    """`value : i64`, made once."""
    return IntegerAttr(value, types.i64)  # type: ignore[arg-type]


@cache
def string_attr(value: str) -> StringAttr:
    """A string attribute, made once."""
    return StringAttr(value)


@cache
def dense_i64(values: tuple[int, ...]) -> DenseArrayBase:
    """`array<i64: …>`, made once."""
    return DenseArrayBase.from_list(types.i64, values)  # type: ignore[arg-type]


@cache
def dense_i32(values: tuple[int, ...]) -> DenseArrayBase:
    """`array<i32: …>`, made once: the form of `operandSegmentSizes`."""
    return DenseArrayBase.from_list(types.i32, values)  # type: ignore[arg-type]


def literal_attr(value: int | float, type: Attribute) -> IntegerAttr | FloatAttr:
    """A constant's value as an attribute: integers as signed i64 of the type's range (i1 as 0 or 1), floats as f64.

    Every float format of tile IR is a subset of f64, so the f64 is exact; the caller rounds first.
    """
    if types.is_float(type):
        return FloatAttr(float(value), types.f64)  # type: ignore[arg-type]
    bits = types.dtype_of(type).bits
    value = int(value) & ((1 << bits) - 1)
    return integer_attr(value - (1 << bits) if bits > 1 and value >> (bits - 1) else value)


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


def parse_operand_group(parser: Parser) -> list[SSAValue]:
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


def print_words(printer: Printer, properties: Mapping[str, Attribute], names: Sequence[str]) -> None:
    """Print string properties as ` name "text"` and unit properties as ` name`."""
    for name in names:
        attribute = properties.get(name)
        if attribute is None:
            continue
        printer.print_string(f" {name}" if not isinstance(attribute, StringAttr) else f' {name} "{attribute.data}"')


def string_list(attribute: Attribute | None) -> tuple[str, ...]:
    """The strings of an array attribute."""
    return tuple(a.data for a in attribute.data) if isinstance(attribute, ArrayAttr) else ()  # type: ignore[attr-defined]
