"""What all ops of the `lane` dialect share: their types and the text `name operands {properties} : (types) -> types`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile.dialect.base import TileOp


@cache
def vector(n: int, element: Attribute) -> Attribute:
    """`vector<n x element>`."""
    return VectorType(element, (n,))


class GenericOp(TileOp):
    """Base of ops whose text is `name operands {properties} : (types) -> types`."""

    def print(self, printer: Printer) -> None:
        if self._operands:
            printer.print_string(" ")
            printer.print_list(self._operands, printer.print_operand)
        printer.print_op_attributes({**self.attributes, **self.properties})
        if self._operands or self.results:
            printer.print_string(" : ")
            printer.print_operation_type(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        unresolved = []
        # Behind an op without operands a value is the next op's result.
        while cls.operand_count != 0 and (operand := parser.parse_optional_unresolved_operand()) is not None:
            unresolved.append(operand)
            if not parser.parse_optional_punctuation(","):
                break
        found = parser.parse_optional_attr_dict()
        operands: Sequence[SSAValue] = ()
        results: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation(":"):
            type = parser.parse_function_type()
            operands = parser.resolve_operands(unresolved, type.inputs.data, position)
            results = type.outputs.data
        properties = {k: v for k, v in found.items() if k in cls.property_names}
        attributes = {k: v for k, v in found.items() if k not in cls.property_names}
        return cls.create(operands=operands, result_types=results, properties=properties, attributes=attributes)
