"""The op that prints: a text and the elements of values, which the host writes to its standard output after the launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import OpTraits
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.api.dtypes import DTYPES
from tilefw.tile import types
from tilefw.tile.dialect.base import TileOp, Value, string_attr, value_of
from tilefw.tile.dialect.op_text import print_types

POINTER = "pointer"  # what `elements` says of pointers, whatever they point to


class PrintOp(TileOp):
    """`tile.print " x: " hex ["uint8"] %x : tensor<128xi8>`: a line for each element, which `hex` asks for in base 16.

    `elements` are the element types in Triton's spelling, which tells signed integers from unsigned ones. A program's prints keep
    their order. Targets take the op as `lower_prints` writes it: a record in memory.
    """

    name = "tile.print"
    result_count = 0
    property_names = frozenset({"prefix", "hex", "elements"})
    # It is moved over no access of memory, and kept.
    traits = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))

    def __init__(self, prefix: str, values: Sequence[Value], elements: Sequence[str], hex: bool = False) -> None:
        super().__init__(
            operands=[value_of(value) for value in values],
            properties={
                "prefix": string_attr(prefix), "elements": ArrayAttr([string_attr(name) for name in elements]),
                **({"hex": UnitAttr()} if hex else {}),
            },
        )

    @property
    def prefix(self) -> str:
        """The text before each element."""
        return self.word("prefix")

    @property
    def hex(self) -> bool:
        """Whether integers and floats are written in base 16."""
        return "hex" in self.properties

    @property
    def elements(self) -> tuple[str, ...]:
        """The element type of each operand, or `pointer`."""
        return self.words("elements")

    def problem(self) -> str | None:
        if len(self.elements) != len(self._operands):
            return f"names {len(self.elements)} element types for {len(self._operands)} operands"
        for name, value in zip(self.elements, self._operands, strict=True):
            element = types.element_of(value.type)
            known = types.is_pointer(element) if name == POINTER else name in DTYPES and types.ir_type(DTYPES[name]) == element
            if not known:
                return f"a value of {value.type} has no elements of {name}"
        return None

    def print(self, printer: Printer) -> None:
        """Write prefix, element types, operands and their types behind the op's name."""
        printer.print_string(" ")
        printer.print_string_literal(self.prefix)
        printer.print_string(" hex [" if self.hex else " [")
        printer.print_list(self.elements, printer.print_string_literal)
        printer.print_string("] ")
        printer.print_list(self._operands, printer.print_operand)
        print_types(printer, self.attributes, self.operand_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        prefix = parser.parse_str_literal()
        hex = parser.parse_optional_keyword("hex") is not None
        elements = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        position = parser.pos
        values = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        found = parser.parse_optional_undelimited_comma_separated_list(parser.parse_optional_type, parser.parse_type)
        op = cls(prefix, parser.resolve_operands(values or [], found or [], position), elements, hex)
        op.attributes = attributes
        return op
