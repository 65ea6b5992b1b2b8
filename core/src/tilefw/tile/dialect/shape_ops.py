"""The ops that give elements a new shape or order: splat, broadcast, reshape, expand_dims, trans, join, split, flip."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Self

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile import types
from tilefw.tile.dialect.base import PURE, TileOp, Value, dense_i64, integer_attr
from tilefw.tile.dialect.op_text import parse_type_at_end, print_types


class _OneSourceOp(TileOp):
    """An op without effect on one tile (or the scalar that is splat)."""

    operand_count = 1
    traits = PURE

    @property
    def source(self) -> SSAValue:
        """The operand."""
        return self._operands[0]

    def _print_source(self, printer: Printer, words: str = "") -> None:
        """` %x words : tensor<128xf32>`."""
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string(words)
        print_types(printer, self.attributes, [self.source.type])


class _ShapeOp(_OneSourceOp):
    """One operand to a type that is printed: `tile.splat %x : f32 to tensor<128xf32>`. Takes the result's type, or its shape."""

    def __init__(self, source: Value, type: Attribute | Sequence[int]) -> None:
        value = SSAValue.get(source)
        result = type if isinstance(type, Attribute) else types.tile(tuple(type), types.element_of(value.type))
        super().__init__(operands=[value], result_types=[result])

    def print(self, printer: Printer) -> None:
        self._print_source(printer)
        printer.print_string(" to ")
        printer.print_attribute(self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        attributes, type = parse_type_at_end(parser)
        value = parser.resolve_operand(source, type)
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
    """A tile whose elements are all the one scalar."""

    name = "tile.splat"

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        return None if not source and result else f"a splat makes a tile of a scalar, got {source} to {result}"


class BroadcastOp(_ShapeOp):
    """A tile with its dims of size 1 repeated."""

    name = "tile.broadcast"

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        fits = len(source) == len(result) > 0 and all(s in (1, r) for s, r in zip(source, result, strict=True))
        return None if fits else f"a broadcast repeats dims of size 1 only, got {source} to {result}"


class ReshapeOp(_ShapeOp):
    """The same elements in row-major order in another shape."""

    name = "tile.reshape"

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        return None if prod(source) == prod(result) else f"{prod(source)} elements do not reshape to {prod(result)}"


class _AxisOp(_OneSourceOp):
    """One tile and an axis: `tile.flip %x axis 0 : tensor<64xf32>`."""

    property_names = frozenset({"axis"})

    def __init__(self, source: Value, axis: int) -> None:
        value = SSAValue.get(source)
        super().__init__(operands=[value], result_types=[self._result(value.type, axis)], properties={"axis": integer_attr(axis)})

    @staticmethod
    def _result(type: Attribute, axis: int) -> Attribute:
        raise NotImplementedError

    @property
    def axis(self) -> int:
        """The dim that the op is about."""
        return self.integer("axis")

    def _axes(self) -> int:
        """How many axes there are to choose from."""
        return len(types.shape_of(self.source.type))

    def problem(self) -> str | None:
        if not types.is_tile(self.source.type) or not 0 <= self.axis < self._axes():
            return f"axis {self.axis} does not fit {self.source.type}"
        return self.result_problem(self._result(self.source.type, self.axis))

    def print(self, printer: Printer) -> None:
        self._print_source(printer, f" axis {self.axis}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("axis")
        axis = parser.parse_integer(allow_negative=False)
        attributes, type = parse_type_at_end(parser)
        op = cls(parser.resolve_operand(source, type), axis)
        op.attributes = attributes
        return op


class ExpandDimsOp(_AxisOp):
    """A tile with a new dim of size 1, which stands at `axis` of the result: `tile.expand_dims %x axis 1 : tensor<128xf32>`."""

    name = "tile.expand_dims"

    @staticmethod
    def _result(type: Attribute, axis: int) -> Attribute:
        shape = types.shape_of(type)
        return types.tile((*shape[:axis], 1, *shape[axis:]), types.element_of(type))

    def _axes(self) -> int:
        return super()._axes() + 1


class TransOp(_OneSourceOp):
    """A tile with its dims permuted: result dim i is source dim `order[i]`; `tile.trans %x [1, 0] : tensor<64x32xf16>`."""

    name = "tile.trans"
    property_names = frozenset({"order"})

    def __init__(self, source: Value, order: Sequence[int]) -> None:
        value = SSAValue.get(source)
        order = tuple(order)
        super().__init__(operands=[value], result_types=[self._result(value.type, order)], properties={"order": dense_i64(order)})

    @staticmethod
    def _result(type: Attribute, order: tuple[int, ...]) -> Attribute:
        shape = types.shape_of(type)
        return types.tile(tuple(shape[i] for i in order), types.element_of(type))

    @property
    def order(self) -> tuple[int, ...]:
        """The source dim of each result dim."""
        return self.integers("order")

    def problem(self) -> str | None:
        rank = len(types.shape_of(self.source.type))
        if rank == 0 or sorted(self.order) != list(range(rank)):
            return f"order {list(self.order)} is no permutation of the dims of {self.source.type}"
        return self.result_problem(self._result(self.source.type, self.order))

    def print(self, printer: Printer) -> None:
        self._print_source(printer, f" {list(self.order)}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        position = parser.pos
        order = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        attributes, type = parse_type_at_end(parser)
        value = parser.resolve_operand(source, type)
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
        return self.result_problem(self._result(left))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        print_types(printer, self.attributes, [self._operands[0].type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        left = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        right = parser.parse_unresolved_operand()
        attributes, type = parse_type_at_end(parser)
        op = cls(parser.resolve_operand(left, type), parser.resolve_operand(right, type))
        op.attributes = attributes
        return op


class SplitOp(_OneSourceOp):
    """The two halves of a last dim of size 2, without that dim: `%a, %b = tile.split %x : tensor<64x2xf32>`."""

    name = "tile.split"
    result_count = 2

    def __init__(self, source: Value) -> None:
        value = SSAValue.get(source)
        super().__init__(operands=[value], result_types=[self._result(value.type)] * 2)

    @staticmethod
    def _result(type: Attribute) -> Attribute:
        return types.tile(types.shape_of(type)[:-1], types.element_of(type))

    def problem(self) -> str | None:
        shape = types.shape_of(self.source.type)
        if len(shape) < 2 or shape[-1] != 2:
            return f"splits a tile of at least two dims whose last dim is 2, got {self.source.type}"
        wanted = self._result(self.source.type)
        found = next((result.type for result in self.results if result.type != wanted), wanted)
        return None if found == wanted else f"the results are {wanted}, got {found}"

    def print(self, printer: Printer) -> None:
        self._print_source(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        attributes, type = parse_type_at_end(parser)
        op = cls(parser.resolve_operand(source, type))
        op.attributes = attributes
        return op


class FlipOp(_AxisOp):
    """A tile in reverse order along `axis`: `tile.flip %x axis 0 : tensor<64xf32>`."""

    name = "tile.flip"

    @staticmethod
    def _result(type: Attribute, axis: int) -> Attribute:
        return type


SHAPE_OPS: tuple[type[TileOp], ...] = (SplatOp, BroadcastOp, ReshapeOp, ExpandDimsOp, TransOp, JoinOp, SplitOp, FlipOp)
