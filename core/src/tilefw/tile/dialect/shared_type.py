"""The type of shared buffers: one tile's worth of a workgroup's shared memory, or a ring of slots of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from tilefw.tile import types


@irdl_attr_definition
class SharedType(ParametrizedAttribute, TypeAttribute):
    """A buffer of one tile, `!tile.shared<128x32xf16>`, or a ring of slots of it, `!tile.shared<3 x 128x32xf16>`."""

    name = "tile.shared"

    count: IntAttr
    dims: ArrayAttr[IntAttr]
    element: Attribute

    def __init__(self, slots: int, shape: Sequence[int], element: Attribute) -> None:
        super().__init__(IntAttr(slots), ArrayAttr([IntAttr(size) for size in shape]), element)

    @property
    def slots(self) -> int:
        """How many slots the ring has; 0 for a view, which is one slot or a buffer without slots."""
        return self.count.data

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the buffer, or of each slot."""
        return tuple(size.data for size in self.dims.data)

    @property
    def view(self) -> SharedType:
        """The type of one slot."""
        return shared(0, self.shape, self.element) if self.slots else self

    @property
    def tile(self) -> Attribute:
        """The type of the tile that one slot holds."""
        return types.tile(self.shape, self.element)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            position = parser.pos
            first = parser.parse_shape_dimension(allow_dynamic=False)
            slots = first if parser.parse_optional_keyword("x") else 0  # alone: the x between dims touches the next one
            head: list[int] = [] if slots else [first]
            if not slots:
                parser.parse_shape_delimiter()
            dims, element = parser.parse_ranked_shape()
        shape = [*head, *dims]
        if not shape or min(shape) < 1 or not (types.is_int(element) or types.is_float(element)):
            parser.raise_error("a shared buffer is <128x32xf16>, a ring of slots <3 x 128x32xf16>", position)
        return (IntAttr(slots), ArrayAttr([IntAttr(size) for size in shape]), element)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.slots} x " if self.slots else "")
            printer.print_string("".join(f"{size}x" for size in self.shape))
            printer.print_attribute(self.element)


@cache
def shared(slots: int, shape: tuple[int, ...], element: Attribute) -> SharedType:
    """`!tile.shared<slots x shape x element>`, made once; 0 slots for a buffer without."""
    return SharedType(slots, shape, element)


def shared_type_of(value: SSAValue) -> SharedType:
    """The type of a shared buffer, a ring or one of its slots; raises TypeError for other values."""
    if not isinstance(value.type, SharedType):
        raise TypeError(f"{value.type} is not a shared buffer")
    return value.type


def parse_shared_type(parser: Parser) -> SharedType:
    position = parser.pos
    type = parser.parse_type()
    if not isinstance(type, SharedType):
        parser.raise_error(f"expected a !tile.shared type, got {type}", position)
    return type


def view_problem(value: SSAValue, ring: bool) -> str | None:
    """What is wrong with a value that must be a ring, or a view."""
    if isinstance(value.type, SharedType) and bool(value.type.slots) == ring:
        return None
    return f"takes {'a ring of slots' if ring else 'a shared buffer or one slot of a ring'}, got {value.type}"
