"""Reductions and scans: one or more tiles of one shape are combined along an axis by a small scalar function.

    %sum = tile.reduce %x axis 1 : tensor<16x32xf32> {        %sums = tile.scan %x axis 1 : tensor<16x32xf32> {
    ^bb0(%a : f32, %b : f32):                                 ^bb0(%a : f32, %b : f32):
      %c = tile.addf %a, %b : f32                               %c = tile.addf %a, %b : f32
      tile.reduce_return %c : f32                               tile.scan_return %c : f32
    }                                                         }

The function is a region of one block with 2n scalar arguments, first those combined so far, then the next ones, of the tiles'
element types; elementwise ops and constants on scalars lead to a terminator with n values. It uses nothing from outside.

A reduction takes any tree over the elements in any order, as Triton's `tt.reduce`: the function must be associative and
commutative as far as its user cares. There is no initial value: an axis of size 1 gives its element. A scan combines each element
with all before it. Elements keep their order, the earlier ones are the function's first arguments; the grouping is open, as in
Triton's `tt.scan`, so the function must be associative as far as its user cares. The first result is the first element. `reverse`
(after the axis) begins at the axis's end: the function's first arguments are then the elements of higher indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, OpTraits, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure

from tilefw.tile import types
from tilefw.tile.dialect.base import TileOp, Value, integer_attr, value_of
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.elementwise_op import ElementwiseOp
from tilefw.tile.dialect.op_text import parse_operands, parse_types_at_end, print_types


class CombineReturnOp(TileOp):
    """Ends a combine function with its results; each op that combines has its own."""

    result_count = 0
    traits = OpTraits(lambda: (IsTerminator(), Pure()))

    def __init__(self, values: Sequence[Value]) -> None:
        super().__init__(operands=[value_of(value) for value in values])

    def problem(self) -> str | None:
        parent = self.parent_op()
        fits = isinstance(parent, CombineOp) and isinstance(self, parent.ends_with)
        return None if fits else f"ends the function of a {self.name.removesuffix('_return')} only"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        print_types(printer, self.attributes, self.operand_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        position = parser.pos
        unresolved = parse_operands(parser)
        attributes, found = parse_types_at_end(parser)
        op = cls(parser.resolve_operands(unresolved, found, position))
        op.attributes = attributes
        return op


class CombineOp(TileOp):
    """Combines elements along `axis`. A subclass says what its results are, and with what its function ends."""

    result_count = None
    property_names = frozenset({"axis"})
    traits = OpTraits(lambda: (Pure(), IsolatedFromAbove()))
    ends_with: ClassVar[type[CombineReturnOp]]
    verb: ClassVar[str]  # what the op does to its tiles, for messages
    noun: ClassVar[str]  # what it is

    def __init__(self, operands: Sequence[Value], axis: int, combine: Region) -> None:
        values = [value_of(operand) for operand in operands]
        super().__init__(
            operands=values, result_types=[self.result_type(value.type, axis) for value in values],
            properties={"axis": integer_attr(axis)}, regions=[combine],
        )

    @classmethod
    def result_type(cls, type: Attribute, axis: int) -> Attribute:
        """The type of the result for a tile of `type`."""
        raise NotImplementedError(cls.name)

    @property
    def axis(self) -> int:
        """The dim along which elements are combined."""
        return self.integer("axis")

    @property
    def combine(self) -> Block:
        """The combine function: 2n arguments, ends in n values."""
        return self.regions[0].block

    @property
    def extent(self) -> int:
        """How many elements the axis has."""
        return types.shape_of(self._operands[0].type)[self.axis]

    @property
    def component_rows(self) -> list[str | None]:
        """For each result, the elementwise row that combines its own two arguments and nothing else: sums in a tuple are sums."""
        block, count = self.combine, len(self._operands)
        last = block.last_op
        assert last is not None
        return [_row_of(result.owner, (block.args[i], block.args[count + i])) for i, result in enumerate(last._operands)]

    @property
    def row(self) -> str | None:
        """The row of the elementwise table that a function of one element type applies and nothing else; None for any other."""
        first = self.combine.first_op
        alone = len(self._operands) == 1 and first is not None and first.next_op is self.combine.last_op
        return self.component_rows[0] if alone else None

    def problem(self) -> str | None:
        return self._operands_problem() or self._region_problem() or self._results_problem()

    def _operands_problem(self) -> str | None:
        if not self._operands:
            return f"{self.verb} at least one tile"
        shape = types.shape_of(self._operands[0].type)
        for operand in self._operands:
            if not types.is_tile(operand.type) or types.is_pointer(operand.type):
                return f"{self.verb} tiles of numbers, got {operand.type}"
            if types.shape_of(operand.type) != shape:
                return f"{self.verb} tiles of one shape, got {self._operands[0].type} and {operand.type}"
        return None if 0 <= self.axis < len(shape) else f"axis {self.axis} does not fit {self._operands[0].type}"

    def _region_problem(self) -> str | None:
        if len(self.regions) != 1 or len(self.regions[0].blocks) != 1:
            return "has one function of one block"
        block = self.combine
        elements = [types.element_of(operand.type) for operand in self._operands]
        arguments = [argument.type for argument in block.args]
        if arguments != elements * 2:
            return f"its function takes {_listed(elements * 2)}, got {_listed(arguments)}"
        if not isinstance(block.last_op, self.ends_with):
            return f"its function ends in {self.ends_with.name}"
        if [value.type for value in block.last_op._operands] != elements:
            return f"its function gives {_listed(elements)}, got {_listed(block.last_op.operand_types)}"
        return next((problem for op in block.ops if (problem := _body_problem(op, block)) is not None), None)

    def _results_problem(self) -> str | None:
        wanted = [self.result_type(operand.type, self.axis) for operand in self._operands]
        found = [result.type for result in self.results]
        return None if found == wanted else f"the results are {_listed(wanted)}, got {_listed(found)}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        printer.print_string(f" axis {self.axis}")
        self.print_words(printer)
        print_types(printer, self.attributes, self.operand_types)
        printer.print_string(" ")
        printer.print_region(self.regions[0])

    def print_words(self, printer: Printer) -> None:
        """Prints what follows the axis."""

    @classmethod
    def parse_words(cls, parser: Parser) -> dict[str, Attribute]:
        """The reverse of `print_words`, as properties."""
        return {}

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        position = parser.pos
        unresolved = parse_operands(parser)
        parser.parse_keyword("axis")
        axis = parser.parse_integer(allow_negative=False)
        words = cls.parse_words(parser)
        attributes, found = parse_types_at_end(parser)
        if any(axis >= len(types.shape_of(type)) for type in found):
            parser.raise_error(f"axis {axis} does not fit {_listed(found)}", position)
        op = cls(parser.resolve_operands(unresolved, found, position), axis, parser.parse_region())
        op.properties.update(words)
        op.attributes = attributes
        return op


class ReduceReturnOp(CombineReturnOp):
    """Ends a combine function with its results: `tile.reduce_return %c : f32`."""

    name = "tile.reduce_return"


class ReduceOp(CombineOp):
    """n >= 1 tiles of one shape combined along `axis`; n results without that dim, scalars when no dim is left."""

    name = "tile.reduce"
    ends_with = ReduceReturnOp
    verb = "reduces"
    noun = "reduction"

    @classmethod
    def result_type(cls, type: Attribute, axis: int) -> Attribute:
        shape = types.shape_of(type)
        return types.tile((*shape[:axis], *shape[axis + 1 :]), types.element_of(type))


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


def _row_of(op: Operation | Block, pair: tuple[SSAValue, SSAValue]) -> str | None:
    """The row of an op that combines just these two."""
    if not isinstance(op, ElementwiseOp):
        return None
    return op.row.name if op._operands == pair or (op.row.commutative and op._operands == pair[::-1]) else None


def _body_problem(op: Operation, block: Block) -> str | None:
    """What keeps an op out of a combine function."""
    if not isinstance(op, ElementwiseOp | ConstantOp | CombineReturnOp):
        return f"its function has elementwise ops and constants only, got {op.name}"
    if any(types.is_tile(value.type) for value in (*op._operands, *op.results)):
        return f"its function computes on scalars, got {op.name} on a tile"
    for value in op._operands:
        home = value.owner
        if (home if isinstance(home, Block) else home.parent) is not block:
            return f"its function may use only its arguments, and {op.name} uses a value from outside"
    return None


def _listed(found: Sequence[Attribute]) -> str:
    return ", ".join(str(type) for type in found) or "nothing"
