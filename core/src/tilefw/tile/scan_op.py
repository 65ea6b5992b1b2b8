"""Scans: every element along an axis is combined with all before it, so that each result is a reduction of a prefix.

    %sums = tile.scan %x axis 1 : tensor<16x32xf32> {
    ^bb0(%a : f32, %b : f32):
      %c = tile.addf %a, %b : f32
      tile.scan_return %c : f32
    }

Elements stay in their order, the earlier ones the function's first arguments; how they are grouped is left open, as in Triton's
`tt.scan`, so the function must be associative as far as its user cares. The first result is the first element. `reverse` (behind
the axis) begins at the axis's end: the function's first arguments are then the elements of higher indices.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Region
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile.base import Value
from tilefw.tile.combine_op import CombineOp, CombineReturnOp


class ScanReturnOp(CombineReturnOp):
    """Ends a combine function with its results: `tile.scan_return %c : f32`."""

    name = "tile.scan_return"


class ScanOp(CombineOp):
    """n >= 1 tiles of one shape scanned along `axis` together; n results of the tiles' own types."""

    name = "tile.scan"
    property_names = frozenset({"axis", "reverse"})
    ends_with = ScanReturnOp
    verb = "scans"
    noun = "scan"

    def __init__(self, operands: Sequence[Value], axis: int, combine: Region, reverse: bool = False) -> None:
        super().__init__(operands, axis, combine)
        if reverse:
            self.properties["reverse"] = UnitAttr()

    @classmethod
    def result_type(cls, type: Attribute, axis: int) -> Attribute:
        return type

    @property
    def reverse(self) -> bool:
        """Whether the last element comes first."""
        return "reverse" in self.properties

    def print_words(self, printer: Printer) -> None:
        if self.reverse:
            printer.print_string(" reverse")

    @classmethod
    def parse_words(cls, parser: Parser) -> dict[str, Attribute]:
        return {"reverse": UnitAttr()} if parser.parse_optional_keyword("reverse") else {}
