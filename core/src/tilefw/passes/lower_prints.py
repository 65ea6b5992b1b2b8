"""Prints as records in memory: each program appends its own to a buffer that the runtime passes, and the host writes the lines.

A kernel with prints gets one more parameter, hidden from the user, which points to the buffer (`print_records.py` has its layout).
A print adds its record's size to the buffer's counter, atomically. What the counter held before is the record's place; where it
has no room, the record counts as lost. This asks no more of a target than atomic sums of 64 bits and stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilefw.passes.rewriting import erase, place_before
from tilefw.print_records import (
    ALIGNMENT,
    HEADER_BYTES,
    HIDDEN,
    LOST,
    PARAMETER,
    ROOM,
    WORD_BYTES,
    PrintedOperand,
    PrintSite,
    to_text,
)
from tilefw.tile import types
from tilefw.tile.dialect import elementwise_op, ops
from tilefw.tile.dialect.base import integer_attr, string_attr
from tilefw.tile.dialect.kernel_info import PRINTS
from tilefw.tile.dialect.print_op import POINTER, PrintOp
from tilefw.tile.nested_ops import nested_ops

_WORDS = {16: types.i16, 32: types.i32, 64: types.i64}


@dataclass(frozen=True)
class LowerPrintsPass(ModulePass):
    """Writes the prints of each function as records of its print buffer."""

    name = "lower-prints"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                prints = [found for found in nested_ops(function) if isinstance(found, PrintOp)]
                if prints:
                    _lower(function, prints)


def _lower(function: func.FuncOp, prints: Sequence[PrintOp]) -> None:
    buffer = _add_parameter(function)
    sites = []
    for number, op in enumerate(prints, 1):
        values = [_stored(op, name, value) for name, value in zip(op.elements, op.operands, strict=True)]
        site = PrintSite(op.prefix, op.hex, tuple(PrintedOperand(name, types.shape_of(value.type)) for name, value in values))
        sites.append(site)
        _AppendedRecord(op, buffer, site, number).append([value for _, value in values])
        erase(op)
    function.attributes[PRINTS] = string_attr(to_text(sites))


def _add_parameter(function: func.FuncOp) -> SSAValue:
    block = function.body.block
    stated = [] if function.arg_attrs is None else list(function.arg_attrs.data)
    buffer = block.insert_arg(types.pointer(types.i64), len(block.args))
    buffer.name_hint = PARAMETER.replace(".", "_")
    facts: dict[str, Attribute] = {
        "tile.name": string_attr(PARAMETER), "tile.hidden": string_attr(HIDDEN), "tile.divisible": integer_attr(ALIGNMENT),
    }
    function.arg_attrs = ArrayAttr([*stated, DictionaryAttr(facts)])
    function.update_function_type()
    return buffer


def _stored(op: PrintOp, name: str, value: SSAValue) -> tuple[str, SSAValue]:
    """An operand as records hold it, as integers, with its element type: conditions are bytes, narrow floats fp32.

    Floats are stored as their bits, so that all of the buffer is integers: the reference keeps no bits of NaNs."""
    element = types.element_of(value.type)
    if name == POINTER:
        return name, _cast(op, "ptr_to_int", value, types.i64)
    if types.is_bool(element):
        return name, _cast(op, "extu", value, types.i8)
    if not types.is_float(element):
        return name, value
    if types.dtype_of(element).bits < 16:
        name, value, element = "fp32", _cast(op, "castf", value, types.f32), types.f32
    return name, _cast(op, "bitcast", value, _WORDS[types.dtype_of(element).bits])


def _cast(op: PrintOp, row: str, value: SSAValue, element: Attribute) -> SSAValue:
    made = elementwise_op.build(row, value, result=types.with_element(value.type, element))
    place_before(made, op)
    return made.results[0]


class _AppendedRecord:
    """The record of one print: a place in the buffer, and stores to it."""

    def __init__(self, op: PrintOp, buffer: SSAValue, site: PrintSite, number: int) -> None:
        self.op = op
        self.buffer = buffer
        self.site = site
        self.number = number
        self.block: Block | None = None  # where ops go; before the print while it is None

    def append(self, values: Sequence[SSAValue]) -> None:
        """Make the ops that append the record with operands of these values."""
        size = self.constant(self.site.nbytes, types.i64)
        begin = self.add(ops.AtomicRmwOp("add", self.buffer, size, order="relaxed", scope="device"))
        begin.owner.attributes["tile.divisible"] = integer_attr(ALIGNMENT)  # type: ignore[union-attr]
        room = self.add(ops.LoadOp(self.word(ROOM)))
        fits = self.row("les", self.row("addi", begin, size), room)
        written, lost = Block(), Block()
        self.block = lost
        self.add(ops.AtomicRmwOp("add", self.word(LOST), self.constant(1, types.i64), order="relaxed", scope="device"))
        self.add(scf.YieldOp())
        self.block = written
        self.write(begin, values)
        self.add(scf.YieldOp())
        self.block = None
        self.add(scf.IfOp(fits, [], [written], [lost]))

    def write(self, begin: SSAValue, values: Sequence[SSAValue]) -> None:
        """Store the record's number, the program's ids and the operands."""
        heads = [self.constant(self.number, types.i32), *(self.add(ops.ProgramIdOp(axis)) for axis in range(ops.AXES))]
        for index, head in enumerate(heads):
            self.add(ops.StoreOp(self.place(begin, 4 * index, types.i32), head))
        for offset, value in zip(self.site.offsets, values, strict=True):
            place = self.place(begin, offset, types.element_of(value.type))
            shape = types.shape_of(value.type)
            if not shape:
                self.add(ops.StoreOp(place, value))
                continue
            strides = [1] * len(shape)
            for dim in reversed(range(len(shape) - 1)):
                strides[dim] = strides[dim + 1] * shape[dim + 1]
            steps = [self.constant(stride, types.i32) for stride in strides]
            origin = [self.constant(0, types.i32) for _ in shape]
            self.add(ops.StoreBlockOp(place, value, [None] * len(shape), steps, origin))

    def place(self, begin: SSAValue, offset: int, element: Attribute) -> SSAValue:
        """A pointer to the record's byte `offset`."""
        bytes = self.row("bitcast", self.buffer, result=types.pointer(types.i8))
        at = self.row("addi", begin, self.constant(HEADER_BYTES + offset, types.i64))
        return self.row("bitcast", self.add(ops.AddPtrOp(bytes, at)), result=types.pointer(element))

    def word(self, index: int) -> SSAValue:
        """A pointer to a word of the buffer's header, of `WORD_BYTES`."""
        assert types.dtype_of(types.i64).bits == 8 * WORD_BYTES
        return self.add(ops.AddPtrOp(self.buffer, self.constant(index, types.i64)))

    def constant(self, number: int, type: Attribute) -> SSAValue:
        return self.add(ops.ConstantOp(number, type))

    def row(self, name: str, *operands: SSAValue, result: Attribute | None = None) -> SSAValue:
        return self.add(elementwise_op.build(name, *operands, result=result))

    def add(self, made: Operation) -> SSAValue:
        """Put an op at the end of what is made; its first result, or the buffer where it has none."""
        if self.block is None:
            place_before(made, self.op)
        else:
            made.location = self.op.location
            self.block.add_op(made)
        return made.results[0] if made.results else self.buffer
