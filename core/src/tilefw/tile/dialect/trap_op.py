"""The op that gives a launch up, with a message: what a failed assertion of a debug build comes to."""

from __future__ import annotations

from typing import Self

from xdsl.ir import OpTraits
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.tile.dialect.base import TileOp, string_attr


class TrapOp(TileOp):
    """The program gives up: `tile.trap "the message"`. Nothing that follows it counts."""

    name = "tile.trap"
    operand_count = 0
    result_count = 0
    property_names = frozenset({"message"})
    # It is moved over no access of memory, and kept.
    traits = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))

    def __init__(self, message: str) -> None:
        super().__init__(properties={"message": string_attr(message)})

    @property
    def message(self) -> str:
        """What the report of it says."""
        return self.word("message")

    def print(self, printer: Printer) -> None:
        """Write the message behind the op's name."""
        printer.print_string(" ")
        printer.print_string_literal(self.message)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        op = cls(parser.parse_str_literal())
        op.attributes = parser.parse_optional_attr_dict()
        return op
