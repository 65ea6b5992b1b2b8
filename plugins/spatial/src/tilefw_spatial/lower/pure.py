"""Operations without effect, each as one function from the values it takes to those it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tilefw.api import DTYPES
from tilefw.api.ir import (
    AddPtrOp,
    BroadcastOp,
    ConstantOp,
    DotOp,
    ElementwiseOp,
    ExpandDimsOp,
    IotaOp,
    JoinOp,
    NumProgramsOp,
    Operation,
    ProgramIdOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SplatOp,
    SplitOp,
    StructuralOp,
    TransOp,
    types,
)
from tilefw_spatial.lower import combine, shapes
from tilefw_spatial.lower.constant_tile import ConstantTile, iota, of_term, splat
from tilefw_spatial.lower.gather import advanced
from tilefw_spatial.lower.state import State
from tilefw_spatial.lower.tiles import Entry, Pointer, unsupported

_INT32 = DTYPES["int32"]


def execute(state: State, op: Operation) -> bool:
    """Carry out an operation without effect; False for any other."""
    if isinstance(op, ElementwiseOp):
        state.values[op.result] = _elementwise(state, op)
        return True
    if (handler := _HANDLERS.get(type(op))) is not None:
        found = handler(state, op)
    elif isinstance(op, StructuralOp):
        found = shapes.moved(state, op)
    else:
        return False
    results: Sequence[Entry] = found if isinstance(found, list) else [found]
    state.values.update(zip(op.results, results, strict=True))
    return True


def _elementwise(state: State, op: ElementwiseOp) -> Entry:
    entries = [state.values[operand] for operand in op.operands]
    if any(isinstance(entry, Pointer) for entry in entries):
        return _on_pointers(op, entries)
    if types.is_pointer(op.result.type):
        raise unsupported(op, "an integer becomes a pointer", "cast.pointer.pointer")
    return state.elementwise(op.row.name, entries, types.dtype_of(op.result.type), op.rounding)


def _on_pointers(op: ElementwiseOp, entries: Sequence[Entry]) -> Entry:
    """A choice between pointers by a constant condition, or a pointer's cast to another element type."""
    if op.row.name == "select" and isinstance(entries[0], ConstantTile) and (condition := entries[0].number) is not None:
        return entries[1] if condition else entries[2]
    pointer = entries[0]
    if op.row.name == "bitcast" and isinstance(pointer, Pointer) and types.is_pointer(op.result.type):
        dtype = types.dtype_of(types.pointee_of(op.result.type))
        if dtype.storage_bits == pointer.dtype.storage_bits:
            return replace(pointer, dtype=dtype)
    raise unsupported(op, f"`{op.row.name}` on pointers has no place on a chip without addresses", "cast.pointer.pointer")


def _constant(state: State, op: ConstantOp) -> Entry:
    type = op.results[0].type
    return splat(op.value, types.dtype_of(type), types.shape_of(type))


def _iota(state: State, op: IotaOp) -> Entry:
    return iota(_INT32, (op.end - op.start,), 0, op.end - op.start, op.start)


def _program_id(state: State, op: ProgramIdOp) -> Entry:
    return of_term(_INT32, (), state.programs.id_along(op.axis))


def _num_programs(state: State, op: NumProgramsOp) -> Entry:
    return splat(state.programs.grid[op.axis], _INT32)


def _add_pointer(state: State, op: AddPtrOp) -> Entry:
    pointer, offset = state.values[op.pointer], state.values[op.offset]
    dtype = types.dtype_of(types.pointee_of(op.pointer.type))
    moved = advanced(state, pointer, offset)
    if moved is None:
        raise unsupported(op, "the address depends on loaded data", f"memory.gather.{dtype.name}")
    return moved


_HANDLERS: dict[type[Operation], Callable[[State, Any], Entry | list[Entry]]] = {
    ConstantOp: _constant, IotaOp: _iota, ProgramIdOp: _program_id, NumProgramsOp: _num_programs, AddPtrOp: _add_pointer,
    SplatOp: shapes.spread, BroadcastOp: shapes.spread, ExpandDimsOp: shapes.expand_dims, TransOp: shapes.transposed,
    ReshapeOp: shapes.reshaped, JoinOp: shapes.joined, SplitOp: shapes.split,
    ReduceOp: combine.reduced, ScanOp: combine.scanned, DotOp: combine.product,
}
