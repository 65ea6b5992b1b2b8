"""Atomic read-modify-write, compare-and-swap and fences of tile IR: kinds, element types, order and scope, and their text.

Each element of a tile is one atomic access of its own, in no promised order; equal addresses in a tile are as many
accesses. The result is what was in memory before. Order and scope are those of C++20
([intro.races], [atomics.order]) and LLVM's LangRef, "Memory Model for Concurrent Operations": `acquire` keeps later accesses
of the whole program behind the atomic, `release` keeps earlier ones before it, whichever lane made them; a masked-off element
is not an access and orders nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from xdsl.ir import Attribute, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilefw.tile import types
from tilefw.tile.dialect.base import TileOp, Value, dense_i32, string_attr, value_of
from tilefw.tile.dialect.memory_ops import PointerAccess, accessed_type, parse_address, parse_address_types
from tilefw.tile.dialect.op_text import parse_optional_after, resolve_optional

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("workgroup", "device", "system")  # Triton's cta, gpu, sys

_INTS = (types.i32, types.i64)
_FLOATS = (types.f32, types.f64)


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of read-modify-write computes of the old value and the operand, and for which elements it is there.

    `name` is Triton's word, which capabilities use too; `unsigned` tells the integers apart, which are signless in IR.
    """

    name: str
    elements: tuple[Attribute, ...]
    unsigned: bool = False


# Element types are those of Triton 3.9 (`semantic.py`, _validate_atomic_rmw_element_type): 16-bit floats add alone.
# maxf and minf order as IEEE 754-2019 totalOrder does, -0 below +0: Triton compares the codes as integers. So a NaN of
# positive sign is above infinity and one of negative sign below it; tile IR keeps no sign of a NaN, hence either may come.
KINDS: dict[str, Kind] = {
    "add": Kind("add", (*_INTS, types.f16, types.bf16, *_FLOATS)),
    "maxs": Kind("max", _INTS),
    "maxu": Kind("max", _INTS, unsigned=True),
    "maxf": Kind("max", _FLOATS),
    "mins": Kind("min", _INTS),
    "minu": Kind("min", _INTS, unsigned=True),
    "minf": Kind("min", _FLOATS),
    "and": Kind("and", _INTS),
    "or": Kind("or", _INTS),
    "xor": Kind("xor", _INTS),
    "xchg": Kind("xchg", (*_INTS, *_FLOATS)),
}
# A compare-and-swap compares codes, so that -0 and +0 differ and a NaN is equal to its own code.
CAS_ELEMENTS: tuple[Attribute, ...] = (types.i16, *_INTS, types.f16, types.bf16, *_FLOATS)


class Ordered(TileOp):
    """An op with the properties `order` and `scope`, of tile IR or of lane IR."""

    @property
    def order(self) -> str:
        """`relaxed`, `acquire`, `release` or `acq_rel`."""
        return self.word("order")

    @property
    def scope(self) -> str:
        """Whom the order is for: `workgroup`, `device` or `system`."""
        return self.word("scope")

    @property
    def acquires(self) -> bool:
        """Whether no later access may move before this one."""
        return self.order in ("acquire", "acq_rel")

    @property
    def releases(self) -> bool:
        """Whether no earlier access may move behind this one."""
        return self.order in ("release", "acq_rel")

    def order_problem(self) -> str | None:
        """What is wrong with the two words."""
        for what, word, known in (("order", self.order, ORDERS), ("scope", self.scope, SCOPES)):
            if word not in known:
                return f"the {what} {word!r} is none of {', '.join(known)}"
        return None


class AtomicOp(Ordered, PointerAccess):
    """What both atomics share: order, scope, an old value of the accessed elements as the one result."""

    property_names = frozenset({"operandSegmentSizes", "order", "scope"})
    traits = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))
    value_names: ClassVar[tuple[str, ...]] = ("value",)  # the operands that hold elements, in order

    @property
    def value(self) -> SSAValue:
        """What is combined with the old value, or takes its place; elements of the pointee type."""
        return self._operand("value")

    @property
    def values(self) -> tuple[SSAValue, ...]:
        """The operands that hold elements: `value`, after `compare` where there is one."""
        return tuple(self._operand(name) for name in self.value_names)

    @property
    def result_is_used(self) -> bool:
        """Whether anyone reads the old values; where nobody does, they need not be fetched."""
        return self.results[0].first_use is not None

    def _operand(self, name: str) -> SSAValue:
        found = self._segment(name)
        assert found is not None
        return found

    def hint_problem(self) -> str | None:
        return self.order_problem()

    def value_problem(self, value_type: Attribute) -> str | None:
        for name in self.value_names:
            if self._operand(name).type != value_type:
                return f"the {name} is {self._operand(name).type}, expected {value_type}"
        allowed = self.elements
        if types.element_of(value_type) not in allowed:
            names = ", ".join(str(element) for element in allowed)
            return f"{self.what} is there for {names}, not for {types.element_of(value_type)}"
        return self.result_problem(value_type)

    def rebuilt(self, pointer: Value, offsets: Value | None, mask: Value | None) -> Self:
        """The same atomic of the same values through another form of the address or another mask."""
        raise NotImplementedError

    @property
    def elements(self) -> tuple[Attribute, ...]:
        """The element types that the op is there for."""
        raise NotImplementedError

    @property
    def what(self) -> str:
        """The op in an error message."""
        raise NotImplementedError

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string("".join(f" {word}" for word in self._words()))
        self._print_address(printer)
        for value in self.values:
            printer.print_string(", ")
            printer.print_operand(value)
        if self.mask is not None:
            printer.print_string(" mask ")
            printer.print_operand(self.mask)
        self._print_tail(printer)

    def _words(self) -> tuple[str, ...]:
        return self.order, self.scope


def access_parts(values: tuple[Value | None, ...]) -> tuple[list[SSAValue], dict[str, Attribute], Attribute]:
    """Operands, segment sizes and result type of an atomic with pointer, offsets?, values…, mask?."""
    found = [None if v is None else value_of(v) for v in values]
    present = [v for v in found if v is not None]
    sizes = dense_i32(tuple(int(v is not None) for v in found))
    result = accessed_type(present[0].type, None if found[1] is None else found[1].type)
    return present, {"operandSegmentSizes": sizes}, result


def _parse_access(parser: Parser, values: int) -> tuple[list[SSAValue | None], dict[str, Attribute]]:
    """Pointer, offsets, `values` operands of elements and the mask, with the op's attributes."""
    pointer, offsets = parse_address(parser)
    unresolved = []
    for _ in range(values):
        parser.parse_punctuation(",")
        unresolved.append(parser.parse_unresolved_operand())
    mask = parse_optional_after(parser, "mask")
    attributes = parser.parse_optional_attr_dict()
    pointer_type, offsets_type = parse_address_types(parser, offsets is not None)
    at, where, held, masked = parse_access_operands(parser, (pointer, offsets, unresolved, mask), pointer_type, offsets_type)
    return [at, where, *held, masked], attributes


def parse_access_operands(
    parser: Parser, written: tuple[Any, Any, list[Any], Any], pointer_type: Attribute, offsets_type: Attribute | None
) -> tuple[SSAValue, SSAValue | None, list[SSAValue], SSAValue | None]:
    """The operands that were written as pointer, offsets?, elements and mask?, once the address's types are known."""
    pointer, offsets, values, mask = written
    value_type = accessed_type(pointer_type, offsets_type)
    return (
        parser.resolve_operand(pointer, pointer_type), resolve_optional(parser, offsets, offsets_type),
        [parser.resolve_operand(value, value_type) for value in values],
        resolve_optional(parser, mask, types.with_element(value_type, types.i1)),
    )


def parse_word(parser: Parser, what: str, allowed: tuple[str, ...]) -> str:
    position = parser.pos
    word = parser.parse_identifier(context_msg=f" for the {what}")
    if word not in allowed:
        parser.raise_error(f"the {what} {word!r} is none of {', '.join(allowed)}", position)
    return word


class AtomicRmwOp(AtomicOp):
    """`tile.atomic_rmw add acq_rel device %p[%offsets], %value mask %m : !tile.ptr<f32>[tensor<128xi32>]`.

    Offsets and mask are optional. The result is the old value of each element, unspecified where the mask is off.
    """

    name = "tile.atomic_rmw"
    segment_names = ("pointer", "offsets", "value", "mask")
    property_names = AtomicOp.property_names | {"kind"}

    def __init__(
        self, kind: str, pointer: Value, value: Value, offsets: Value | None = None, mask: Value | None = None, *,
        order: str = "acq_rel", scope: str = "device",
    ) -> None:
        operands, segments, result = access_parts((pointer, offsets, value, mask))
        words = {"kind": string_attr(kind), "order": string_attr(order), "scope": string_attr(scope)}
        super().__init__(operands=operands, result_types=[result], properties={**segments, **words})

    @property
    def kind(self) -> str:
        """A key of `KINDS`."""
        return self.word("kind")

    @property
    def elements(self) -> tuple[Attribute, ...]:
        """The element types that the kind is there for."""
        return KINDS[self.kind].elements

    @property
    def what(self) -> str:
        """The kind in an error message."""
        return f"atomic {self.kind}"

    def rebuilt(self, pointer: Value, offsets: Value | None, mask: Value | None) -> Self:
        return type(self)(self.kind, pointer, self.value, offsets, mask, order=self.order, scope=self.scope)

    def value_problem(self, value_type: Attribute) -> str | None:
        if self.kind not in KINDS:
            return f"the kind {self.kind!r} is none of {', '.join(KINDS)}"
        return super().value_problem(value_type)

    def _words(self) -> tuple[str, ...]:
        return self.kind, self.order, self.scope

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        kind = parse_word(parser, "kind", tuple(KINDS))
        order = parse_word(parser, "order", ORDERS)
        scope = parse_word(parser, "scope", SCOPES)
        (pointer, offsets, value, mask), attributes = _parse_access(parser, 1)
        assert pointer is not None and value is not None
        op = cls(kind, pointer, value, offsets, mask, order=order, scope=scope)
        op.attributes = attributes
        return op


class AtomicCasOp(AtomicOp):
    """`tile.atomic_cas acq_rel device %p[%offsets], %compare, %value mask %m : !tile.ptr<i32>[tensor<128xi32>]`.

    An element whose code equals that of `compare` becomes `value`. Offsets and mask are optional. The result is the old
    value of each element, whether it was exchanged or not, unspecified where the mask is off.
    """

    name = "tile.atomic_cas"
    segment_names = ("pointer", "offsets", "compare", "value", "mask")
    value_names = ("compare", "value")

    def __init__(
        self, pointer: Value, compare: Value, value: Value, offsets: Value | None = None, mask: Value | None = None, *,
        order: str = "acq_rel", scope: str = "device",
    ) -> None:
        operands, segments, result = access_parts((pointer, offsets, compare, value, mask))
        words = {"order": string_attr(order), "scope": string_attr(scope)}
        super().__init__(operands=operands, result_types=[result], properties={**segments, **words})

    @property
    def compare(self) -> SSAValue:
        """What an element must hold to be exchanged."""
        return self._operand("compare")

    def rebuilt(self, pointer: Value, offsets: Value | None, mask: Value | None) -> Self:
        return type(self)(pointer, self.compare, self.value, offsets, mask, order=self.order, scope=self.scope)

    @property
    def elements(self) -> tuple[Attribute, ...]:
        """Elements of 16, 32 and 64 bits."""
        return CAS_ELEMENTS

    @property
    def what(self) -> str:
        """The op in an error message."""
        return "atomic compare-and-swap"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        order = parse_word(parser, "order", ORDERS)
        scope = parse_word(parser, "scope", SCOPES)
        (pointer, offsets, compare, value, mask), attributes = _parse_access(parser, 2)
        assert pointer is not None and compare is not None and value is not None
        op = cls(pointer, compare, value, offsets, mask, order=order, scope=scope)
        op.attributes = attributes
        return op


FENCE_ORDERS = ORDERS[1:]


class FenceOp(Ordered):
    """`tile.fence release system`: an order without an access, C++20's [atomics.fences].

    With `release`, whoever acquires what a later relaxed atomic of the program writes sees what the program accessed before the
    fence. With `acquire`, the program accesses behind it what was released at the elements that its earlier relaxed atomics read.
    """

    name = "tile.fence"
    operand_count = 0
    result_count = 0
    property_names = frozenset({"order", "scope"})
    traits = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))

    def __init__(self, order: str = "acq_rel", scope: str = "system") -> None:
        super().__init__(properties={"order": string_attr(order), "scope": string_attr(scope)})

    def problem(self) -> str | None:
        return "a relaxed fence orders nothing" if self.order == "relaxed" else self.order_problem()

    def print(self, printer: Printer) -> None:
        """Write the two words behind the op's name."""
        printer.print_string(f" {self.order} {self.scope}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        op = cls(parse_word(parser, "order", FENCE_ORDERS), parse_word(parser, "scope", SCOPES))
        op.attributes = parser.parse_optional_attr_dict()
        return op


ATOMIC_OPS: tuple[type[AtomicOp], ...] = (AtomicRmwOp, AtomicCasOp)
