"""The list of the tile dialect's ops, and the definitions of those of the grid, of ranges and of pointers.

Other files define shape ops (`shape_ops.py`), reductions and scans (`combine_op.py`), dots (`dot_op.py`) and memory ops
(`memory_ops.py`, `block_ops.py`, `atomic_ops.py`); `elementwise_op.py` makes one op of each row of the elementwise table.
"""

from __future__ import annotations

from typing import Self

from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilefw.tile import types
from tilefw.tile.dialect.atomic_ops import ATOMIC_OPS, AtomicCasOp, AtomicRmwOp, FenceOp
from tilefw.tile.dialect.base import PURE, TileOp, Value, integer_attr, value_of
from tilefw.tile.dialect.block_ops import LoadBlockOp, StoreBlockOp
from tilefw.tile.dialect.combine_op import ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp
from tilefw.tile.dialect.constant_op import ConstantOp
from tilefw.tile.dialect.dot_op import DotOp
from tilefw.tile.dialect.dot_scaled_op import DotScaledOp
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.dialect.inline_asm_op import InlineAsmOp
from tilefw.tile.dialect.memory_ops import BarrierOp, LoadOp, StoreOp
from tilefw.tile.dialect.multicast_op import MulticastOp
from tilefw.tile.dialect.observe_op import ObserveOp
from tilefw.tile.dialect.op_text import parse_type_at_end, print_types
from tilefw.tile.dialect.print_op import PrintOp
from tilefw.tile.dialect.shape_ops import SHAPE_OPS, BroadcastOp, ExpandDimsOp, FlipOp, JoinOp, ReshapeOp, SplatOp, SplitOp, TransOp
from tilefw.tile.dialect.trap_op import TrapOp

__all__ = [
    "AddPtrOp", "AtomicCasOp", "AtomicRmwOp", "BarrierOp", "BroadcastOp", "ConstantOp", "DotOp", "DotScaledOp", "ExpandDimsOp",
    "FenceOp", "FlipOp", "GatherOp", "InlineAsmOp", "IotaOp", "JoinOp", "LoadBlockOp", "LoadOp", "MulticastOp", "NumProgramsOp",
    "OPS", "ObserveOp", "PrintOp",
    "ProgramIdOp", "ReduceOp", "ReduceReturnOp", "ReshapeOp", "ScanOp", "ScanReturnOp", "SplatOp", "SplitOp", "StoreBlockOp",
    "StoreOp", "TransOp", "TrapOp",
]

AXES = 3  # a grid has up to three axes


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
            return f"{start} to {end} is not a range of 32-bit integers"
        return self.result_problem(types.tile((end - start,), types.i32))

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(f" {self.start} to {self.end}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        position = parser.pos
        start = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("to")
        end = parser.parse_integer(allow_boolean=False)
        if not -(2**31) <= start < end <= 2**31:
            parser.raise_error(f"{start} to {end} is not a range of 32-bit integers", position)
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
        return self.result_problem(types.i32)

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(f" {self.axis}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
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
        value = value_of(pointer)
        super().__init__(operands=[value, value_of(offset)], result_types=[value.type])

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
        return self.result_problem(pointer)

    def print(self, printer: Printer) -> None:
        """Write the operands, properties and types behind the op's name."""
        printer.print_string(" ")
        printer.print_list(self._operands, printer.print_operand)
        print_types(printer, self.attributes, self.operand_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes; the parser raises its ParseError where the text is something else."""
        pointer = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offset = parser.parse_unresolved_operand()
        attributes, type = parse_type_at_end(parser)
        parser.parse_punctuation(",")
        values = [parser.resolve_operand(pointer, type), parser.resolve_operand(offset, parser.parse_type())]
        return cls.create(operands=values, result_types=[type], attributes=attributes)


OPS: tuple[type[TileOp], ...] = (
    ConstantOp, *SHAPE_OPS, GatherOp, IotaOp, ProgramIdOp, NumProgramsOp, AddPtrOp, ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp,
    DotOp, DotScaledOp, LoadOp, StoreOp, LoadBlockOp, StoreBlockOp, *ATOMIC_OPS, MulticastOp, FenceOp, BarrierOp, TrapOp,
    PrintOp, InlineAsmOp, ObserveOp,
)
