"""The ops that give elements a new shape or order: splat, broadcast, reshape, expand_dims, trans, join, split, flip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile import types
from tilefw.tile.base import PURE, TileOp, Value, dense_i64, integer_attr


class _ShapeOp(TileOp):
    """One operand to a type that is printed: `tile.splat %x : f32 to tensor<128xf32>`."""

    operand_count = 1
    traits = PURE

    def __init__(self, source: Value, type: Attribute) -> None:
        super().__init__(operands=[SSAValue.get(source)], result_types=[type])

    @property
    def source(self) -> SSAValue:
        """The operand."""
        return self._operands[0]

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("to")
        return cls.create(operands=[value], result_types=[parser.parse_type()], attributes=attributes)

    def problem(self) -> str | None:
        source, result = self.source.type, self.results[0].type
        if types.element_of(source) != types.element_of(result):
            return f"element types differ: {source} and {result}"
        return self.shape_problem(types.shape_of(source), types.shape_of(result))

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        """What is wrong with the two shapes, in words."""
        raise NotImplementedError


class SplatOp(_ShapeOp):
    """A tile whose elements are all the one scalar. Takes the result's type, or its shape."""

    name = "tile.splat"

    def __init__(self, source: Value, type: Attribute | Sequence[int]) -> None:
        value = SSAValue.get(source)
        super().__init__(value, type if isinstance(type, Attribute) else types.tile(tuple(type), value.type))

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        return None if not source and result else f"a splat makes a tile of a scalar, got {source} to {result}"


class BroadcastOp(_ShapeOp):
    """A tile with its dims of size 1 repeated. Takes the result's type, or its shape."""

    name = "tile.broadcast"

    def __init__(self, source: Value, type: Attribute | Sequence[int]) -> None:
        value = SSAValue.get(source)
        super().__init__(
            value, type if isinstance(type, Attribute) else types.tile(tuple(type), types.element_of(value.type))
        )

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        fits = len(source) == len(result) > 0 and all(s in (1, r) for s, r in zip(source, result, strict=True))
        return None if fits else f"a broadcast repeats dims of size 1 only, got {source} to {result}"


class ReshapeOp(_ShapeOp):
    """The same elements in row-major order in another shape. Takes the result's type, or its shape."""

    name = "tile.reshape"

    def __init__(self, source: Value, type: Attribute | Sequence[int]) -> None:
        value = SSAValue.get(source)
        super().__init__(
            value, type if isinstance(type, Attribute) else types.tile(tuple(type), types.element_of(value.type))
        )

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        return None if _size(source) == _size(result) else f"{_size(source)} elements do not reshape to {_size(result)}"


class ExpandDimsOp(TileOp):
    """A tile with a new dim of size 1 at `axis`: `tile.expand_dims %x axis 1 : tensor<128xf32>`."""

    name = "tile.expand_dims"
    operand_count = 1
    property_names = frozenset({"axis"})
    traits = PURE

    def __init__(self, source: Value, axis: int) -> None:
        value = SSAValue.get(source)
        super().__init__(operands=[value], result_types=[self._result(value.type, axis)], properties={"axis": integer_attr(axis)})

    @staticmethod
    def _result(type: Attribute, axis: int) -> Attribute:
        shape = types.shape_of(type)
        return types.tile((*shape[:axis], 1, *shape[axis:]), types.element_of(type))

    @property
    def source(self) -> SSAValue:
        """The tile."""
        return self._operands[0]

    @property
    def axis(self) -> int:
        """Where the new dim stands in the result."""
        return self.integer("axis")

    def problem(self) -> str | None:
        rank = len(types.shape_of(self.source.type))
        if not types.is_tile(self.source.type) or not 0 <= self.axis <= rank:
            return f"axis {self.axis} does not fit {self.source.type}"
        wanted = self._result(self.source.type, self.axis)
        return None if self.results[0].type == wanted else f"the result is {self.results[0].type}, expected {wanted}"

    def print(self, printer: Printer) -> None:
        print_with_axis(printer, self.source, self.axis, self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source, axis, attributes = parse_with_axis(parser)
        op = cls(source, axis)
        op.attributes = attributes
        return op


class TransOp(TileOp):
    """A tile with its dims permuted: result dim i is source dim `order[i]`; `tile.trans %x [1, 0] : tensor<64x32xf16>`."""

    name = "tile.trans"
    operand_count = 1
    property_names = frozenset({"order"})
    traits = PURE

    def __init__(self, source: Value, order: Sequence[int]) -> None:
        value = SSAValue.get(source)
        order = tuple(order)
        super().__init__(operands=[value], result_types=[self._result(value.type, order)], properties={"order": dense_i64(order)})

    @staticmethod
    def _result(type: Attribute, order: tuple[int, ...]) -> Attribute:
        shape = types.shape_of(type)
        return types.tile(tuple(shape[i] for i in order), types.element_of(type))

    @property
    def source(self) -> SSAValue:
        """The tile."""
        return self._operands[0]

    @property
    def order(self) -> tuple[int, ...]:
        """The source dim of each result dim."""
        attribute = self.properties.get("order")
        return tuple(attribute.get_values()) if isinstance(attribute, DenseArrayBase) else ()  # type: ignore[return-value]

    def problem(self) -> str | None:
        rank = len(types.shape_of(self.source.type))
        if rank == 0 or sorted(self.order) != list(range(rank)):
            return f"order {list(self.order)} is no permutation of the dims of {self.source.type}"
        wanted = self._result(self.source.type, self.order)
        return None if self.results[0].type == wanted else f"the result is {self.results[0].type}, expected {wanted}"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string(f" {list(self.order)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        position = parser.pos
        order = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(source, parser.parse_type())
        if sorted(order) != list(range(len(types.shape_of(value.type)))):
            parser.raise_error(f"order {order} is no permutation of the dims of {value.type}", position)
        op = cls(value, order)
        op.attributes = attributes
        return op


class JoinOp(TileOp):
    """Two tiles of one type side by side in a new last dim of size 2: `tile.join %a, %b : tensor<64xf32>`."""

    name = "tile.join"
    operand_count = 2
    traits = PURE

    def __init__(self, a: Value, b: Value) -> None:
        left = SSAValue.get(a)
        super().__init__(operands=[left, SSAValue.get(b)], result_types=[self._result(left.type)])

    @staticmethod
    def _result(type: Attribute) -> Attribute:
        return types.tile((*types.shape_of(type), 2), types.element_of(type))

    def problem(self) -> str | None:
        left, right = self.operand_types
        if not types.is_tile(left) or left != right:
            return f"joins two tiles of one type, got {left} and {right}"
        wanted = self._result(left)
        return None if self.results[0].type == wanted else f"the result is {self.results[0].type}, expected {wanted}"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self._operands[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        left = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        right = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        op = cls(parser.resolve_operand(left, type), parser.resolve_operand(right, type))
        op.attributes = attributes
        return op


class SplitOp(TileOp):
    """The two halves of a last dim of size 2, without that dim: `%a, %b = tile.split %x : tensor<64x2xf32>`."""

    name = "tile.split"
    operand_count = 1
    result_count = 2
    traits = PURE

    def __init__(self, source: Value) -> None:
        value = SSAValue.get(source)
        super().__init__(operands=[value], result_types=[self._result(value.type)] * 2)

    @staticmethod
    def _result(type: Attribute) -> Attribute:
        return types.tile(types.shape_of(type)[:-1], types.element_of(type))

    @property
    def source(self) -> SSAValue:
        """The tile."""
        return self._operands[0]

    def problem(self) -> str | None:
        shape = types.shape_of(self.source.type)
        if len(shape) < 2 or shape[-1] != 2:
            return f"splits a tile of at least two dims whose last dim is 2, got {self.source.type}"
        wanted = self._result(self.source.type)
        found = next((result.type for result in self.results if result.type != wanted), wanted)
        return None if found == wanted else f"the results are {wanted}, got {found}"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(parser.resolve_operand(source, parser.parse_type()))
        op.attributes = attributes
        return op


class FlipOp(TileOp):
    """A tile in reverse order along `axis`: `tile.flip %x axis 0 : tensor<64xf32>`."""

    name = "tile.flip"
    operand_count = 1
    property_names = frozenset({"axis"})
    traits = PURE

    def __init__(self, source: Value, axis: int) -> None:
        value = SSAValue.get(source)
        super().__init__(operands=[value], result_types=[value.type], properties={"axis": integer_attr(axis)})

    @property
    def source(self) -> SSAValue:
        """The tile."""
        return self._operands[0]

    @property
    def axis(self) -> int:
        """The dim that is reversed."""
        return self.integer("axis")

    def problem(self) -> str | None:
        if not 0 <= self.axis < len(types.shape_of(self.source.type)):
            return f"axis {self.axis} does not fit {self.source.type}"
        found = self.results[0].type
        return None if found == self.source.type else f"the result is {found}, expected {self.source.type}"

    def print(self, printer: Printer) -> None:
        print_with_axis(printer, self.source, self.axis, self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source, axis, attributes = parse_with_axis(parser)
        op = cls(source, axis)
        op.attributes = attributes
        return op


def print_with_axis(printer: Printer, source: SSAValue, axis: int, attributes: Mapping[str, Attribute]) -> None:
    """` %x axis 1 : tensor<128xf32>`."""
    printer.print_string(" ")
    printer.print_operand(source)
    printer.print_string(f" axis {axis}")
    printer.print_op_attributes(attributes)
    printer.print_string(" : ")
    printer.print_attribute(source.type)


def parse_with_axis(parser: Parser) -> tuple[SSAValue, int, dict[str, Attribute]]:
    """The reverse of `print_with_axis`."""
    source = parser.parse_unresolved_operand()
    parser.parse_keyword("axis")
    axis = parser.parse_integer(allow_negative=False)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return parser.resolve_operand(source, parser.parse_type()), axis, attributes


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for dim in shape:
        size *= dim
    return size


SHAPE_OPS: tuple[type[TileOp], ...] = (SplatOp, BroadcastOp, ReshapeOp, ExpandDimsOp, TransOp, JoinOp, SplitOp, FlipOp)
