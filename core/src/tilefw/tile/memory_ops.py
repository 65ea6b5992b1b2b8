"""Memory ops: loads and stores through pointers or base and offsets, loads and stores of blocks, the barrier.

Element addresses are base + offset · element bytes with signed 64-bit offsets. A masked-off element is not accessed: a
load gives `other` there (unspecified without it). Orders and scopes other than relaxed, device come with atomics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, UnitAttr
from xdsl.ir import Attribute, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.tile import types
from tilefw.tile.base import (
    TileOp,
    Value,
    dense_i32,
    parse_operand_group,
    parse_optional_after,
    print_operand_group,
    print_words,
    string_attr,
    string_list,
)

Check = Literal["none", "upper", "both"]
CACHE_MODIFIERS = (".ca", ".cg", ".cv", ".wb", ".cs", ".wt")  # Triton's spellings; hints
EVICTION_POLICIES = ("evict_first", "evict_last")
_HINTS = ("cache", "eviction", "volatile")


def _hint_properties(cache: str | None, eviction: str | None, volatile: bool) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {}
    if cache:
        properties["cache"] = string_attr(cache)
    if eviction:
        properties["eviction"] = string_attr(eviction)
    if volatile:
        properties["volatile"] = UnitAttr()
    return properties


def _parse_hints(parser: Parser) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {}
    for name in ("cache", "eviction"):
        if parser.parse_optional_keyword(name):
            properties[name] = string_attr(parser.parse_str_literal())
    if parser.parse_optional_keyword("volatile"):
        properties["volatile"] = UnitAttr()
    return properties


class _MemoryOp(TileOp):
    """Cache hints, shared by all memory ops."""

    @property
    def cache(self) -> str:
        """The cache modifier (`.ca`, `.cg`, …); empty when none was asked for."""
        return self._word("cache")

    @property
    def eviction(self) -> str:
        """`evict_first`, `evict_last` or empty."""
        return self._word("eviction")

    @property
    def volatile(self) -> bool:
        """Whether the access may be neither repeated nor left out."""
        return "volatile" in self.properties

    def _word(self, name: str) -> str:
        attribute = self.properties.get(name)
        return "" if attribute is None else attribute.data  # type: ignore[attr-defined]

    def hint_problem(self) -> str | None:
        """What is wrong with the hints, in words."""
        if self.cache and self.cache not in CACHE_MODIFIERS:
            return f"the cache modifier {self.cache!r} is none of {', '.join(CACHE_MODIFIERS)}"
        if self.eviction and self.eviction not in EVICTION_POLICIES:
            return f"the eviction policy {self.eviction!r} is none of {', '.join(EVICTION_POLICIES)}"
        return None


class _PointerAccess(_MemoryOp):
    """Operands in order: pointer, offsets?, value (stores), mask?, other? (loads); `operandSegmentSizes` says which are there."""

    segment_names: tuple[str, ...]
    property_names = frozenset({"operandSegmentSizes", *_HINTS})

    def _segment(self, name: str) -> SSAValue | None:
        sizes = self.properties["operandSegmentSizes"].get_values()  # type: ignore[attr-defined]
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
        return _accessed_type(self.pointer.type, None if self.offsets is None else self.offsets.type)

    def problem(self) -> str | None:
        sizes = self.properties.get("operandSegmentSizes")
        values = sizes.get_values() if isinstance(sizes, DenseArrayBase) else ()
        optional = [name not in ("pointer", "value") for name in self.segment_names]
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
        print_words(printer, self.properties, _HINTS)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.pointer.type)
        if self.offsets is not None:
            printer.print_string("[")
            printer.print_attribute(self.offsets.type)
            printer.print_string("]")


def _parse_address(parser: Parser):
    pointer = parser.parse_unresolved_operand()
    offsets = None
    if parser.parse_optional_punctuation("["):
        offsets = parser.parse_unresolved_operand()
        parser.parse_punctuation("]")
    return pointer, offsets


def _parse_address_types(parser: Parser, has_offsets: bool) -> tuple[Attribute, Attribute | None]:
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


def _accessed_type(pointer: Attribute, offsets: Attribute | None) -> Attribute:
    return types.with_element(pointer if offsets is None else offsets, types.pointee_of(pointer))


class LoadOp(_PointerAccess):
    """`tile.load %p[%offsets] mask %m other %x : !tile.ptr<f32>[tensor<128xi32>]`; offsets, mask and other are optional."""

    name = "tile.load"
    segment_names = ("pointer", "offsets", "mask", "other")
    traits = OpTraits(lambda: (MemoryReadEffect(),))

    def __init__(
        self, pointer: Value, offsets: Value | None = None, mask: Value | None = None, other: Value | None = None, *,
        cache: str | None = None, eviction: str | None = None, volatile: bool = False,
    ) -> None:
        values = [None if v is None else SSAValue.get(v) for v in (pointer, offsets, mask, other)]
        present = [v for v in values if v is not None]
        super().__init__(
            operands=present,
            result_types=[_accessed_type(present[0].type, None if values[1] is None else values[1].type)],
            properties={
                "operandSegmentSizes": dense_i32(tuple(int(v is not None) for v in values)),
                **_hint_properties(cache, eviction, volatile),
            },
        )

    @property
    def other(self) -> SSAValue | None:
        """What masked-off elements are; None leaves them unspecified."""
        return self._segment("other")

    def value_problem(self, value_type: Attribute) -> str | None:
        if self.results[0].type != value_type:
            return f"the result is {self.results[0].type}, expected {value_type}"
        if self.other is not None and self.mask is None:
            return "other without a mask has no meaning"
        if self.other is not None and self.other.type != value_type:
            return f"other is {self.other.type}, expected {value_type}"
        return None

    def print(self, printer: Printer) -> None:
        self._print_address(printer)
        for word, value in (("mask", self.mask), ("other", self.other)):
            if value is not None:
                printer.print_string(f" {word} ")
                printer.print_operand(value)
        self._print_tail(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pointer, offsets = _parse_address(parser)
        mask = parse_optional_after(parser, "mask")
        other = parse_optional_after(parser, "other")
        hints = _parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        pointer_type, offsets_type = _parse_address_types(parser, offsets is not None)
        value_type = _accessed_type(pointer_type, offsets_type)
        kinds = (pointer_type, offsets_type, types.with_element(value_type, types.i1), value_type)
        pairs = zip((pointer, offsets, mask, other), kinds, strict=True)
        op = cls(*[None if u is None else parser.resolve_operand(u, t) for u, t in pairs])  # type: ignore[arg-type]
        op.properties.update(hints)
        op.attributes = attributes
        return op


class StoreOp(_PointerAccess):
    """`tile.store %p[%offsets], %value mask %m : !tile.ptr<f32>[tensor<128xi32>]`; offsets and mask are optional."""

    name = "tile.store"
    segment_names = ("pointer", "offsets", "value", "mask")
    result_count = 0
    traits = OpTraits(lambda: (MemoryWriteEffect(),))

    def __init__(
        self, pointer: Value, value: Value, offsets: Value | None = None, mask: Value | None = None, *,
        cache: str | None = None, eviction: str | None = None, volatile: bool = False,
    ) -> None:
        values = [None if v is None else SSAValue.get(v) for v in (pointer, offsets, value, mask)]
        super().__init__(
            operands=[v for v in values if v is not None],
            properties={
                "operandSegmentSizes": dense_i32(tuple(int(v is not None) for v in values)),
                **_hint_properties(cache, eviction, volatile),
            },
        )

    @property
    def value(self) -> SSAValue:
        """What is stored."""
        return self._operands[1 if self.offsets is None else 2]

    def value_problem(self, value_type: Attribute) -> str | None:
        return None if self.value.type == value_type else f"the value is {self.value.type}, expected {value_type}"

    def print(self, printer: Printer) -> None:
        self._print_address(printer)
        printer.print_string(", ")
        printer.print_operand(self.value)
        if self.mask is not None:
            printer.print_string(" mask ")
            printer.print_operand(self.mask)
        self._print_tail(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pointer, offsets = _parse_address(parser)
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        mask = parse_optional_after(parser, "mask")
        hints = _parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        pointer_type, offsets_type = _parse_address_types(parser, offsets is not None)
        value_type = _accessed_type(pointer_type, offsets_type)
        op = cls(
            parser.resolve_operand(pointer, pointer_type),
            parser.resolve_operand(value, value_type),
            None if offsets is None or offsets_type is None else parser.resolve_operand(offsets, offsets_type),
            None if mask is None else parser.resolve_operand(mask, types.with_element(value_type, types.i1)),
        )
        op.properties.update(hints)
        op.attributes = attributes
        return op


class _BlockAccess(_MemoryOp):
    """A block of a strided array: element i (one index a dim) stands at base + Σ (offset_d + i_d) · stride_d.

    Dim d is checked as `checks[d]` says: `upper` accesses only offset_d + i_d < shape_d, `both` also only >= 0, `none`
    accesses all. Operands in order: base, offsets (one a dim), strides (one a dim), shape (one a checked dim), value
    (stores) or other (loads, optional). Index operands are signed integers of any width; none of the sums may wrap.
    """

    property_names = frozenset({"checks", *_HINTS})
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
    def checks(self) -> tuple[Check, ...]:
        """How each dim is bounds-checked."""
        return string_list(self.properties.get("checks"))  # type: ignore[return-value]

    @property
    def base(self) -> SSAValue:
        """The scalar pointer to element 0."""
        return self._operands[0]

    @property
    def offsets(self) -> tuple[SSAValue, ...]:
        """Where the block begins, in elements, one a dim."""
        return tuple(self._operands[1 : 1 + len(self.block)])

    @property
    def strides(self) -> tuple[SSAValue, ...]:
        """The distance of neighbours in elements, one a dim."""
        rank = len(self.block)
        return tuple(self._operands[1 + rank : 1 + 2 * rank])

    @property
    def shape(self) -> tuple[SSAValue | None, ...]:
        """The upper bound of each dim; None for an unchecked one."""
        bounds = iter(self._operands[1 + 2 * len(self.block) :])
        return tuple(None if check == "none" else next(bounds) for check in self.checks)

    def _tail(self) -> tuple[SSAValue, ...]:
        used = 1 + 2 * len(self.block) + sum(c != "none" for c in self.checks)
        return tuple(self._operands[used:])

    def problem(self) -> str | None:
        rank = len(self.block)
        if len(self.checks) != rank or any(c not in ("none", "upper", "both") for c in self.checks):
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

    def _print_types(self, printer: Printer) -> None:
        print_words(printer, self.properties, _HINTS)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.base.type)
        printer.print_string(", ")
        printer.print_attribute(self.block_type)


def _checks_attr(shape: Sequence[Value | None], lower: Sequence[bool] | None) -> ArrayAttr:
    lower = lower if lower is not None else [bound is not None for bound in shape]
    words = ["none" if bound is None else "both" if low else "upper" for bound, low in zip(shape, lower, strict=True)]
    return ArrayAttr([string_attr(w) for w in words])


def _parse_block(parser: Parser) -> tuple[list[SSAValue], list[SSAValue], list[SSAValue], ArrayAttr]:
    parser.parse_keyword("at")
    offsets = parse_operand_group(parser)
    parser.parse_keyword("strides")
    strides = parse_operand_group(parser)
    bounds: list[SSAValue] = []
    words = ["none"] * len(offsets)
    if parser.parse_optional_keyword("shape"):
        bounds = parse_operand_group(parser)
        parser.parse_keyword("checks")
        words = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
    return offsets, strides, bounds, ArrayAttr([string_attr(w) for w in words])


class LoadBlockOp(_BlockAccess):
    """`tile.load_block %p at (%i : i32) strides (%s : i32) shape (%n : i32) checks [both] other %x : …, tensor<128xf32>`.

    `shape` holds None for an unchecked dim; `lower` says which checked dims are also checked against 0 (all by default).
    """

    name = "tile.load_block"
    traits = OpTraits(lambda: (MemoryReadEffect(),))

    def __init__(
        self, base: Value, shape: Sequence[Value | None], strides: Sequence[Value], offsets: Sequence[Value],
        block: Sequence[int], other: Value | None = None, *, lower: Sequence[bool] | None = None,
        cache: str | None = None, eviction: str | None = None, volatile: bool = False,
    ) -> None:
        bounds = [b for b in shape if b is not None]
        values = [SSAValue.get(v) for v in (base, *offsets, *strides, *bounds, *(() if other is None else (other,)))]
        super().__init__(
            operands=values,
            result_types=[types.tile(tuple(block), types.pointee_of(values[0].type))],
            properties={"checks": _checks_attr(shape, lower), **_hint_properties(cache, eviction, volatile)},
        )

    @property
    def block_type(self) -> Attribute:
        return self.results[0].type

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
        printer.print_string(" ")
        printer.print_operand(self.base)
        self._print_block(printer)
        if self.other is not None:
            printer.print_string(" other ")
            printer.print_operand(self.other)
        self._print_types(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        base = parser.parse_unresolved_operand()
        offsets, strides, bounds, checks = _parse_block(parser)
        other = parse_optional_after(parser, "other")
        hints = _parse_hints(parser)
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


class StoreBlockOp(_BlockAccess):
    """`tile.store_block %p, %v at (%i : i32) strides (%s : i32) : !tile.ptr<f32>, tensor<128xf32>`; see LoadBlockOp."""

    name = "tile.store_block"
    result_count = 0
    traits = OpTraits(lambda: (MemoryWriteEffect(),))

    def __init__(
        self, base: Value, value: Value, shape: Sequence[Value | None], strides: Sequence[Value],
        offsets: Sequence[Value], *, lower: Sequence[bool] | None = None,
        cache: str | None = None, eviction: str | None = None, volatile: bool = False,
    ) -> None:
        bounds = [b for b in shape if b is not None]
        super().__init__(
            operands=[SSAValue.get(v) for v in (base, *offsets, *strides, *bounds, value)],
            properties={"checks": _checks_attr(shape, lower), **_hint_properties(cache, eviction, volatile)},
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
        printer.print_string(" ")
        printer.print_list((self.base, self.value), printer.print_operand)
        self._print_block(printer)
        self._print_types(printer)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        base = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        offsets, strides, bounds, checks = _parse_block(parser)
        hints = _parse_hints(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        base_value = parser.resolve_operand(base, parser.parse_type())
        parser.parse_punctuation(",")
        tile_value = parser.resolve_operand(value, parser.parse_type())
        return cls.create(
            operands=[base_value, *offsets, *strides, *bounds, tile_value],
            properties={"checks": checks, **hints}, attributes=attributes,
        )


class BarrierOp(TileOp):
    """Stores of the program before it are seen by loads of the program after it, whichever lane made them."""

    name = "tile.barrier"
    operand_count = 0
    result_count = 0
    traits = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))

    def __init__(self) -> None:
        super().__init__()

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.create(attributes=parser.parse_optional_attr_dict())

