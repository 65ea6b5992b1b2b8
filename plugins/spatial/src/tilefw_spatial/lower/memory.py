"""Loads and stores: constant addresses become sums over axes, and no load reads what the launch has stored, unless it is
forwarded."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilefw.api import DTYPES, DType
from tilefw.api.ir import (
    AtomicCasOp,
    AtomicRmwOp,
    BlockAccess,
    LoadBlockOp,
    LoadOp,
    Operation,
    PointerAccess,
    SSAValue,
    StoreBlockOp,
    StoreOp,
    types,
)
from tilefw_spatial.graph import AccessMap, Load, Value
from tilefw_spatial.lower.arithmetic import as_offset
from tilefw_spatial.lower.below import negative
from tilefw_spatial.lower.constant_tile import ConstantTerm, ConstantTile, both, iota, of_term, product, splat, total
from tilefw_spatial.lower.gather import advanced, gathered
from tilefw_spatial.lower.guards import forbid_beside
from tilefw_spatial.lower.order import check_alone, check_kept, check_order, forwarded, is_repeated
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.reach import reached
from tilefw_spatial.lower.shapes import spread_data
from tilefw_spatial.lower.state import PendingStore, State, TrackedAccess
from tilefw_spatial.lower.tiles import Data, Entry, Pointer, bits_of, unsupported

_BOOL = DTYPES["int1"]
_INT64 = DTYPES["int64"]

# Rows by which read-modify-writes without a reader become stores that accumulate; `xchg` is a plain store.
_ACCUMULATES = {
    "maxs": "maxs", "maxu": "maxu", "mins": "mins", "minu": "minu", "maxf": "maxf", "minf": "minf", "and": "andi", "or": "ori",
    "xor": "xori",
}


def load(state: State, op: LoadOp) -> Entry:
    """A load through a pointer and offsets."""
    pointer = _address(state, op, "gather")
    mask, doubt = _mask(state, op.mask)
    return _loaded(state, op, pointer, mask, doubt, None if op.other is None else state.values[op.other])


def load_block(state: State, op: LoadBlockOp) -> Entry:
    """A load of a bounds-checked block."""
    pointer, mask = _block(state, op, "gather")
    return _loaded(state, op, pointer, mask, None, None if op.other is None else state.values[op.other])


def store(state: State, op: StoreOp) -> None:
    """A store through a pointer and offsets."""
    pointer = _address(state, op, "scatter")
    mask, doubt = _mask(state, op.mask)
    _stored(state, op, pointer, mask, doubt, state.values[op.value])


def store_block(state: State, op: StoreBlockOp) -> None:
    """A store of a bounds-checked block."""
    pointer, mask = _block(state, op, "scatter")
    _stored(state, op, pointer, mask, None, state.values[op.value])


def atomic(state: State, op: AtomicRmwOp | AtomicCasOp) -> Entry | None:
    """An atomic: a store that accumulates, and, where every element is accessed but once, a load of what was there before."""
    element = types.dtype_of(types.element_of(op.value.type))
    pointer = _address(state, op, "scatter")
    mask, doubt = _mask(state, op.mask)
    swaps = isinstance(op, AtomicCasOp)
    old: Entry | None = None
    if op.result_is_used or swaps:
        access = TrackedAccess(pointer.parameter, pointer.offset, mask, element, state.loops)
        check_alone(state, op, access)
        old = _loaded(state, op, pointer, mask, doubt, None)
    value = state.values[op.value]
    if isinstance(op, AtomicCasOp):
        assert old is not None
        _stored(state, op, pointer, mask, doubt, _swapped(state, old, state.values[op.compare], value, element))
        return old
    row = ("addf" if element.is_float else "addi") if op.kind == "add" else _ACCUMULATES.get(op.kind)
    _stored(state, op, pointer, mask, doubt, value, row)
    return old


def _swapped(state: State, old: Entry, compare: Entry, value: Entry, dtype: DType) -> Entry:
    """What a compare-and-swap leaves: the new value where the old one has the code that was asked for."""
    code = DTYPES[f"int{dtype.bits}"]
    sides = [state.elementwise("bitcast", [side], code) if dtype.is_float else side for side in (old, compare)]
    return state.elementwise("select", [state.elementwise("eqi", sides, _BOOL), value, old], dtype)


# Addresses and masks -----------------------------------------------------------------------------------------------------


def _address(state: State, op: PointerAccess, kind: str) -> Pointer:
    entry = state.values[op.pointer]
    dtype = types.dtype_of(types.pointee_of(op.pointer.type))
    capability = f"memory.{kind}.{dtype.name}"
    if not isinstance(entry, Pointer):
        raise unsupported(op, "the address depends on loaded data", capability)
    if op.offsets is not None:
        shape = types.shape_of(op.offsets.type)
        chosen = None if entry.chosen is None else spread_data(entry.chosen, shape)
        moved = advanced(state, replace(entry, offset=_spread(entry.offset, shape), chosen=chosen), state.values[op.offsets])
        if moved is None:
            raise unsupported(op, "the address depends on loaded data", capability)
        entry = moved
    if entry.chosen is not None and kind == "scatter":
        raise unsupported(op, "the address depends on loaded data", capability)
    return entry


def _spread(scalar: ConstantTile, shape: tuple[int, ...]) -> ConstantTile:
    return replace(scalar, shape=shape)


def _block(state: State, op: BlockAccess, kind: str) -> tuple[Pointer, ConstantTile | None]:
    """The addresses of a block's elements, and which are within its bounds."""
    base = state.values[op.base]
    dtype = types.dtype_of(types.pointee_of(op.base.type))
    capability = f"memory.{kind}.{dtype.name}"
    if not isinstance(base, Pointer):
        raise unsupported(op, "the address depends on loaded data", capability)
    if base.chosen is not None and kind == "scatter":
        raise unsupported(op, "the address depends on loaded data", capability)
    shape = op.block
    offset = _spread(base.offset, shape)
    mask: ConstantTile | None = None
    for dim, (first, stride, bound, check) in enumerate(zip(op.offsets, op.strides, op.shape, op.checks, strict=True)):
        scalars = [state.constant(value, op, "the address depends on loaded data", capability) for value in (first, stride)]
        start, step = (_spread(as_offset(scalar), shape) for scalar in scalars)
        index = total(start, iota(_INT64, shape, dim, shape[dim]))
        moved = product(index, step)
        if moved is None:
            moved = of_term(_INT64, shape, _product(index, step))
        offset = total(offset, moved)
        if bound is not None:
            limit = state.constant(bound, op, "the bounds of a block depend on loaded data", capability)
            inside = _inside(index, _spread(as_offset(limit), shape), check == "both")
            mask = inside if mask is None else both(mask, inside)
    chosen = None if base.chosen is None else spread_data(base.chosen, shape)
    return replace(base, offset=offset, chosen=chosen), _needed(mask)


def _product(a: ConstantTile, b: ConstantTile) -> ConstantTerm:
    left, right = a.whole(), b.whole()
    keys = tuple(dict.fromkeys((*left.keys, *right.keys)))
    return ConstantTerm(left.over(keys) * right.over(keys), keys)


def _inside(index: ConstantTile, limit: ConstantTile, lower: bool) -> ConstantTile:
    """Which indices are below the limit, and not below 0 where `lower` asks for that too."""
    found = _negative(total(index, limit, -1))
    return both(found, _negative(total(splat(-1, _INT64, index.shape), index, -1))) if lower else found


def _negative(tile: ConstantTile) -> ConstantTile:
    found = negative(tile)
    if found is None:
        whole = tile.whole()
        found = of_term(_BOOL, tile.shape, ConstantTerm(whole.data < 0, whole.keys))
    return found


def _mask(state: State, mask: SSAValue | None) -> tuple[ConstantTile | None, Data | None]:
    """A mask as its constant part and the part that depends on loaded data."""
    if mask is None:
        return None, None
    entry = state.values[mask]
    if isinstance(entry, ConstantTile):
        return _needed(entry), None
    assert isinstance(entry, Data)
    return None, entry


def _needed(mask: ConstantTile | None) -> ConstantTile | None:
    return None if mask is None or mask.number is True else mask


# Loads -------------------------------------------------------------------------------------------------------------------


def _loaded(
    state: State, op: Operation, pointer: Pointer, mask: ConstantTile | None, doubt: Data | None, other: Entry | None
) -> Entry:
    if mask is not None and mask.number is False:
        return splat(0, pointer.dtype, pointer.shape) if other is None else other
    if pointer.chosen is not None:
        found = gathered(state, op, pointer, mask, doubt)
        for condition in (mask, doubt):
            if condition is not None and other is not None:
                found = state.elementwise("select", [condition, found, other], pointer.dtype)
        return found
    if doubt is not None:
        forbid_beside(state, op, pointer, doubt, "load")
    access = TrackedAccess(pointer.parameter, pointer.offset, mask, pointer.dtype, state.loops)
    found = forwarded(state, op, access, pointer.dtype)
    number = other.number if isinstance(other, ConstantTile) else None
    if found is None:
        fill = 0 if number is None else bits_of(number, pointer.dtype)
        found = _read(state, op, pointer, access, fill, doubt is not None)
        number = None if mask is None else number
    else:
        number = None
    if mask is not None and other is not None and number is None:
        found = state.elementwise("select", [mask, found, other], pointer.dtype)
    if doubt is not None and other is not None:
        return state.elementwise("select", [doubt, found, other], pointer.dtype)
    return found


def _read(state: State, op: Operation, pointer: Pointer, access: TrackedAccess, fill: int, clipped: bool) -> Data:
    """The array that a load makes; the same again for the same elements."""
    for earlier in state.loads:
        data = earlier.entry
        if not isinstance(data, Data) or not isinstance(data.value.op, Load) or not is_repeated(earlier, access):
            continue
        if (data.value.op.fill, data.value.dtype, state.reaches[data.value].clipped) == (fill, pointer.dtype.name, clipped):
            state.loads.append(replace(access, entry=data))
            return data
    reach, target = reached(state, op, pointer, access.mask, None, clipped)
    value = state.made(Load(AccessMap(pointer.parameter, 0, ()), fill), reach.axes, pointer.dtype)
    state.reaches[value] = reach
    found = state.data(value, target, pointer.shape)
    state.loads.append(replace(access, entry=found))
    return found


# Stores ------------------------------------------------------------------------------------------------------------------


def _stored(
    state: State, op: Operation, pointer: Pointer, mask: ConstantTile | None, doubt: Data | None, entry: Entry,
    row: str | None = None,
) -> None:
    if mask is not None and mask.number is False:
        return
    if doubt is not None:
        forbid_beside(state, op, pointer, doubt, "store")
    kept = entry if row is None else None
    access = TrackedAccess(pointer.parameter, pointer.offset, mask, pointer.dtype, state.loops, kept, doubt is None, row)
    check_order(state, access)
    if doubt is not None or row is not None:
        check_kept(state, op, access)
    state.stored.append(access)
    parts = [entry] if doubt is None else [entry, doubt]
    target = state.aligned(parts)
    value = state.value(entry, target)
    reach, axes = reached(state, op, pointer, mask, target, doubt is not None)
    state.axes.keep_apart((*reach.axes, *value.axes, *(axis for axis in axes if axis is not None)))
    condition: Value | None = None if doubt is None else state.value(doubt, target)
    count = extent((*state.programs.axes, *state.loops)) * prod(pointer.shape)
    state.stores.append(PendingStore(value, reach, condition, row, count, state.loops))
