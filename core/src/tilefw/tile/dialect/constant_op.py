"""The constant: one number, as a scalar or in every element of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, HasFolder, Pure
from xdsl.utils.exceptions import VerifyException

from tilefw.tile import types
from tilefw.tile.dialect.base import TileOp, literal_attr
from tilefw.tile.dialect.op_text import literal_text, parse_literal, parse_type_at_end, print_types


class _OwnLiteral(HasFolder):
    """Gives xDSL's own patterns (`ConstantLike.get_constant_value`) the number; `tilefw.passes.fold` folds every other op."""

    @classmethod
    def fold(cls, op: Operation) -> Sequence[SSAValue | Attribute] | None:
        return [op.literal] if isinstance(op, ConstantOp) else None


class ConstantOp(TileOp):
    """A number as a scalar, or as a tile whose elements are all that number: `tile.constant 1.5 : tensor<128xf32>`."""

    name = "tile.constant"
    operand_count = 0
    property_names = frozenset({"value"})
    traits = OpTraits(lambda: (Pure(), ConstantLike(), _OwnLiteral()))

    def __init__(self, value: int | float, type: Attribute) -> None:
        super().__init__(result_types=[type], properties={"value": literal_attr(value, type)})

    @property
    def value(self) -> int | float:
        """The number: a signed integer (0 or 1 for i1) or the exact value of the float."""
        return self.literal.value.data

    @property
    def literal(self) -> IntegerAttr | FloatAttr:
        """The number as an attribute, i64 or f64; raises VerifyException when it is missing or no number."""
        attribute = self.properties.get("value")
        if not isinstance(attribute, IntegerAttr | FloatAttr):
            raise VerifyException(f"the value {attribute} is not a number")
        return attribute

    def problem(self) -> str | None:
        type, value = self.results[0].type, self.literal
        if not (types.is_int(type) or types.is_float(type)):
            return f"a constant is an integer or a float, got {type}"
        if not isinstance(value, FloatAttr if types.is_float(type) else IntegerAttr):
            return f"the value {value} does not fit {type}"
        if value != literal_attr(value.value.data, type) and value.value.data == value.value.data:
            return f"the value {value.value.data} is out of the range of {type}"
        return None

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        type = self.results[0].type
        printer.print_string(f" {literal_text(self.literal, type)}")
        print_types(printer, self.attributes, [type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        position = parser.pos
        value = parse_literal(parser)
        attributes, type = parse_type_at_end(parser)
        if not (types.is_int(type) or types.is_float(type)):
            parser.raise_error(f"a constant is an integer or a float, got {type}", position)
        if isinstance(value, float) and types.is_int(type):
            parser.raise_error(f"{value} is not an integer, and the type is {type}", position)
        op = cls(value, type)
        if types.is_int(type) and op.value != value:
            parser.raise_error(f"{value} is out of the range of {type}", position)
        op.attributes = attributes
        return op
