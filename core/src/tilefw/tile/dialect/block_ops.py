"""Block accesses: loads and stores of a strided, bounds-checked block of an array, from scalars alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.tile import types
from tilefw.tile.dialect.base import Value, string_attr, value_of
from tilefw.tile.dialect.memory_ops import HINTS, CacheHinted, hint_properties, parse_hints
from tilefw.tile.dialect.op_text import parse_operand_group, parse_optional_after, print_operand_group, print_types, print_words

CHECKS = ("none", "upper", "both")


class BlockAccess(CacheHinted):
    """A block of a strided array: element i (one index a dim) stands at base + Σ (offset_d + i_d) · stride_d.

    Dim d is checked as `checks[d]` says: `upper` accesses only offset_d + i_d < shape_d, `both` also only >= 0, `none`
    accesses all. Operands in order: base, offsets (one a dim), strides (one a dim), shape (one a checked dim), value
    (stores) or other (loads, optional). Index operands are signed integers of any width; none of the sums may wrap.
    """

    property_names = frozenset({"checks", *HINTS})
    traits = OpTraits(lambda: ())

    @property
    def block_type(self) -> Attribute:
        """The tile's type."""
        raise NotImplementedError

    @property
    def block(self) -> tuple[int, ...]:
        """The block's size, one a dim."""
        return types.shape_of(self.block_type)

    @property
    def rank(self) -> int:
        """How many dims the block has."""
        return types.rank_of(self.block_type)

    @property
    def checks(self) -> tuple[str, ...]:
        """How each dim is bounds-checked: one of `CHECKS`."""
        return self.words("checks")

    @property
    def base(self) -> SSAValue:
        """The scalar pointer to element 0."""
        return self._operands[0]

    @property
    def offsets(self) -> tuple[SSAValue, ...]:
        """Where the block begins, in elements, one a dim."""
        return tuple(self._operands[1 : 1 + self.rank])

    @property
    def strides(self) -> tuple[SSAValue, ...]:
        """The distance of neighbours in elements, one a dim."""
        rank = self.rank
        return tuple(self._operands[1 + rank : 1 + 2 * rank])

    @property
    def shape(self) -> tuple[SSAValue | None, ...]:
        """The upper bound of each dim; None for an unchecked one."""
        bounds = iter(self._operands[1 + 2 * self.rank :])
        return tuple(None if check == "none" else next(bounds) for check in self.checks)

    def _tail(self) -> tuple[SSAValue, ...]:
        used = 1 + 2 * self.rank + sum(c != "none" for c in self.checks)
        return tuple(self._operands[used:])

    def problem(self) -> str | None:
        rank = len(self.block)
        if len(self.checks) != rank or any(c not in CHECKS for c in self.checks):
            return f"checks gives none, upper or both for each of the {rank} dims, got {list(self.checks)}"
        minimum = 1 + 2 * rank + sum(c != "none" for c in self.checks)
        if len(self._operands) < minimum:
            return f"takes at least {minimum} operands, got {len(self._operands)}"
        if types.is_tile(self.base.type) or not types.is_pointer(self.base.type):
            return f"the base is a scalar pointer, got {self.base.type}"
        for value in self._operands[1:minimum]:
            if types.is_tile(value.type) or not types.is_int(value.type):
                return f"offsets, strides and shape are scalar integers, got {value.type}"
        if types.element_of(self.block_type) != types.pointee_of(self.base.type):
            return f"a block of {self.base.type} does not hold {types.element_of(self.block_type)}"
        return self.tail_problem() or self.hint_problem()

    def tail_problem(self) -> str | None:
        """What is wrong with value or other, in words."""
        raise NotImplementedError

    def _print_block(self, printer: Printer) -> None:
        print_operand_group(printer, "at", self.offsets)
        print_operand_group(printer, "strides", self.strides)
        bounds = [b for b in self.shape if b is not None]
        if bounds:
            print_operand_group(printer, "shape", bounds)
            printer.print_string(f" checks [{', '.join(self.checks)}]")

    def _print_types(self, printer: Printer, container: Attribute | None = None) -> None:
        """The hints and the types: of the base and of what holds the block (the tile itself unless `container` is given)."""
        print_words(printer, self.properties, HINTS)
        print_types(printer, self.attributes, [self.base.type, container or self.block_type])


def checks_attr(shape: Sequence[Value | None], lower: Sequence[bool] | None) -> ArrayAttr:
    lower = lower if lower is not None else [bound is not None for bound in shape]
    words = ["none" if bound is None else "both" if low else "upper" for bound, low in zip(shape, lower, strict=True)]
    return ArrayAttr([string_attr(w) for w in words])


def parse_block(parser: Parser) -> tuple[Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue], ArrayAttr]:
    parser.parse_keyword("at")
    offsets = parse_operand_group(parser)
    parser.parse_keyword("strides")
    strides = parse_operand_group(parser)
    bounds: Sequence[SSAValue] = []
    words = ["none"] * len(offsets)
    if parser.parse_optional_keyword("shape"):
        bounds = parse_operand_group(parser)
        parser.parse_keyword("checks")
        words = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
    return offsets, strides, bounds, ArrayAttr([string_attr(w) for w in words])


class LoadBlockOp(BlockAccess):
    """`tile.load_block %p at (%i : i32) strides (%s : i32) shape (%n : i32) checks [both] other %x : …, tensor<128xf32>`.

    `shape` holds None for an unchecked dim; `lower` says which checked dims are also checked against 0 (all by default).
    """

    name = "tile.load_block"
    traits = OpTraits(lambda: (MemoryReadEffect(),))

    def __init__(
        self, base: Value, shape: Sequence[Value | None], strides: Sequence[Value], offsets: Sequence[Value],
        block: Sequence[int], other: Value | None = None, *, lower: Sequence[bool] | None = None,
        cache: str | None = None, eviction: str | None = None, volatile: bool = False, asynchronous: bool = False,
    ) -> None:
        bounds = [b for b in shape if b is not None]
        values = [value_of(v) for v in (base, *offsets, *strides, *bounds, *(() if other is None else (other,)))]
        super().__init__(
            operands=values,
            result_types=[types.tile(tuple(block), types.pointee_of(values[0].type))],
            properties={"checks": checks_attr(shape, lower), **hint_properties(cache, eviction, volatile, asynchronous)},
        )

    @property
    def block_type(self) -> Attribute:
        (loaded,) = self.results
        return loaded.type

    @property
    def other(self) -> SSAValue | None:
        """What elements out of bounds are; None leaves them unspecified."""
        tail = self._tail()
        return tail[0] if tail else None

    def tail_problem(self) -> str | None:
        tail = self._tail()
        if len(tail) > 1:
            return f"has {len(tail) - 1} operands too many"
        return f"other is {tail[0].type}, expected {self.block_type}" if tail and tail[0].type != self.block_type else None

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_operand(self.base)
        self._print_block(printer)
        if self.other is not None:
            printer.print_string(" other ")
            printer.print_operand(self.other)
        self._print_types(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        base = parser.parse_unresolved_operand()
        offsets, strides, bounds, checks = parse_block(parser)
        other = parse_optional_after(parser, "other")
        hints = parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        base_value = parser.resolve_operand(base, parser.parse_type())
        parser.parse_punctuation(",")
        type = parser.parse_type()
        tail = [] if other is None else [parser.resolve_operand(other, type)]
        return cls.create(
            operands=[base_value, *offsets, *strides, *bounds, *tail], result_types=[type],
            properties={"checks": checks, **hints}, attributes=attributes,
        )


class StoreBlockOp(BlockAccess):
    """`tile.store_block %p, %v at (%i : i32) strides (%s : i32) : !tile.ptr<f32>, tensor<128xf32>`; see LoadBlockOp."""

    name = "tile.store_block"
    result_count = 0
    traits = OpTraits(lambda: (MemoryWriteEffect(),))

    def __init__(
        self, base: Value, value: Value, shape: Sequence[Value | None], strides: Sequence[Value],
        offsets: Sequence[Value], *, lower: Sequence[bool] | None = None,
        cache: str | None = None, eviction: str | None = None, volatile: bool = False, asynchronous: bool = False,
    ) -> None:
        bounds = [b for b in shape if b is not None]
        super().__init__(
            operands=[value_of(v) for v in (base, *offsets, *strides, *bounds, value)],
            properties={"checks": checks_attr(shape, lower), **hint_properties(cache, eviction, volatile, asynchronous)},
        )

    @property
    def value(self) -> SSAValue:
        """What is stored."""
        return self._operands[-1]

    @property
    def block_type(self) -> Attribute:
        return self._operands[-1].type

    def tail_problem(self) -> str | None:
        return None if len(self._tail()) == 1 else f"has one value after the indices, got {len(self._tail())}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list((self.base, self.value), printer.print_operand)
        self._print_block(printer)
        self._print_types(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        base = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        offsets, strides, bounds, checks = parse_block(parser)
        hints = parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        base_value = parser.resolve_operand(base, parser.parse_type())
        parser.parse_punctuation(",")
        tile_value = parser.resolve_operand(value, parser.parse_type())
        return cls.create(
            operands=[base_value, *offsets, *strides, *bounds, tile_value],
            properties={"checks": checks, **hints}, attributes=attributes,
        )
