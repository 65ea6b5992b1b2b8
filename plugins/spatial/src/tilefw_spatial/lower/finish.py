"""The end of a lowering: axes get their final names, accesses their places, and stores write every element once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilefw.api import DTYPES
from tilefw_spatial.graph import (
    Axis,
    Combine,
    Constant,
    Dot,
    Elementwise,
    Gather,
    Graph,
    Join,
    Load,
    Op,
    Reduce,
    Rename,
    Store,
    Value,
)
from tilefw_spatial.lower import places
from tilefw_spatial.lower.combine import KINDS
from tilefw_spatial.lower.fuse import Fusion, Sums, found
from tilefw_spatial.lower.known import Term
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.state import PendingStore, State
from tilefw_spatial.lower.tiles import stored
from tilefw_spatial.lower.trim import trim

_TIMES = {Combine.ADDF: "mulf", Combine.ADDI: "muli"}


def finished(state: State) -> list[Store]:
    """The stores of a class of programs, and through them its values."""
    pending = [_single(state, store) for store in state.stores]
    graph = Graph([Store(store.value, places.NOWHERE, store.mask) for store in pending])
    values = graph.values()
    for value in values:
        value.axes = state.axes.all(value.axes)
        value.op = _rooted(state, value)
    reaches = {value: places.sums(state, reach) for value, reach in state.reaches.items()}
    writes = [places.sums(state, store.reach) for store in pending]
    stored_axes = [_axes(state, store) for store in pending]
    live = [reaches[value] for value in values if value in reaches]
    fusion = found(values, stored_axes, [*live, *writes])
    for value in values:
        _fused(state, value, fusion, reaches.get(value))
    stores = [_store(state, store, access, fusion, axes) for store, access, axes in zip(pending, writes, stored_axes, strict=True)]
    trim(values, stores)
    return stores


def _axes(state: State, store: PendingStore) -> tuple[Axis, ...]:
    """All axes of a store: its value's, its mask's, and those along which only its place changes."""
    masked = () if store.mask is None else store.mask.axes
    return state.axes.all((*store.value.axes, *masked, *store.reach.axes))


def _single(state: State, store: PendingStore) -> PendingStore:
    """The store without axes along which all write one element: the last index stands, or all are combined where it accumulates."""
    placed = set(state.axes.all(store.reach.axes))
    if store.accumulate is not None:
        return _accumulated(state, store, placed)
    picked = [_last(state, value, placed) for value in (store.value, *(() if store.mask is None else (store.mask,)))]
    if store.mask is not None and set(state.axes.all(store.mask.axes)) - placed:
        picked = [_last(state, store.value, placed | set(state.axes.all(store.mask.axes))), store.mask]
    return replace(store, value=picked[0], mask=None if store.mask is None else picked[1])


def _last(state: State, value: Value, kept: set[Axis]) -> Value:
    over = [axis for axis in state.axes.all(value.axes) if axis not in kept]
    if not over:
        return value
    rest = [axis for axis in state.axes.all(value.axes) if axis in kept]
    return state.made(Rename(value, tuple(over), (), np.asarray([extent(over) - 1])), rest, DTYPES[value.dtype])


def _accumulated(state: State, store: PendingStore, placed: set[Axis]) -> PendingStore:
    """A store that accumulates with what falls on one element combined before: atomics have no order."""
    assert store.accumulate is not None
    kind, value = KINDS[store.accumulate], store.value
    if store.mask is not None:
        return store
    dtype = DTYPES[value.dtype]
    over = tuple(axis for axis in state.axes.all(value.axes) if axis not in placed)
    copies = store.count // extent({*state.axes.all(value.axes), *placed})
    if over:
        rest = [axis for axis in state.axes.all(value.axes) if axis in placed]
        value = state.made(_summed(kind, value, over), rest, dtype)
    if copies > 1 and kind in _TIMES:
        many = state.made(Constant(stored(np.asarray(float(copies) if dtype.is_float else copies), dtype)), (), dtype)
        value = state.made(Elementwise(_TIMES[kind], (value, many)), value.axes, dtype)
    return replace(store, value=value)


def _summed(kind: Combine, value: Value, over: tuple[Axis, ...]) -> Op:
    """A value combined along axes in any order; the sum of products is one product over more of K."""
    product = value.op
    if isinstance(product, Dot) and product.accumulator is None and kind in (Combine.ADDF, Combine.ADDI):
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


def _fused(state: State, value: Value, fusion: Fusion, access: Sums | None) -> None:
    """Put fused axes into a value and its op."""
    if isinstance(value.op, Constant):
        term = fusion.term(Term(value.op.data, value.axes))
        value.op, value.axes = Constant(term.data), tuple(key for key in term.keys if isinstance(key, Axis))
        return
    value.axes = fusion.axes(value.axes)
    match value.op:
        case Load() as op:
            reach = state.reaches[value]
            assert access is not None
            buffer = state.buffers[reach.parameter]
            value.op = replace(op, where=places.where(reach, access, fusion, value.axes, buffer))
        case Reduce() as op:
            value.op = replace(op, axes=fusion.axes(op.axes))
        case Dot() as op:
            value.op = replace(op, contracted=fusion.axes(op.contracted))


def _store(state: State, store: PendingStore, access: Sums, fusion: Fusion, axes: tuple[Axis, ...]) -> Store:
    place = places.where(store.reach, access, fusion, fusion.axes(axes), state.buffers[store.reach.parameter])
    if store.accumulate is None:
        place = places.without_repeats(place)
    return Store(store.value, place, store.mask, store.accumulate, store.reach.place)
