"""Reductions: one or more tiles are combined along an axis by a small scalar function, in an order that is left open.

    %sum = tile.reduce %x axis 1 : tensor<16x32xf32> {
    ^bb0(%a : f32, %b : f32):
      %c = tile.addf %a, %b : f32
      tile.reduce_return %c : f32
    }

Any tree over the elements in any order may be taken, as in Triton, whose `tt.reduce` names no order either: the function must be
associative and commutative as far as its user cares. There is no initial value: an axis of size 1 gives its element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.ir import Attribute, Block, Operation, OpTraits, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure

from tilefw.tile import types
from tilefw.tile.base import TileOp, Value, integer_attr
from tilefw.tile.constant_op import ConstantOp
from tilefw.tile.elementwise import ElementwiseOp
from tilefw.tile.op_text import parse_operands, parse_types_at_end, print_types


class ReduceReturnOp(TileOp):
    """Ends a combine function with its results: `tile.reduce_return %c : f32`."""

    name = "tile.reduce_return"
    result_count = 0
    traits = OpTraits(lambda: (IsTerminator(), Pure()))

    def __init__(self, values: Sequence[Value]) -> None:
        super().__init__(operands=[SSAValue.get(value) for value in values])

    def problem(self) -> str | None:
        return None if isinstance(self.parent_op(), ReduceOp) else "ends the function of a tile.reduce only"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        print_types(printer, self.attributes, self.operand_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        unresolved = parse_operands(parser)
        attributes, found = parse_types_at_end(parser)
        op = cls(parser.resolve_operands(unresolved, found, position))
        op.attributes = attributes
        return op


class ReduceOp(TileOp):
    """n >= 1 tiles of one shape combined along `axis`; n results without that dim, scalars when no dim is left.

    `combine` is a region of one block with 2n scalar arguments, first those combined so far, then the next ones, of the tiles'
    element types; elementwise ops and constants on scalars lead to its `tile.reduce_return` of n values. It uses nothing from
    outside.
    """

    name = "tile.reduce"
    result_count = None
    property_names = frozenset({"axis"})
    traits = OpTraits(lambda: (Pure(), IsolatedFromAbove()))

    def __init__(self, operands: Sequence[Value], axis: int, combine: Region) -> None:
        values = [SSAValue.get(operand) for operand in operands]
        super().__init__(
            operands=values, result_types=[_without(value.type, axis) for value in values],
            properties={"axis": integer_attr(axis)}, regions=[combine],
        )

    @property
    def axis(self) -> int:
        """The dim that goes."""
        return self.integer("axis")

    @property
    def combine(self) -> Block:
        """The combine function: 2n arguments, ends in a `tile.reduce_return` of n values."""
        return self.regions[0].block

    @property
    def extent(self) -> int:
        """How many elements are combined into one."""
        return types.shape_of(self._operands[0].type)[self.axis]

    @property
    def row(self) -> str | None:
        """The row of the elementwise table that a function of one element type applies and nothing else; None for any other."""
        block = self.combine
        first, last = block.first_op, block.last_op
        if len(self._operands) != 1 or not isinstance(first, ElementwiseOp) or first.next_op is not last or last is None:
            return None
        arguments = tuple(block.args)
        same = first._operands == arguments or (first.row.commutative and first._operands == arguments[::-1])
        return first.row.name if same and last._operands == (first.results[0],) else None

    def problem(self) -> str | None:
        return self._operands_problem() or self._region_problem() or self._results_problem()

    def _operands_problem(self) -> str | None:
        if not self._operands:
            return "reduces at least one tile"
        shape = types.shape_of(self._operands[0].type)
        for operand in self._operands:
            if not types.is_tile(operand.type) or types.is_pointer(operand.type):
                return f"reduces tiles of numbers, got {operand.type}"
            if types.shape_of(operand.type) != shape:
                return f"reduces tiles of one shape, got {self._operands[0].type} and {operand.type}"
        return None if 0 <= self.axis < len(shape) else f"axis {self.axis} does not fit {self._operands[0].type}"

    def _region_problem(self) -> str | None:
        if len(self.regions) != 1 or len(self.regions[0].blocks) != 1:
            return "has one function of one block"
        block = self.combine
        elements = [types.element_of(operand.type) for operand in self._operands]
        arguments = [argument.type for argument in block.args]
        if arguments != elements * 2:
            return f"its function takes {_listed(elements * 2)}, got {_listed(arguments)}"
        if not isinstance(block.last_op, ReduceReturnOp):
            return "its function ends in tile.reduce_return"
        if [value.type for value in block.last_op._operands] != elements:
            return f"its function gives {_listed(elements)}, got {_listed(block.last_op.operand_types)}"
        return next((problem for op in block.ops if (problem := _body_problem(op, block)) is not None), None)

    def _results_problem(self) -> str | None:
        wanted = [_without(operand.type, self.axis) for operand in self._operands]
        found = [result.type for result in self.results]
        return None if found == wanted else f"the results are {_listed(wanted)}, got {_listed(found)}"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        printer.print_string(f" axis {self.axis}")
        print_types(printer, self.attributes, self.operand_types)
        printer.print_string(" ")
        printer.print_region(self.regions[0])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        unresolved = parse_operands(parser)
        parser.parse_keyword("axis")
        axis = parser.parse_integer(allow_negative=False)
        attributes, found = parse_types_at_end(parser)
        if any(axis >= len(types.shape_of(type)) for type in found):
            parser.raise_error(f"axis {axis} does not fit {_listed(found)}", position)
        op = cls(parser.resolve_operands(unresolved, found, position), axis, parser.parse_region())
        op.attributes = attributes
        return op


def _without(type: Attribute, axis: int) -> Attribute:
    shape = types.shape_of(type)
    return types.tile((*shape[:axis], *shape[axis + 1 :]), types.element_of(type))


def _body_problem(op: Operation, block: Block) -> str | None:
    """What keeps an op out of a combine function."""
    if not isinstance(op, ElementwiseOp | ConstantOp | ReduceReturnOp):
        return f"its function has elementwise ops and constants only, got {op.name}"
    if any(types.is_tile(value.type) for value in (*op._operands, *op.results)):
        return f"its function computes on scalars, got {op.name} on a tile"
    for value in op._operands:
        home = value.owner
        if (home if isinstance(home, Block) else home.parent) is not block:
            return f"its function uses what it is given only, and {op.name} uses a value from outside"
    return None


def _listed(found: Sequence[Attribute]) -> str:
    return ", ".join(str(type) for type in found) or "nothing"
