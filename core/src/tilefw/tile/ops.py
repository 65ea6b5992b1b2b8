"""The tile dialect's own ops that make, shape and place values; memory ops stand in `memory_ops.py`, rows in `elementwise/`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, OpTrait, Pure

from tilefw.tile import types
from tilefw.tile.base import PURE, TileOp, Value, dense_i64, integer_attr, literal_attr, literal_text, parse_literal
from tilefw.tile.block_ops import LoadBlockOp, StoreBlockOp
from tilefw.tile.memory_ops import BarrierOp, LoadOp, StoreOp

__all__ = [
    "AddPtrOp", "BarrierOp", "BroadcastOp", "ConstantOp", "ExpandDimsOp", "IotaOp", "LoadBlockOp", "LoadOp", "NumProgramsOp",
    "OPS", "ProgramIdOp", "ReshapeOp", "SplatOp", "StoreBlockOp", "StoreOp", "TransOp",
]

AXES = 3  # a grid has up to three axes


class ConstantOp(TileOp):
    """A number as a scalar, or as a tile whose elements are all that number: `tile.constant 1.5 : tensor<128xf32>`."""

    name = "tile.constant"
    operand_count = 0
    property_names = frozenset({"value"})
    traits = OpTraits(lambda: (Pure(), _CONSTANT_LIKE))

    def __init__(self, value: int | float, type: Attribute) -> None:
        super().__init__(result_types=[type], properties={"value": literal_attr(value, type)})

    @property
    def value(self) -> int | float:
        """The number: a signed integer (0 or 1 for i1) or the exact value of the float."""
        return self.properties["value"].value.data  # type: ignore[attr-defined]

    def problem(self) -> str | None:
        type, value = self.results[0].type, self.properties.get("value")
        if not (types.is_int(type) or types.is_float(type)):
            return f"a constant is an integer or a float, got {type}"
        if not isinstance(value, FloatAttr if types.is_float(type) else IntegerAttr):
            return f"the value {value} does not fit {type}"
        if value != literal_attr(value.value.data, type) and value.value.data == value.value.data:
            return f"the value {value.value.data} is out of the range of {type}"
        return None

    def print(self, printer: Printer) -> None:
        type = self.results[0].type
        printer.print_string(f" {literal_text(self.properties['value'], type)}")  # type: ignore[arg-type]
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        value = parse_literal(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        if not (types.is_int(type) or types.is_float(type)):
            parser.raise_error(f"a constant is an integer or a float, got {type}", position)
        if isinstance(value, float) and types.is_int(type):
            parser.raise_error(f"{value} is no integer, and the type is {type}", position)
        op = cls(value, type)
        if types.is_int(type) and op.value != value:
            parser.raise_error(f"{value} is out of the range of {type}", position)
        op.attributes = attributes
        return op


class _ConstantLike(ConstantLike):
    """Tells xDSL's folder and patterns where the constant stands."""

    @classmethod
    def get_constant_value(cls, op: TileOp) -> Attribute | None:  # type: ignore[override]
        return op.properties.get("value")


_CONSTANT_LIKE: OpTrait = _ConstantLike()


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
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string(f" axis {self.axis}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("axis")
        axis = parser.parse_integer(allow_negative=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(parser.resolve_operand(source, parser.parse_type()), axis)
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


class IotaOp(TileOp):
    """The integers from `start` to below `end`, a tile of i32: `tile.iota 0 to 128`."""

    name = "tile.iota"
    operand_count = 0
    property_names = frozenset({"start", "end"})
    traits = PURE

    def __init__(self, start: int, end: int) -> None:
        super().__init__(
            result_types=[types.tile((end - start,), types.i32)],
            properties={"start": integer_attr(start), "end": integer_attr(end)},
        )

    @property
    def start(self) -> int:
        """The first integer."""
        return self.integer("start")

    @property
    def end(self) -> int:
        """One past the last integer."""
        return self.integer("end")

    def problem(self) -> str | None:
        start, end = self.start, self.end
        if not -(2**31) <= start < end <= 2**31:
            return f"{start} to {end} is no range of 32-bit integers"
        wanted = types.tile((end - start,), types.i32)
        return None if self.results[0].type == wanted else f"the result is {self.results[0].type}, expected {wanted}"

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.start} to {self.end}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        start = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("to")
        end = parser.parse_integer(allow_boolean=False)
        if not -(2**31) <= start < end <= 2**31:
            parser.raise_error(f"{start} to {end} is no range of 32-bit integers", position)
        op = cls(start, end)
        op.attributes = parser.parse_optional_attr_dict()
        return op


class _GridOp(TileOp):
    """A number of the launch grid along `axis`, as i32: `tile.program_id 0`."""

    operand_count = 0
    property_names = frozenset({"axis"})
    traits = PURE

    def __init__(self, axis: int) -> None:
        super().__init__(result_types=[types.i32], properties={"axis": integer_attr(axis)})

    @property
    def axis(self) -> int:
        """The axis of the grid: 0, 1 or 2."""
        return self.integer("axis")

    def problem(self) -> str | None:
        if not 0 <= self.axis < AXES:
            return f"a grid has axes 0, 1 and 2, got {self.axis}"
        return None if self.results[0].type == types.i32 else f"the result is i32, got {self.results[0].type}"

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.axis}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        axis = parser.parse_integer(allow_boolean=False)
        if not 0 <= axis < AXES:
            parser.raise_error(f"a grid has axes 0, 1 and 2, got {axis}", position)
        op = cls(axis)
        op.attributes = parser.parse_optional_attr_dict()
        return op


class ProgramIdOp(_GridOp):
    """The program's index in the grid."""

    name = "tile.program_id"


class NumProgramsOp(_GridOp):
    """How many programs the grid has."""

    name = "tile.num_programs"


class AddPtrOp(TileOp):
    """A pointer moved by an offset in elements, sign extended to 64 bits: `tile.addptr %p, %o : !tile.ptr<f32>, i32`.

    Both are scalars or both tiles of one shape. The offset is signed and its arithmetic must not wrap (architecture,
    "Offsets"); unsigned offsets are zero extended first.
    """

    name = "tile.addptr"
    operand_count = 2
    traits = PURE

    def __init__(self, pointer: Value, offset: Value) -> None:
        value = SSAValue.get(pointer)
        super().__init__(operands=[value, SSAValue.get(offset)], result_types=[value.type])

    @property
    def pointer(self) -> SSAValue:
        """The pointer or tile of pointers."""
        return self._operands[0]

    @property
    def offset(self) -> SSAValue:
        """The offset in elements."""
        return self._operands[1]

    def problem(self) -> str | None:
        pointer, offset = self.pointer.type, self.offset.type
        if not types.is_pointer(pointer) or not types.is_int(offset):
            return f"takes a pointer and an integer, got {pointer} and {offset}"
        if types.shape_of(pointer) != types.shape_of(offset):
            return f"shapes differ: {pointer} and {offset}"
        return None if self.results[0].type == pointer else f"the result is {self.results[0].type}, expected {pointer}"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.operand_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pointer = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offset = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        parser.parse_punctuation(",")
        values = [parser.resolve_operand(pointer, type), parser.resolve_operand(offset, parser.parse_type())]
        return cls.create(operands=values, result_types=[type], attributes=attributes)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for dim in shape:
        size *= dim
    return size


OPS: tuple[type[TileOp], ...] = (
    ConstantOp, SplatOp, BroadcastOp, ReshapeOp, ExpandDimsOp, TransOp, IotaOp, ProgramIdOp, NumProgramsOp, AddPtrOp,
    LoadOp, StoreOp, LoadBlockOp, StoreBlockOp, BarrierOp,
)
