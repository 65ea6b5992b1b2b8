"""The op that reads what the machine knows and no program determines: the time, and the processor that runs the program."""

from __future__ import annotations

from typing import Self

from xdsl.ir import Attribute, OpTraits
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.tile import types
from tilefw.tile.dialect.base import TileOp, string_attr

OBSERVED: dict[str, Attribute] = {"nanoseconds": types.i64, "ticks": types.i64, "processor": types.i32}
"""What can be read, with its type. `nanoseconds` since some moment and `ticks` of the chip's clock of constant frequency never go
back within a program, and all programs of a launch have one clock; `processor` numbers
multiprocessors or compute units, on a chip of several dies perhaps those of each die apart."""


class ObserveOp(TileOp):
    """What the machine knows when the program comes here: `tile.observe nanoseconds : i64`.

    One number for the whole program. Any number is right, as far as the reference can tell: it counts its own time.
    """

    name = "tile.observe"
    operand_count = 0
    property_names = frozenset({"what"})
    # It is moved over no access of memory, and each reading is one of its own.
    traits = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))

    def __init__(self, what: str) -> None:
        super().__init__(result_types=[OBSERVED[what]], properties={"what": string_attr(what)})

    @property
    def what(self) -> str:
        """A key of `OBSERVED`."""
        return self.word("what")

    @property
    def is_time(self) -> bool:
        """Whether two readings differ."""
        return self.what != "processor"

    def problem(self) -> str | None:
        if self.what not in OBSERVED:
            return f"{self.what!r} is none of {', '.join(OBSERVED)}"
        return self.result_problem(OBSERVED[self.what])

    def print(self, printer: Printer) -> None:
        """Write what is read and its type behind the op's name."""
        printer.print_string(f" {self.what} : ")
        printer.print_attribute(self.result.type)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        position = parser.pos
        what = parser.parse_identifier()
        if what not in OBSERVED:
            parser.raise_error(f"{what!r} is none of {', '.join(OBSERVED)}", position)
        parser.parse_punctuation(":")
        type = parser.parse_type()
        attributes = parser.parse_optional_attr_dict()
        return cls.create(result_types=[type], properties={"what": string_attr(what)}, attributes=attributes)
