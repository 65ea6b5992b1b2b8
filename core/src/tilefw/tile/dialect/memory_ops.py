"""Memory ops: loads and stores through pointers or base and offsets, and the barrier; blocks stand in `block_ops.py`.

Element addresses are base + offset · element bytes with signed 64-bit offsets. A masked-off element is not accessed: a
load gives `other` there (unspecified without it). Accesses with order and scope stand in `atomic_ops.py`.
"""

from __future__ import annotations

from typing import Self, TypedDict

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.tile import types
from tilefw.tile.dialect.base import TileOp, Value, dense_i32, string_attr, value_of
from tilefw.tile.dialect.op_text import parse_optional_after, print_types, print_words, resolve_optional

CACHE_MODIFIERS = (".ca", ".cg", ".cv", ".wb", ".cs", ".wt")  # Triton's spellings; hints
EVICTION_POLICIES = ("evict_first", "evict_last")
HINTS = ("cache", "eviction", "volatile", "asynchronous")
_REQUIRED = ("pointer", "value", "compare", "view")  # segments that no access of theirs lacks


class Hints(TypedDict):
    """The hints of an access as keyword arguments of another."""

    cache: str
    eviction: str
    volatile: bool
    asynchronous: bool


def hint_properties(cache: str | None, eviction: str | None, volatile: bool, asynchronous: bool = False) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {}
    if cache:
        properties["cache"] = string_attr(cache)
    if eviction:
        properties["eviction"] = string_attr(eviction)
    if volatile:
        properties["volatile"] = UnitAttr()
    if asynchronous:
        properties["asynchronous"] = UnitAttr()
    return properties


def parse_hints(parser: Parser) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {}
    for name in ("cache", "eviction"):
        if parser.parse_optional_keyword(name):
            properties[name] = string_attr(parser.parse_str_literal())
    for name in ("volatile", "asynchronous"):
        if parser.parse_optional_keyword(name):
            properties[name] = UnitAttr()
    return properties


class CacheHinted(TileOp):
    """Cache hints, shared by all loads and stores."""

    @property
    def cache(self) -> str:
        """The cache modifier (`.ca`, `.cg`, …); empty when none was asked for."""
        return self.word("cache")

    @property
    def eviction(self) -> str:
        """`evict_first`, `evict_last` or empty."""
        return self.word("eviction")

    @property
    def volatile(self) -> bool:
        """Whether the access may be neither repeated nor left out."""
        return "volatile" in self.properties

    @property
    def asynchronous(self) -> bool:
        """Whether the access may be made at any time until the program's next fence that releases to the system, and is ordered as
        one of another agent: a program that makes it at once is right too."""
        return "asynchronous" in self.properties

    @property
    def fetches_anew(self) -> bool:
        """Whether each access looks at memory, which others may have written since the last: volatile, or Triton's `.cv`."""
        return self.volatile or self.cache == ".cv"

    @property
    def hints(self) -> Hints:
        """All hints, to be given to an access of the same elements."""
        return {"cache": self.cache, "eviction": self.eviction, "volatile": self.volatile, "asynchronous": self.asynchronous}

    def hint_problem(self) -> str | None:
        """What is wrong with the hints, in words."""
        if self.cache and self.cache not in CACHE_MODIFIERS:
            return f"the cache modifier {self.cache!r} is none of {', '.join(CACHE_MODIFIERS)}"
        if self.eviction and self.eviction not in EVICTION_POLICIES:
            return f"the eviction policy {self.eviction!r} is none of {', '.join(EVICTION_POLICIES)}"
        return None


class PointerAccess(CacheHinted):
    """Operands in order: pointer, offsets?, value (stores), mask?, other? (loads); `operandSegmentSizes` says which are there."""

    segment_names: tuple[str, ...]
    property_names = frozenset({"operandSegmentSizes", *HINTS})

    def _segment(self, name: str) -> SSAValue | None:
        sizes = self.integers("operandSegmentSizes")
        index = self.segment_names.index(name)
        return self._operands[sum(sizes[:index])] if sizes[index] else None

    @property
    def pointer(self) -> SSAValue:
        """The pointer, tile of pointers, or scalar base."""
        return self._operands[0]

    @property
    def offsets(self) -> SSAValue | None:
        """Offsets in elements from the scalar base, signed; None when `pointer` holds the addresses."""
        return self._segment("offsets")

    @property
    def mask(self) -> SSAValue | None:
        """Which elements are accessed; None for all."""
        return self._segment("mask")

    @property
    def value_type(self) -> Attribute:
        """The type of the accessed elements together."""
        return accessed_type(self.pointer.type, None if self.offsets is None else self.offsets.type)

    def problem(self) -> str | None:
        values = self.integers("operandSegmentSizes")
        optional = [name not in _REQUIRED for name in self.segment_names]
        if len(values) != len(optional) or sum(values) != len(self._operands):
            return "operandSegmentSizes does not fit the operands"
        if any(v not in ((0, 1) if o else (1,)) for v, o in zip(values, optional, strict=True)):
            return "operandSegmentSizes does not fit the op"
        if not types.is_pointer(self.pointer.type):
            return f"accesses memory through a pointer, got {self.pointer.type}"
        offsets = self.offsets
        if offsets is not None and (types.is_tile(self.pointer.type) or not types.is_int(offsets.type)):
            return f"offsets are integers from a scalar pointer, got {self.pointer.type} and {offsets.type}"
        value_type, mask = self.value_type, self.mask
        if mask is not None and mask.type != types.with_element(value_type, types.i1):
            return f"the mask is {mask.type}, expected {types.with_element(value_type, types.i1)}"
        return self.value_problem(value_type) or self.hint_problem()

    def value_problem(self, value_type: Attribute) -> str | None:
        """What is wrong with value, other and result, in words."""
        raise NotImplementedError

    def _print_address(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.pointer)
        if self.offsets is not None:
            printer.print_string("[")
            printer.print_operand(self.offsets)
            printer.print_string("]")

    def _print_tail(self, printer: Printer) -> None:
        print_words(printer, self.properties, HINTS)
        print_types(printer, self.attributes, [self.pointer.type])
        if self.offsets is not None:
            printer.print_string("[")
            printer.print_attribute(self.offsets.type)
            printer.print_string("]")


def parse_address(parser: Parser):
    pointer = parser.parse_unresolved_operand()
    offsets = None
    if parser.parse_optional_punctuation("["):
        offsets = parser.parse_unresolved_operand()
        parser.parse_punctuation("]")
    return pointer, offsets


def parse_address_types(parser: Parser, has_offsets: bool) -> tuple[Attribute, Attribute | None]:
    parser.parse_punctuation(":")
    position = parser.pos
    pointer_type = parser.parse_type()
    if not types.is_pointer(pointer_type):
        parser.raise_error(f"accesses memory through a pointer, got {pointer_type}", position)
    if not has_offsets:
        return pointer_type, None
    parser.parse_punctuation("[")
    offsets_type = parser.parse_type()
    parser.parse_punctuation("]")
    return pointer_type, offsets_type


def accessed_type(pointer: Attribute, offsets: Attribute | None) -> Attribute:
    return types.with_element(pointer if offsets is None else offsets, types.pointee_of(pointer))


class LoadOp(PointerAccess):
    """`tile.load %p[%offsets] mask %m other %x : !tile.ptr<f32>[tensor<128xi32>]`; offsets, mask and other are optional."""

    name = "tile.load"
    segment_names = ("pointer", "offsets", "mask", "other")
    traits = OpTraits(lambda: (MemoryReadEffect(),))

    def __init__(
        self, pointer: Value, offsets: Value | None = None, mask: Value | None = None, other: Value | None = None, *,
        cache: str | None = None, eviction: str | None = None, volatile: bool = False, asynchronous: bool = False,
    ) -> None:
        values = [None if v is None else value_of(v) for v in (pointer, offsets, mask, other)]
        present = [v for v in values if v is not None]
        super().__init__(
            operands=present,
            result_types=[accessed_type(present[0].type, None if values[1] is None else values[1].type)],
            properties={
                "operandSegmentSizes": dense_i32(tuple(int(v is not None) for v in values)),
                **hint_properties(cache, eviction, volatile, asynchronous),
            },
        )

    @property
    def other(self) -> SSAValue | None:
        """What masked-off elements are; None leaves them unspecified."""
        return self._segment("other")

    def value_problem(self, value_type: Attribute) -> str | None:
        if self.other is not None and self.mask is None:
            return "other without a mask has no meaning"
        if self.other is not None and self.other.type != value_type:
            return f"other is {self.other.type}, expected {value_type}"
        return self.result_problem(value_type)

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        self._print_address(printer)
        for word, value in (("mask", self.mask), ("other", self.other)):
            if value is not None:
                printer.print_string(f" {word} ")
                printer.print_operand(value)
        self._print_tail(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        pointer, offsets = parse_address(parser)
        mask = parse_optional_after(parser, "mask")
        other = parse_optional_after(parser, "other")
        hints = parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        pointer_type, offsets_type = parse_address_types(parser, offsets is not None)
        value_type = accessed_type(pointer_type, offsets_type)
        op = cls(
            parser.resolve_operand(pointer, pointer_type),
            resolve_optional(parser, offsets, offsets_type),
            resolve_optional(parser, mask, types.with_element(value_type, types.i1)),
            resolve_optional(parser, other, value_type),
        )
        op.properties.update(hints)
        op.attributes = attributes
        return op


class StoreOp(PointerAccess):
    """`tile.store %p[%offsets], %value mask %m : !tile.ptr<f32>[tensor<128xi32>]`; offsets and mask are optional."""

    name = "tile.store"
    segment_names = ("pointer", "offsets", "value", "mask")
    result_count = 0
    traits = OpTraits(lambda: (MemoryWriteEffect(),))

    def __init__(
        self, pointer: Value, value: Value, offsets: Value | None = None, mask: Value | None = None, *,
        cache: str | None = None, eviction: str | None = None, volatile: bool = False, asynchronous: bool = False,
    ) -> None:
        values = [None if v is None else value_of(v) for v in (pointer, offsets, value, mask)]
        super().__init__(
            operands=[v for v in values if v is not None],
            properties={
                "operandSegmentSizes": dense_i32(tuple(int(v is not None) for v in values)),
                **hint_properties(cache, eviction, volatile, asynchronous),
            },
        )

    @property
    def value(self) -> SSAValue:
        """What is stored."""
        return self._operands[1 if self.offsets is None else 2]

    def value_problem(self, value_type: Attribute) -> str | None:
        return None if self.value.type == value_type else f"the value is {self.value.type}, expected {value_type}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        self._print_address(printer)
        printer.print_string(", ")
        printer.print_operand(self.value)
        if self.mask is not None:
            printer.print_string(" mask ")
            printer.print_operand(self.mask)
        self._print_tail(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        pointer, offsets = parse_address(parser)
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        mask = parse_optional_after(parser, "mask")
        hints = parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        pointer_type, offsets_type = parse_address_types(parser, offsets is not None)
        value_type = accessed_type(pointer_type, offsets_type)
        op = cls(
            parser.resolve_operand(pointer, pointer_type),
            parser.resolve_operand(value, value_type),
            resolve_optional(parser, offsets, offsets_type),
            resolve_optional(parser, mask, types.with_element(value_type, types.i1)),
        )
        op.properties.update(hints)
        op.attributes = attributes
        return op


class BarrierOp(TileOp):
    """Stores of the program before it are seen by loads of the program after it, whichever lane made them."""

    name = "tile.barrier"
    operand_count = 0
    result_count = 0
    traits = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))

    def __init__(self) -> None:
        super().__init__()

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        return cls.create(attributes=parser.parse_optional_attr_dict())

