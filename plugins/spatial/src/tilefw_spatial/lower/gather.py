"""Loads whose address depends on loaded data: rows of a table, which is all of the buffer that such an address may reach."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tilefw.api import DTYPES, BufferPlacement, DType
from tilefw.api.ir import Operation, place_of
from tilefw_spatial.graph import AccessMap, Gather, Load
from tilefw_spatial.limits import beyond
from tilefw_spatial.lower.arithmetic import INT64, as_offset
from tilefw_spatial.lower.constant_tile import ConstantTile, iota, splat, total
from tilefw_spatial.lower.guards import BOOL, allowed, forbid
from tilefw_spatial.lower.linear import linear
from tilefw_spatial.lower.order import forwarded
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.reach import reached
from tilefw_spatial.lower.state import State, TrackedAccess
from tilefw_spatial.lower.tiles import Data, Entry, Linear, Pointer, unsupported

_INT32 = DTYPES["int32"]
MOST_ELEMENTS = 1 << 24  # of a table: every one of them takes some 30 bytes of the compiler's memory


def advanced(state: State, pointer: Entry, offset: Entry) -> Pointer | None:
    """A pointer moved by a constant or loaded integer; None where it is no pointer of a parameter."""
    if not isinstance(pointer, Pointer):
        return None
    if isinstance(offset, ConstantTile):
        return pointer.moved(total(pointer.offset, as_offset(offset)))
    if not isinstance(offset, Data):
        return None
    form = linear(offset)
    if form.scale < 1:  # a table's rows are counted upwards
        form = Linear(offset, 1, splat(0, INT64, offset.shape))
    chosen, scale = form.base, form.scale
    if pointer.chosen is not None:
        scale = gcd(pointer.scale, form.scale)
        chosen = _together(state, (pointer.chosen, pointer.scale // scale), (form.base, form.scale // scale))
    return replace(pointer, offset=total(pointer.offset, form.offset), chosen=chosen, scale=scale)


def _together(state: State, *parts: tuple[Data, int]) -> Data:
    """The sum of multiples of loaded integers, as wide as the widest of them and no less than 32 bits."""
    dtype = INT64 if any(data.dtype.bits > 32 for data, _ in parts) else _INT32
    terms: list[Entry] = []
    for data, factor in parts:
        term: Entry = data if data.dtype.bits == dtype.bits else state.elementwise("exts", [data], dtype)
        terms.append(term if factor == 1 else state.elementwise("muli", [term, splat(factor, dtype, data.shape)], dtype))
    found = state.elementwise("addi", terms, dtype)
    assert isinstance(found, Data)
    return found


def gathered(state: State, op: Operation, pointer: Pointer, mask: ConstantTile | None, doubt: Data | None) -> Data:
    """The elements that data chooses; any where it chooses none of the buffer, which is a finding unless a mask excludes it."""
    chosen, capability = pointer.chosen, f"memory.gather.{pointer.dtype.name}"
    assert chosen is not None
    buffer = state.buffers[pointer.parameter]
    if buffer is None:
        raise unsupported(op, "an address depends on loaded data, and the buffer's size is not known", capability)
    first, last = _rows(pointer, buffer, chosen.dtype)
    _forbid_others(state, op, pointer, buffer, mask, doubt)
    axis = state.fresh(max(1, last - first + 1), "row")
    rows = iota(INT64, pointer.shape, axis, axis.extent, first * pointer.scale, pointer.scale)
    table = replace(pointer, offset=total(pointer.offset, rows), chosen=None)
    access = TrackedAccess(pointer.parameter, table.offset, mask, pointer.dtype, state.loops)
    if forwarded(state, op, access, pointer.dtype) is not None:
        raise unsupported(op, "data chooses among what the kernel itself has stored", f"memory.reload.{pointer.dtype.name}")
    state.loads.append(access)
    target_axes = tuple(state.dim_axis(chosen, dim) for dim in range(len(chosen.shape)))
    reach, target = reached(state, op, table, mask, target_axes, True)
    if (count := extent(state.axes.all(reach.axes))) > MOST_ELEMENTS:
        raise beyond("loaded data chooses from a table", count, MOST_ELEMENTS, "elements", place_of(op))
    value = state.made(Load(AccessMap(pointer.parameter, 0, ())), (axis, *(a for a in reach.axes if a is not axis)), pointer.dtype)
    state.reaches[value] = reach
    index = state.value(_within(state, chosen, first, axis.extent), target)
    axes = (*index.axes, *(other for other in state.axes.all(value.axes) if other is not axis))
    return state.data(state.made(Gather(value, axis, index), axes, pointer.dtype), target, pointer.shape)


def _rows(pointer: Pointer, buffer: BufferPlacement, dtype: DType) -> tuple[int, int]:
    """The least and the greatest integer of a type with which some address is within the buffer."""
    size = pointer.dtype.storage_bits // 8
    low, high = pointer.offset.bounds()
    least, most = -(buffer.offset // size), (buffer.nbytes - buffer.offset) // size - 1
    top = 1 << (dtype.bits - 1)
    return max(-top, -((high - least) // pointer.scale)), min(top - 1, (most - low) // pointer.scale)


def _forbid_others(
    state: State, op: Operation, pointer: Pointer, buffer: BufferPlacement, mask: ConstantTile | None, doubt: Data | None
) -> None:
    """Whatever data chooses beside the buffer is a finding, unless a mask leaves the element out."""
    chosen, size = pointer.chosen, pointer.dtype.storage_bits // 8
    assert chosen is not None
    if doubt is not None and doubt.apart is not None:
        mask, doubt = doubt.apart
    least, most = -(buffer.offset // size), (buffer.nbytes - buffer.offset) // size - 1
    bad: Entry | None = None
    for row, bound in zip(("lts", "gts"), allowed(pointer.offset, mask, least, most, pointer.scale, chosen.dtype), strict=True):
        if bound is not None:
            beyond = state.elementwise(row, [chosen, bound], BOOL)
            bad = beyond if bad is None else state.elementwise("ori", [bad, beyond], BOOL)
    if bad is not None and doubt is not None:
        bad = state.elementwise("andi", [bad, doubt], BOOL)
    if bad is not None:
        forbid(state, op, bad, mask, f"load of elements that data chooses beside {state.names[pointer.parameter]}")


def _within(state: State, chosen: Data, first: int, count: int) -> Entry:
    """The integer counted from the table's first row, kept within it where a mask leaves the result unused."""
    number = [splat(value, chosen.dtype, chosen.shape) for value in (first, first + count - 1)]
    raised = state.elementwise("maxs", [chosen, number[0]], chosen.dtype)
    kept = state.elementwise("mins", [raised, number[1]], chosen.dtype)
    return kept if first == 0 else state.elementwise("subi", [kept, number[0]], chosen.dtype)
