"""Asynchronous copies from global memory into shared buffers; they land at the `tile.wait` that covers their group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.ir import Attribute, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.tile import types
from tilefw.tile.dialect.base import Value, dense_i32, value_of
from tilefw.tile.dialect.block_ops import BlockAccess, checks_attr, parse_block
from tilefw.tile.dialect.memory_ops import (
    PointerAccess,
    accessed_type,
    hint_properties,
    parse_address,
    parse_address_types,
    parse_hints,
)
from tilefw.tile.dialect.op_text import parse_optional_after, resolve_optional
from tilefw.tile.dialect.shared_type import SharedType, parse_shared_type, shared_type_of, view_problem

_READS_AND_WRITES = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))


class CopyBlockOp(BlockAccess):
    """`tile.copy_block %p to %view at (%i : i32) strides (%s : i32) shape (%n : i32) checks [both] when %c : …, !tile.shared<…>`.

    The block of `LoadBlockOp`, copied asynchronously; elements out of bounds become zero. Nothing happens where `when` is false.
    """

    name = "tile.copy_block"
    result_count = 0
    traits = _READS_AND_WRITES

    def __init__(
        self, view: Value, base: Value, shape: Sequence[Value | None], strides: Sequence[Value], offsets: Sequence[Value],
        when: Value | None = None, *, lower: Sequence[bool] | None = None, cache: str | None = None, eviction: str | None = None,
    ) -> None:
        bounds = [b for b in shape if b is not None]
        tail = (view,) if when is None else (view, when)
        super().__init__(
            operands=[value_of(v) for v in (base, *offsets, *strides, *bounds, *tail)],
            properties={"checks": checks_attr(shape, lower), **hint_properties(cache, eviction, False)},
        )

    @property
    def view(self) -> SSAValue:
        """The slot or buffer that is filled."""
        return next(v for v in reversed(self._operands) if isinstance(v.type, SharedType))

    @property
    def when(self) -> SSAValue | None:
        """A scalar i1; None for always."""
        last = self._operands[-1]
        return None if isinstance(last.type, SharedType) else last

    @property
    def block_type(self) -> Attribute:
        return shared_type_of(self.view).tile

    def problem(self) -> str | None:
        if not any(isinstance(v.type, SharedType) for v in self._operands[-2:]):
            return "copies into a shared buffer, and has none"
        return super().problem()

    def tail_problem(self) -> str | None:
        tail = self._tail()
        if not 1 <= len(tail) <= 2 or tail[0] is not self.view:
            return "has the view and then, perhaps, the condition after the indices"
        if self.volatile:
            return "a copy is not volatile"
        return view_problem(tail[0], ring=False) or _when_problem(self.when)

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_operand(self.base)
        printer.print_string(" to ")
        printer.print_operand(self.view)
        self._print_block(printer)
        _print_when(printer, self.when)
        self._print_types(printer, self.view.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        base = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        view = parser.parse_unresolved_operand()
        offsets, strides, bounds, checks = parse_block(parser)
        when = _parse_when(parser)
        hints = parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        base_value = parser.resolve_operand(base, parser.parse_type())
        parser.parse_punctuation(",")
        view_value = parser.resolve_operand(view, parse_shared_type(parser))
        return cls.create(
            operands=[base_value, *offsets, *strides, *bounds, view_value, *when],
            properties={"checks": checks, **hints}, attributes=attributes,
        )


class CopyOp(PointerAccess):
    """`tile.copy %p[%offsets] to %view mask %m when %c : !tile.ptr<f16>[tensor<…>], !tile.shared<…>`; the rest is optional.

    The elements of `LoadOp`, copied asynchronously; masked-off elements become zero. Nothing happens where `when` is false.
    """

    name = "tile.copy"
    segment_names = ("pointer", "offsets", "view", "mask", "when")
    result_count = 0
    traits = _READS_AND_WRITES

    def __init__(
        self, view: Value, pointer: Value, offsets: Value | None = None, mask: Value | None = None, when: Value | None = None, *,
        cache: str | None = None, eviction: str | None = None,
    ) -> None:
        values = [None if v is None else value_of(v) for v in (pointer, offsets, view, mask, when)]
        super().__init__(
            operands=[v for v in values if v is not None],
            properties={
                "operandSegmentSizes": dense_i32(tuple(int(v is not None) for v in values)),
                **hint_properties(cache, eviction, False),
            },
        )

    @property
    def view(self) -> SSAValue:
        """The slot or buffer that is filled."""
        return self._operands[1 if self.offsets is None else 2]

    @property
    def when(self) -> SSAValue | None:
        """A scalar i1; None for always."""
        return self._segment("when")

    def value_problem(self, value_type: Attribute) -> str | None:
        wrong = view_problem(self.view, ring=False) or _when_problem(self.when)
        if wrong is not None:
            return wrong
        if self.volatile:
            return "a copy is not volatile"
        held = shared_type_of(self.view).tile
        return None if held == value_type else f"the buffer holds {held}, expected {value_type}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        self._print_address(printer)
        printer.print_string(" to ")
        printer.print_operand(self.view)
        if self.mask is not None:
            printer.print_string(" mask ")
            printer.print_operand(self.mask)
        _print_when(printer, self.when)
        self._print_tail(printer)
        printer.print_string(", ")
        printer.print_attribute(self.view.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        pointer, offsets = parse_address(parser)
        parser.parse_keyword("to")
        view = parser.parse_unresolved_operand()
        mask = parse_optional_after(parser, "mask")
        when = _parse_when(parser)
        hints = parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        pointer_type, offsets_type = parse_address_types(parser, offsets is not None)
        parser.parse_punctuation(",")
        view_value = parser.resolve_operand(view, parse_shared_type(parser))
        mask_type = types.with_element(accessed_type(pointer_type, offsets_type), types.i1)
        op = cls(
            view_value,
            parser.resolve_operand(pointer, pointer_type),
            resolve_optional(parser, offsets, offsets_type),
            resolve_optional(parser, mask, mask_type),
            *when,
        )
        op.properties.update(hints)
        op.attributes = attributes
        return op


def _when_problem(when: SSAValue | None) -> str | None:
    return None if when is None or when.type == types.i1 else f"`when` is a scalar i1, got {when.type}"


def _print_when(printer: Printer, when: SSAValue | None) -> None:
    if when is not None:
        printer.print_string(" when ")
        printer.print_operand(when)


def _parse_when(parser: Parser) -> list[SSAValue]:
    found = parse_optional_after(parser, "when")
    return [] if found is None else [parser.resolve_operand(found, types.i1)]
