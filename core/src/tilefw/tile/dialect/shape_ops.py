"""The structural ops of the tile dialect, with their traits: splat, broadcast, reshape, expand_dims, trans, join, split, flip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod
from typing import Self

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile import types
from tilefw.tile.dialect.axis_info import AxisInfo, any_element, at_starts, meet, power, unknown
from tilefw.tile.dialect.base import Value, dense_i64, integer_attr, value_of
from tilefw.tile.dialect.dim_groups import matching_dims
from tilefw.tile.dialect.op_text import parse_type_at_end, print_types
from tilefw.tile.dialect.structural_op import Array, I, IndexAlgebra, StructuralOp


class _OneSourceOp(StructuralOp):
    """A structural op on one tile (or the scalar that is splat)."""

    operand_count = 1

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
        value = value_of(source)
        result = type if isinstance(type, Attribute) else types.tile(tuple(type), types.element_of(value.type))
        super().__init__(operands=[value], result_types=[result])

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        self._print_source(printer)
        printer.print_string(" to ")
        printer.print_attribute(self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
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

    def same_values(self) -> Sequence[SSAValue] | None:
        return [self.source] if self.source.type == self.results[0].type else None


class SplatOp(_ShapeOp):
    """A tile whose elements are all the one scalar."""

    name = "tile.splat"

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        return None if not source and result else f"a splat makes a tile of a scalar, got {source} to {result}"

    def operand_index(self, at: Sequence[I], algebra: IndexAlgebra[I]) -> Sequence[I] | None:
        return ()

    def elements(self, *parts: Array) -> Sequence[Array]:
        shape = types.shape_of(self.results[0].type)
        return [np.broadcast_to(parts[0].reshape(-1, *(1,) * len(shape)), (parts[0].shape[0], *shape))]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        shape, inner = types.shape_of(self.results[0].type), operands[0]
        return AxisInfo((inner.divisor,) * len(shape), (1,) * len(shape), shape, inner.low, inner.high)


class BroadcastOp(_ShapeOp):
    """A tile with its dims of size 1 repeated."""

    name = "tile.broadcast"

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        fits = len(source) == len(result) > 0 and all(s in (1, r) for s, r in zip(source, result, strict=True))
        return None if fits else f"a broadcast repeats dims of size 1 only, got {source} to {result}"

    def operand_index(self, at: Sequence[I], algebra: IndexAlgebra[I]) -> Sequence[I] | None:
        shape = types.shape_of(self.source.type)
        return tuple(algebra.fixed(0) if size == 1 else index for size, index in zip(shape, at, strict=True))

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [np.broadcast_to(parts[0], (parts[0].shape[0], *types.shape_of(self.results[0].type)))]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        source, result, inner = types.shape_of(self.source.type), types.shape_of(self.results[0].type), operands[0]
        return replace(inner, constancy=tuple(r if s == 1 else c for s, r, c in zip(source, result, inner.constancy, strict=True)))

    def merged(self) -> Operation | None:
        inner = self.source.owner
        return BroadcastOp(inner.source, self.results[0].type) if isinstance(inner, BroadcastOp) else None


class ReshapeOp(_ShapeOp):
    """The same elements in row-major order in another shape."""

    name = "tile.reshape"
    capability = "shape.reshape"

    def shape_problem(self, source: tuple[int, ...], result: tuple[int, ...]) -> str | None:
        return None if prod(source) == prod(result) else f"{prod(source)} elements do not reshape to {prod(result)}"

    def operand_index(self, at: Sequence[I], algebra: IndexAlgebra[I]) -> Sequence[I] | None:
        source, result = types.shape_of(self.source.type), types.shape_of(self.results[0].type)
        found = [algebra.fixed(0)] * len(source)
        for old, new in matching_dims(source, result):
            moved = algebra.regrouped([at[d] for d in new], tuple(result[d] for d in new), tuple(source[d] for d in old))
            for dim, index in zip(old, moved, strict=True):
                found[dim] = index
        return tuple(found)

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [parts[0].reshape(-1, *types.shape_of(self.results[0].type))]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        """Each group of dims that becomes a group of as many elements keeps its innermost runs, as far as the new dim reaches."""
        (inner,) = operands
        source, result = types.shape_of(self.source.type), types.shape_of(self.results[0].type)
        if not source or not result:
            return replace(unknown(self.results[0].type), low=inner.low, high=inner.high)
        divisibility, contiguity, constancy = [any_element(inner)] * len(result), [1] * len(result), [1] * len(result)
        for old, new in matching_dims(source, result):
            last, first = max(old), max(new)
            run = gcd(inner.contiguity[last], source[last], result[first])
            contiguity[first] = run
            if run > 1:
                divisibility[first] = power(at_starts(inner.divisibility[last], inner.contiguity[last], run))
            equal = gcd(inner.constancy[last], source[last])
            for dim in reversed(new):
                constancy[dim] = gcd(equal, result[dim])
                if constancy[dim] != result[dim]:
                    break
                equal = max(1, equal // result[dim])
        return AxisInfo(tuple(divisibility), tuple(contiguity), tuple(constancy), inner.low, inner.high)

    def merged(self) -> Operation | None:
        """A reshape keeps the order of elements: a reshape or other op before it that keeps the order too is one op with it."""
        inner = self.source.owner
        return ReshapeOp(inner.source, self.results[0].type) if isinstance(inner, ReshapeOp | ExpandDimsOp) else None


class AxisOp(_OneSourceOp):
    """One tile and an axis: `tile.flip %x axis 0 : tensor<64xf32>`."""

    property_names = frozenset({"axis"})

    def __init__(self, source: Value, axis: int) -> None:
        value = value_of(source)
        result = self.result_type(value.type, axis)
        super().__init__(operands=[value], result_types=[result], properties={"axis": integer_attr(axis)})

    @staticmethod
    def result_type(type: Attribute, axis: int) -> Attribute:
        """The type of the result for an operand of `type`."""
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
        return self.result_problem(self.result_type(self.source.type, self.axis))

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        self._print_source(printer, f" axis {self.axis}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("axis")
        axis = parser.parse_integer(allow_negative=False)
        attributes, type = parse_type_at_end(parser)
        op = cls(parser.resolve_operand(source, type), axis)
        op.attributes = attributes
        return op


class ExpandDimsOp(AxisOp):
    """A tile with a new dim of size 1, at `axis` of the result: `tile.expand_dims %x axis 1 : tensor<128xf32>`."""

    name = "tile.expand_dims"

    @staticmethod
    def result_type(type: Attribute, axis: int) -> Attribute:
        shape = types.shape_of(type)
        return types.tile((*shape[:axis], 1, *shape[axis:]), types.element_of(type))

    def _axes(self) -> int:
        return super()._axes() + 1

    def operand_index(self, at: Sequence[I], algebra: IndexAlgebra[I]) -> Sequence[I] | None:
        return (*at[: self.axis], *at[self.axis + 1 :])

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [np.expand_dims(parts[0], self.axis + 1)]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        (inner,) = operands
        axis = self.axis
        # The new dim holds one element, which begins a run wherever it stands: its divisor is that of any element.
        alone = 1 if any(c > 1 for c in inner.contiguity) else max(inner.divisibility)

        def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
            return (*values[:axis], value, *values[axis:])

        return AxisInfo(
            insert(inner.divisibility, alone), insert(inner.contiguity, 1), insert(inner.constancy, 1), inner.low, inner.high
        )


class TransOp(_OneSourceOp):
    """A tile with its dims permuted: result dim i is source dim `order[i]`; `tile.trans %x [1, 0] : tensor<64x32xf16>`."""

    name = "tile.trans"
    capability = "shape.trans"
    property_names = frozenset({"order"})

    def __init__(self, source: Value, order: Sequence[int]) -> None:
        value = value_of(source)
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

    def operand_index(self, at: Sequence[I], algebra: IndexAlgebra[I]) -> Sequence[I] | None:
        return tuple(at[self.order.index(dim)] for dim in range(len(at)))

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [parts[0].transpose((0, *(dim + 1 for dim in self.order)))]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        (inner,) = operands
        order = self.order

        def permute(values: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(values[i] for i in order)

        return AxisInfo(permute(inner.divisibility), permute(inner.contiguity), permute(inner.constancy), inner.low, inner.high)

    def same_values(self) -> Sequence[SSAValue] | None:
        order, inner = self.order, self.source.owner
        unmoved = tuple(range(len(order)))
        if order == unmoved:
            return [self.source]
        undone = isinstance(inner, TransOp) and tuple(inner.order[i] for i in order) == unmoved
        return [inner.source] if isinstance(inner, TransOp) and undone else None

    def merged(self) -> Operation | None:
        inner = self.source.owner
        return TransOp(inner.source, [inner.order[i] for i in self.order]) if isinstance(inner, TransOp) else None

    def problem(self) -> str | None:
        rank = len(types.shape_of(self.source.type))
        if rank == 0 or sorted(self.order) != list(range(rank)):
            return f"order {list(self.order)} is not a permutation of the dims of {self.source.type}"
        return self.result_problem(self._result(self.source.type, self.order))

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        self._print_source(printer, f" {list(self.order)}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        source = parser.parse_unresolved_operand()
        position = parser.pos
        order = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        attributes, type = parse_type_at_end(parser)
        value = parser.resolve_operand(source, type)
        if sorted(order) != list(range(len(types.shape_of(value.type)))):
            parser.raise_error(f"order {order} is not a permutation of the dims of {value.type}", position)
        op = cls(value, order)
        op.attributes = attributes
        return op


class JoinOp(StructuralOp):
    """Two tiles of one type side by side in a new last dim of size 2: `tile.join %a, %b : tensor<64xf32>`."""

    name = "tile.join"
    operand_count = 2
    capability = "shape.join"

    def __init__(self, a: Value, b: Value) -> None:
        left = value_of(a)
        super().__init__(operands=[left, value_of(b)], result_types=[self._result(left.type)])

    @staticmethod
    def _result(type: Attribute) -> Attribute:
        return types.tile((*types.shape_of(type), 2), types.element_of(type))

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [np.stack(parts, axis=-1)]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        a, b = operands
        both, alone = meet(a, b), gcd(any_element(a), any_element(b))
        return replace(
            both, divisibility=(*both.divisibility, alone), contiguity=(*both.contiguity, 1), constancy=(*both.constancy, 1)
        )

    def same_values(self) -> Sequence[SSAValue] | None:
        """What was split is joined again."""
        inner = self._operands[0].owner
        return [inner.source] if isinstance(inner, SplitOp) and self._operands == tuple(inner.results) else None

    def problem(self) -> str | None:
        left, right = self.operand_types
        if not types.is_tile(left) or left != right:
            return f"joins two tiles of one type, got {left} and {right}"
        return self.result_problem(self._result(left))

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        print_types(printer, self.attributes, [self._operands[0].type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
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
    capability = "shape.split"
    result_count = 2

    def __init__(self, source: Value) -> None:
        value = value_of(source)
        super().__init__(operands=[value], result_types=[self._result(value.type)] * 2)

    @staticmethod
    def _result(type: Attribute) -> Attribute:
        return types.tile(types.shape_of(type)[:-1], types.element_of(type))

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [parts[0][..., 0], parts[0][..., 1]]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        (inner,) = operands
        return replace(
            inner, divisibility=inner.divisibility[:-1], contiguity=inner.contiguity[:-1], constancy=inner.constancy[:-1]
        )

    def same_values(self) -> Sequence[SSAValue] | None:
        inner = self.source.owner
        return inner._operands if isinstance(inner, JoinOp) else None

    def problem(self) -> str | None:
        shape = types.shape_of(self.source.type)
        if len(shape) < 2 or shape[-1] != 2:
            return f"splits a tile of at least two dims whose last dim is 2, got {self.source.type}"
        wanted = self._result(self.source.type)
        found = next((result.type for result in self.results if result.type != wanted), wanted)
        return None if found == wanted else f"the results are {wanted}, got {found}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        self._print_source(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        source = parser.parse_unresolved_operand()
        attributes, type = parse_type_at_end(parser)
        op = cls(parser.resolve_operand(source, type))
        op.attributes = attributes
        return op


class FlipOp(AxisOp):
    """A tile in reverse order along `axis`: `tile.flip %x axis 0 : tensor<64xf32>`."""

    name = "tile.flip"
    capability = "shape.flip"

    @staticmethod
    def result_type(type: Attribute, axis: int) -> Attribute:
        return type

    def operand_index(self, at: Sequence[I], algebra: IndexAlgebra[I]) -> Sequence[I] | None:
        axis = self.axis
        return (*at[:axis], algebra.mirrored(at[axis], types.shape_of(self.source.type)[axis]), *at[axis + 1 :])

    def elements(self, *parts: Array) -> Sequence[Array]:
        return [np.flip(parts[0], self.axis + 1)]

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        """Runs go down along the axis, and equal elements stay together where they fill the axis evenly."""
        inner, axis, size = operands[0], self.axis, types.shape_of(self.source.type)[self.axis]

        def at_axis(values: tuple[int, ...], value: int) -> tuple[int, ...]:
            return (*values[:axis], value, *values[axis + 1 :])

        return replace(
            inner, divisibility=at_axis(inner.divisibility, any_element(inner)), contiguity=at_axis(inner.contiguity, 1),
            constancy=at_axis(inner.constancy, gcd(inner.constancy[axis], size)),
        )

    def same_values(self) -> Sequence[SSAValue] | None:
        inner = self.source.owner
        if isinstance(inner, FlipOp) and inner.axis == self.axis:
            return [inner.source]
        return [self.source] if types.shape_of(self.source.type)[self.axis] == 1 else None


SHAPE_OPS: tuple[type[StructuralOp], ...] = (SplatOp, BroadcastOp, ReshapeOp, ExpandDimsOp, TransOp, JoinOp, SplitOp, FlipOp)
