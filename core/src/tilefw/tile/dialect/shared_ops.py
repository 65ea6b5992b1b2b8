"""Shared buffers of a workgroup at tile level: buffers and rings of slots, what is read and written there, groups of copies.

A copy is under way from its op until the `tile.wait` that covers its commit group; before that its slot may be neither read
nor written. Groups complete in order: `tile.wait n` leaves the n latest groups under way.
"""

from __future__ import annotations

from typing import Self

from xdsl.ir import Attribute, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect

from tilefw.tile import types
from tilefw.tile.dialect.base import PURE, TileOp, Value, integer_attr, value_of
from tilefw.tile.dialect.copy_ops import CopyBlockOp, CopyOp
from tilefw.tile.dialect.op_text import parse_type_at_end, print_types
from tilefw.tile.dialect.shared_type import SharedType, parse_shared_type, shared, shared_type_of, view_problem

__all__ = [
    "SHARED_OPS", "AllocSharedOp", "CommitOp", "CopyBlockOp", "CopyOp", "HandOverOp", "LoadSharedOp", "SharedType", "SlotOp",
    "StoreSharedOp", "WaitOp", "shared",
]

_READS_AND_WRITES = OpTraits(lambda: (MemoryReadEffect(), MemoryWriteEffect()))


class AllocSharedOp(TileOp):
    """`tile.alloc_shared : !tile.shared<3 x 128x32xf16>`: uninitialised space of the workgroup, anew each time it runs."""

    name = "tile.alloc_shared"
    operand_count = 0
    traits = OpTraits(lambda: (MemoryAllocEffect(),))

    def __init__(self, type: SharedType) -> None:
        super().__init__(result_types=[type])

    @property
    def type(self) -> SharedType:
        """The type of the buffer."""
        return shared_type_of(self.results[0])

    def problem(self) -> str | None:
        type = self.results[0].type
        return None if isinstance(type, SharedType) else f"gives a shared buffer, got {type}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        print_types(printer, self.attributes, [self.results[0].type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        attributes, type = parse_type_at_end(parser)
        return cls.create(result_types=[type], attributes=attributes)


class SlotOp(TileOp):
    """`tile.slot %ring[%i] phase 1 : !tile.shared<3 x 128x32xf16>`: one slot of a ring; `%i` is an i32 in range.

    `phase` promises how many iterations ahead of the current one of the innermost loop around it the slot is used: within one
    iteration slots of phases that differ modulo the ring's slots are different, and phase p is the next iteration's p - 1. A
    slot without a phase (before the loop) may be any.
    """

    name = "tile.slot"
    operand_count = 2
    property_names = frozenset({"phase"})
    traits = PURE

    def __init__(self, ring: Value, index: Value, phase: int | None = None) -> None:
        values = [value_of(ring), value_of(index)]
        promised: dict[str, Attribute] = {} if phase is None else {"phase": integer_attr(phase)}
        super().__init__(operands=values, result_types=[shared_type_of(values[0]).view], properties=promised)

    @property
    def ring(self) -> SSAValue:
        """The ring of slots."""
        return self._operands[0]

    @property
    def index(self) -> SSAValue:
        """The number of the slot, 0 <= index < slots."""
        return self._operands[1]

    @property
    def phase(self) -> int | None:
        """How many iterations ahead the slot is used; None where nothing is promised."""
        return self.integer("phase") if "phase" in self.properties else None

    def problem(self) -> str | None:
        wrong = view_problem(self.ring, ring=True)
        if wrong is not None:
            return wrong
        if self.index.type != types.i32:
            return f"the index is an i32, got {self.index.type}"
        if self.phase is not None and self.phase < 0:
            return f"a phase is at least 0, got {self.phase}"
        return self.result_problem(shared_type_of(self.ring).view)

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_operand(self.ring)
        printer.print_string("[")
        printer.print_operand(self.index)
        printer.print_string("]" if self.phase is None else f"] phase {self.phase}")
        print_types(printer, self.attributes, [self.ring.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        ring = parser.parse_unresolved_operand()
        parser.parse_punctuation("[")
        index = parser.resolve_operand(parser.parse_unresolved_operand(), types.i32)
        parser.parse_punctuation("]")
        phase = parser.parse_integer(allow_negative=False) if parser.parse_optional_keyword("phase") else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parse_shared_type(parser)
        op = cls(parser.resolve_operand(ring, type), index, phase)
        op.attributes = attributes
        return op


class CommitOp(TileOp):
    """`tile.commit`: the copies since the last commit become a group, also when there are none."""

    name = "tile.commit"
    operand_count = 0
    result_count = 0
    traits = _READS_AND_WRITES

    def __init__(self) -> None:
        super().__init__()

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        return cls.create(attributes=parser.parse_optional_attr_dict())


class WaitOp(TileOp):
    """`tile.wait 1`: the copies of all groups but the latest one have landed, and the whole program sees them."""

    name = "tile.wait"
    operand_count = 0
    result_count = 0
    property_names = frozenset({"pending"})
    traits = _READS_AND_WRITES

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": integer_attr(pending)})

    @property
    def pending(self) -> int:
        """How many of the latest groups may still be under way."""
        return self.integer("pending")

    def problem(self) -> str | None:
        return None if self.pending >= 0 else f"waits for all but a number of groups of at least 0, got {self.pending}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(f" {self.pending}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        op = cls(parser.parse_integer(allow_negative=False))
        op.attributes = parser.parse_optional_attr_dict()
        return op


class HandOverOp(TileOp):
    """`tile.hand_over %slot, %parity of 3`: the copies before it have landed in that slot of rings of 3, and the program sees them.

    The slots follow one another; the parity changes with each round. Here a loop is divided between who copies and who reads.
    """

    name = "tile.hand_over"
    operand_count = 2
    result_count = 0
    property_names = frozenset({"slots"})
    traits = _READS_AND_WRITES

    def __init__(self, slot: Value, parity: Value, slots: int) -> None:
        super().__init__(operands=[value_of(slot), value_of(parity)], properties={"slots": integer_attr(slots)})

    @property
    def slots(self) -> int:
        """The slots of the rings."""
        return self.integer("slots")

    def problem(self) -> str | None:
        if any(operand.type != types.i32 for operand in self._operands):
            return "the slot and its parity are i32"
        return None if self.slots > 1 else "rings have two slots at least"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        printer.print_string(f" of {self.slots}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        slot = parser.resolve_operand(parser.parse_unresolved_operand(), types.i32)
        parser.parse_punctuation(",")
        parity = parser.resolve_operand(parser.parse_unresolved_operand(), types.i32)
        parser.parse_keyword("of")
        op = cls(slot, parity, parser.parse_integer(allow_negative=False))
        op.attributes = parser.parse_optional_attr_dict()
        return op


class LoadSharedOp(TileOp):
    """`tile.load_shared %view : !tile.shared<128x32xf16>`: the tile that a slot or buffer holds."""

    name = "tile.load_shared"
    operand_count = 1
    traits = OpTraits(lambda: (MemoryReadEffect(),))

    def __init__(self, view: Value) -> None:
        value = value_of(view)
        super().__init__(operands=[value], result_types=[shared_type_of(value).tile])

    @property
    def view(self) -> SSAValue:
        """The slot or buffer that is read."""
        return self._operands[0]

    def problem(self) -> str | None:
        return view_problem(self.view, ring=False) or self.result_problem(shared_type_of(self.view).tile)

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_operand(self.view)
        print_types(printer, self.attributes, [self.view.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        view = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(parser.resolve_operand(view, parse_shared_type(parser)))
        op.attributes = attributes
        return op


class StoreSharedOp(TileOp):
    """`tile.store_shared %view, %value : !tile.shared<128x32xf16>`: the slot or buffer then holds the tile."""

    name = "tile.store_shared"
    operand_count = 2
    result_count = 0
    traits = OpTraits(lambda: (MemoryWriteEffect(),))

    def __init__(self, view: Value, value: Value) -> None:
        super().__init__(operands=[value_of(view), value_of(value)])

    @property
    def view(self) -> SSAValue:
        """The slot or buffer that is written."""
        return self._operands[0]

    @property
    def value(self) -> SSAValue:
        """What it holds then."""
        return self._operands[1]

    def problem(self) -> str | None:
        wrong = view_problem(self.view, ring=False)
        if wrong is not None:
            return wrong
        held = shared_type_of(self.view).tile
        return None if self.value.type == held else f"the value is {self.value.type}, expected {held}"

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list((self.view, self.value), printer.print_operand)
        print_types(printer, self.attributes, [self.view.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        view = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parse_shared_type(parser)
        op = cls(parser.resolve_operand(view, type), parser.resolve_operand(value, type.tile))
        op.attributes = attributes
        return op


SHARED_OPS: tuple[type[TileOp], ...] = (
    AllocSharedOp, SlotOp, CopyBlockOp, CopyOp, CommitOp, WaitOp, HandOverOp, LoadSharedOp, StoreSharedOp,
)
