"""`tile.gather`: elements of a tile, picked along one dim by a tile of indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile import types
from tilefw.tile.dialect.axis_info import AxisInfo, any_element
from tilefw.tile.dialect.base import Value, integer_attr, value_of
from tilefw.tile.dialect.op_text import parse_type_at_end, print_types
from tilefw.tile.dialect.structural_op import Array, StructuralOp


class GatherOp(StructuralOp):
    """For each element of the i32 tile `%i` the element of `%x` at the same place in all dims but `axis`, and at this index there.

    Indices count modulo the size of the dim. `tile.gather %x[%i] axis 1 : tensor<4x64xf32>, tensor<4x8xi32>`.
    """

    name = "tile.gather"
    operand_count = 2
    property_names = frozenset({"axis"})
    capability = "gather"

    def __init__(self, source: Value, index: Value, axis: int) -> None:
        operands = [value_of(source), value_of(index)]
        result = self._result(*(operand.type for operand in operands))
        super().__init__(operands=operands, result_types=[result], properties={"axis": integer_attr(axis)})

    @staticmethod
    def _result(source: Attribute, index: Attribute) -> Attribute:
        return types.tile(types.shape_of(index), types.element_of(source))

    @property
    def source(self) -> SSAValue:
        """The tile whose elements are picked."""
        return self._operands[0]

    @property
    def index(self) -> SSAValue:
        """Which elements, for each of the result."""
        return self._operands[1]

    @property
    def axis(self) -> int:
        """The dim along which elements are picked."""
        return self.integer("axis")

    @property
    def moved_operands(self) -> Sequence[SSAValue]:
        return (self.source,)

    def elements(self, *parts: Array) -> Sequence[Array]:
        source, index = parts
        programs = max(len(source), len(index))
        within = index.astype(np.int64) % source.shape[self.axis + 1]
        whole = [np.broadcast_to(part, (programs, *part.shape[1:])) for part in (source, within)]
        return [np.take_along_axis(whole[0], whole[1], self.axis + 1)]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        inner, ones = operands[0], (1,) * len(types.shape_of(self.index.type))
        return AxisInfo((any_element(inner),) * len(ones), ones, ones, inner.low, inner.high)

    def problem(self) -> str | None:
        source, index, axis = self.source.type, self.index.type, self.axis
        if not types.is_tile(source) or not types.is_tile(index) or types.element_of(index) != types.i32:
            return f"takes a tile and a tile of i32 indices, got {source} and {index}"
        if types.is_pointer(source):
            return f"takes no pointers, got {source}"
        shape, wanted = types.shape_of(source), types.shape_of(index)
        if len(shape) != len(wanted) or not 0 <= axis < len(shape):
            return f"axis {axis} does not fit {source} and {index}"
        if any(a != b for dim, (a, b) in enumerate(zip(shape, wanted, strict=True)) if dim != axis):
            return f"the dims but {axis} differ: {source} and {index}"
        return self.result_problem(self._result(source, index))

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string("[")
        printer.print_operand(self.index)
        printer.print_string(f"] axis {self.axis}")
        print_types(printer, self.attributes, self.operand_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation("[")
        index = parser.parse_unresolved_operand()
        parser.parse_punctuation("]")
        parser.parse_keyword("axis")
        axis = parser.parse_integer(allow_negative=False)
        attributes, type = parse_type_at_end(parser)
        parser.parse_punctuation(",")
        op = cls(parser.resolve_operand(source, type), parser.resolve_operand(index, parser.parse_type()), axis)
        op.attributes = attributes
        return op
