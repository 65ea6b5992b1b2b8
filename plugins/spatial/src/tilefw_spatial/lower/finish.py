"""The end of a lowering: axes get their final names, accesses their maps, and stores write every element once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilefw.api import DTYPES
from tilefw_spatial.graph import (
    Axis,
    BoundsCheck,
    Constant,
    Dot,
    Elementwise,
    Gather,
    Graph,
    Join,
    Load,
    Op,
    Reduce,
    ReductionKind,
    Rename,
    Store,
    Value,
)
from tilefw_spatial.lower import access_maps
from tilefw_spatial.lower.combine import KINDS
from tilefw_spatial.lower.constant_tile import ConstantTerm
from tilefw_spatial.lower.fuse import FusedSums, SumFusion, found
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.state import PendingStore, State
from tilefw_spatial.lower.tiles import stored
from tilefw_spatial.lower.trim import trim

_TIMES = {ReductionKind.ADDF: "mulf", ReductionKind.ADDI: "muli"}


def finished(state: State, checks: list[BoundsCheck]) -> list[Store]:
    """The stores of a class of programs, and through them its values; what it checks is appended to `checks`."""
    pending = [_without_repeats(state, store) for store in state.stores]
    graph = Graph([Store(store.value, access_maps.NOWHERE, store.mask) for store in pending])
    values = graph.values()
    for value in values:
        value.axes = state.axes.all(value.axes)
        value.op = _rooted(state, value)
    reaches = {value: access_maps.sums(state, reach) for value, reach in state.reaches.items()}
    writes = [access_maps.sums(state, store.reach) for store in pending]
    stored_axes = [_axes(state, store) for store in pending]
    live = [reaches[value] for value in values if value in reaches]
    fusion = found(values, stored_axes, [*live, *writes])
    for value in values:
        _fused(state, value, fusion, reaches.get(value))
    parts = zip(pending, writes, stored_axes, strict=True)
    stores = [made for store, access, axes in parts for made in _stores(state, store, access, fusion, axes, checks)]
    trim(values, stores)
    return stores


def _axes(state: State, store: PendingStore) -> tuple[Axis, ...]:
    """All axes of a store: its value's, its mask's, and those along which only its element changes."""
    masked = () if store.mask is None else store.mask.axes
    return state.axes.all((*store.value.axes, *masked, *store.reach.axes))


def _without_repeats(state: State, store: PendingStore) -> PendingStore:
    """The store without axes along which all write one element: the last index wins, or all are combined where it accumulates."""
    addressed = set(state.axes.all(store.reach.axes))
    if store.accumulate is not None:
        return _accumulated(state, store, addressed)
    last = [_last(state, value, addressed) for value in (store.value, *(() if store.mask is None else (store.mask,)))]
    if store.mask is not None and set(state.axes.all(store.mask.axes)) - addressed:
        last = [_last(state, store.value, addressed | set(state.axes.all(store.mask.axes))), store.mask]
    return replace(store, value=last[0], mask=None if store.mask is None else last[1])


def _last(state: State, value: Value, kept: set[Axis]) -> Value:
    over = [axis for axis in state.axes.all(value.axes) if axis not in kept]
    if not over:
        return value
    rest = [axis for axis in state.axes.all(value.axes) if axis in kept]
    return state.made(Rename(value, tuple(over), (), np.asarray([extent(over) - 1])), rest, DTYPES[value.dtype])


def _accumulated(state: State, store: PendingStore, addressed: set[Axis]) -> PendingStore:
    """A store that accumulates with what falls on one element combined before: atomics have no order."""
    assert store.accumulate is not None
    kind, value = KINDS[store.accumulate], store.value
    copies = store.count // extent({*_axes(state, store), *addressed})
    over = tuple(axis for axis in state.axes.all(value.axes) if axis not in addressed)
    if over and store.mask is None:  # what data masks is combined by element (`arrange.stores`)
        rest = [axis for axis in state.axes.all(value.axes) if axis in addressed]
        value = state.made(_summed(kind, value, over), rest, DTYPES[value.dtype])
    return replace(store, value=_repeated(state, kind, value, copies))


def _repeated(state: State, kind: ReductionKind, value: Value, copies: int) -> Value:
    """As many copies of a value combined."""
    dtype = DTYPES[value.dtype]
    if kind is ReductionKind.XOR and copies % 2 == 0:
        return state.made(Constant(stored(np.asarray(0), dtype)), (), dtype)
    if copies == 1 or kind not in _TIMES:
        return value
    many = state.made(Constant(stored(np.asarray(float(copies) if dtype.is_float else copies), dtype)), (), dtype)
    return state.made(Elementwise(_TIMES[kind], (value, many)), value.axes, dtype)


def _summed(kind: ReductionKind, value: Value, over: tuple[Axis, ...]) -> Op:
    """A value combined along axes in any order; the sum of products is one product over more of K."""
    product = value.op
    if isinstance(product, Dot) and product.accumulator is None and kind in (ReductionKind.ADDF, ReductionKind.ADDI):
        return replace(product, contracted=(*over, *product.contracted))
    return Reduce(kind, value, over)


def _rooted(state: State, value: Value) -> Op:
    """The value's op with axes as they have become."""
    roots = state.axes
    match value.op:
        case Reduce() as op:
            return replace(op, axes=roots.all(op.axes), ordered=None if op.ordered is None else roots[op.ordered])
        case Dot() as op:
            return replace(op, contracted=roots.all(op.contracted))
        case Rename() as op:
            return replace(op, old=roots.all(op.old), new=roots.all(op.new))
        case Gather() as op:
            return replace(op, axis=roots[op.axis])
        case Join() as op:
            return replace(op, axis=roots[op.axis], parts=tuple(roots[part] for part in op.parts))
    return value.op


def _fused(state: State, value: Value, fusion: SumFusion, access: FusedSums | None) -> None:
    """Put fused axes into a value and its op."""
    if isinstance(value.op, Constant):
        term = fusion.term(ConstantTerm(value.op.data, value.axes))
        value.op, value.axes = Constant(term.data), tuple(key for key in term.keys if isinstance(key, Axis))
        return
    value.axes = fusion.axes(value.axes)
    match value.op:
        case Load() as op:
            reach = state.reaches[value]
            assert access is not None
            buffer = state.buffers[reach.parameter]
            value.op = replace(op, access_map=access_maps.access_map_of(reach, access, fusion, value.axes, buffer))
        case Reduce() as op:
            value.op = replace(op, axes=fusion.axes(op.axes))
        case Dot() as op:
            value.op = replace(op, contracted=fusion.axes(op.contracted))


def _stores(
    state: State, store: PendingStore, access: FusedSums, fusion: SumFusion, axes: tuple[Axis, ...], checks: list[BoundsCheck]
) -> list[Store]:
    """The store; where it writes elements several times, only the last time, or if data masks which, one store for each time."""
    buffer = None if store.check else state.buffers[store.reach.parameter]
    access_map = access_maps.access_map_of(store.reach, access, fusion, fusion.axes(axes), buffer)
    passes = [access_map]
    if store.accumulate is None and not access_maps.is_distinct(access_map):
        trips = _trips(state, store, fusion, axes)
        passes = [access_maps.without_repeats(access_map, trips)] if store.mask is None else access_maps.in_passes(
            access_map, trips, store.reach
        )
    if store.check:
        checks.append(store.check)
        passes = [replace(access_map, parameter=len(state.buffers) + len(checks) - 1)]
    return [Store(store.value, one, store.mask, store.accumulate, store.reach.place) for one in passes]


def _trips(state: State, store: PendingStore, fusion: SumFusion, axes: tuple[Axis, ...]) -> ConstantTerm:
    """The number of the trip through all loops around a store, over the axes of its access map."""
    loops = tuple(axis for axis in state.axes.all(store.loops) if axis in axes)
    return fusion.term(ConstantTerm(np.arange(extent(loops)).reshape([axis.extent for axis in loops]), loops))
