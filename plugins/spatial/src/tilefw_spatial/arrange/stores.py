"""Stores without masks and accumulation: both become functions of the elements' old content.

A masked store selects between the new and the old content; one that accumulates combines with it. The old content is what earlier
stores of the launch left, else what the buffer held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw.api import DTYPES
from tilefw_spatial.arrange.access import NOWHERE, elements
from tilefw_spatial.graph import AccessMap, Along, Axis, Constant, Elementwise, Load, Reduce, ReductionKind, Rename, Store, Value
from tilefw_spatial.isa.types import TYPES


@dataclass(frozen=True, slots=True, eq=False)
class StoredValue:
    """What a store left: `value` over the axes of `elements` in order."""

    value: Value
    axes: tuple[Axis, ...]
    elements: NDArray[np.int64]


def unconditional(stores: Iterable[Store]) -> list[Store]:
    """The stores without masks and accumulation."""
    done: list[Store] = []
    for store in stores:
        if store.accumulate is not None:
            store = _accumulated(_by_element(store), done)
        elif store.mask is not None:
            store = replace(store, value=_selected(store, store.mask, store.value, _before(store, done)), mask=None)
        done.append(store)
    return done


def _selected(store: Store, mask: Value, x: Value, y: Value) -> Value:
    return _elementwise(store, "select", mask, x, y)


def _elementwise(store: Store, row: str, *operands: Value) -> Value:
    axes = dict.fromkeys(axis for operand in operands for axis in operand.axes)
    return Value(Elementwise(row, operands, fusion=False), tuple(axes), operands[-1].dtype, store.place)


def _before(store: Store, done: list[Store]) -> Value:
    """The content of the store's elements before it: what the last earlier store wrote to them, else the buffer's own."""
    axes = tuple(part.axis for part in store.access_map.along)
    found = Value(Load(store.access_map), axes, store.value.dtype, store.place)
    earlier = [other for other in done if other.access_map.parameter == store.access_map.parameter]
    if not earlier:
        return found
    wanted = elements(store.access_map)
    for other in earlier:
        found = _over(store, _stored_value(other), axes, wanted, found)
    return found


def _stored_value(store: Store) -> StoredValue:
    return StoredValue(store.value, tuple(part.axis for part in store.access_map.along), elements(store.access_map))


def _over(store: Store, earlier: StoredValue, axes: tuple[Axis, ...], wanted: NDArray[np.int64], below: Value) -> Value:
    """`below`, but what an earlier store left where it wrote the elements that are wanted."""
    flat = earlier.elements.reshape(-1)
    order = np.argsort(flat, kind="stable")
    place = np.clip(np.searchsorted(flat, wanted, sorter=order), 0, flat.size - 1)
    index = order[place]
    hit = (flat[index] == wanted) & (wanted != NOWHERE)
    if not hit.any():
        return below
    own = tuple(axis for axis in earlier.axes if axis in earlier.value.axes)
    old = Value(Rename(_spread(earlier), earlier.axes, axes, np.where(hit, index, 0)), axes, earlier.value.dtype, store.place)
    found = earlier.value if own == axes == earlier.axes and (index.reshape(-1) == np.arange(index.size)).all() else old
    return found if hit.all() else _selected(store, Value(Constant(hit), axes, "int1"), found, below)


def _spread(earlier: StoredValue) -> Value:
    """The value over all axes of its store."""
    if set(earlier.value.axes) == set(earlier.axes):
        return earlier.value
    return Value(Rename(earlier.value, (), ()), earlier.axes, earlier.value.dtype)


def _accumulated(store: Store, done: list[Store]) -> Store:
    """A store that accumulates, each element once, as one of the combination."""
    assert store.accumulate is not None
    before = _before(store, done)
    after = _elementwise(store, store.accumulate, before, store.value)
    value = after if store.mask is None else _selected(store, store.mask, after, before)
    return replace(store, value=value, mask=None, accumulate=None)


def _by_element(store: Store) -> Store:
    """The store with all that falls on one element combined first, in the order of the indices.

    Element e's contributions are taken from up to J indices; the mask leaves out those that are not there, and contributions
    that were masked themselves."""
    axes = tuple(part.axis for part in store.access_map.along)
    over = tuple(axis for axis in _axes_of(store) if axis not in axes)
    if over and store.mask is None:
        raise AssertionError("a value's axes that its store lacks are combined before, but for masked ones")
    wanted = np.broadcast_to(elements(store.access_map)[..., None], [*(a.extent for a in axes), prod(a.extent for a in over)])
    flat = wanted.reshape(-1)
    live = flat[flat != NOWHERE]
    if not over and np.unique(live).size == live.size:
        return store
    return _grouped(store, (*axes, *over), flat)


def _axes_of(store: Store) -> tuple[Axis, ...]:
    masked = () if store.mask is None else store.mask.axes
    return tuple(dict.fromkeys((*store.value.axes, *masked)))


def _grouped(store: Store, axes: tuple[Axis, ...], flat: NDArray[np.int64]) -> Store:
    order = np.argsort(flat, kind="stable")[np.count_nonzero(flat == NOWHERE) :]
    targets, first, counts = np.unique(flat[order], return_index=True, return_counts=True)
    element, contribution = Axis("element", len(targets)), Axis("turn", int(counts.max()))
    taken = first[:, None] + np.minimum(np.arange(contribution.extent), counts[:, None] - 1)
    index, there = order[taken], np.arange(contribution.extent) < counts[:, None]
    value, mask = (
        None if part is None else _regrouped(part, axes, (element, contribution), index) for part in (store.value, store.mask)
    )
    assert value is not None
    access_map = AccessMap(store.access_map.parameter, 0, (Along(element, targets),))
    alone = replace(store, access_map=access_map, value=value, mask=None)
    kind = ReductionKind(store.accumulate or "")
    if not there.all():
        live = Value(Constant(there), (element, contribution), "int1")
        mask = live if mask is None else _elementwise(store, "andi", live, mask)
    if mask is not None:
        value = _selected(store, mask, value, neutral(kind, value.dtype))
    return replace(alone, value=_reduced(kind, value, contribution))


def neutral(kind: ReductionKind, dtype: str) -> Value:
    """What combined with anything leaves it as it is; where a number wins over a NaN, a NaN."""
    info = DTYPES[dtype]
    if info.is_float:
        number = {
            ReductionKind.ADDF: -0.0, ReductionKind.MULF: 1.0, ReductionKind.MAXF: -np.inf, ReductionKind.MINF: np.inf
        }.get(kind, np.nan)
        code = np.asarray(TYPES[dtype].numpy.type(number))
        return Value(Constant(code if dtype in ("fp32", "fp16") else code.view(f"u{code.itemsize}")), (), dtype)
    ones, low = (1 << info.bits) - 1, 1 << info.bits - 1
    code = {
        ReductionKind.MULI: 1, ReductionKind.AND: ones, ReductionKind.MINU: ones, ReductionKind.MAXS: low,
        ReductionKind.MINS: low - 1
    }.get(kind, 0)
    if dtype == "int1":
        return Value(Constant(np.asarray(bool(code))), (), dtype)
    return Value(Constant(np.asarray(code, f"u{info.storage_bits // 8}").view(TYPES[dtype].numpy)), (), dtype)


def _regrouped(value: Value, axes: tuple[Axis, ...], new: tuple[Axis, ...], index: NDArray[np.int64]) -> Value:
    spread = _spread(StoredValue(value, axes, index))
    return Value(Rename(spread, axes, new, index), new, value.dtype, value.place)


def _reduced(kind: ReductionKind, value: Value, contribution: Axis) -> Value:
    return Value(
        Reduce(kind, value, (contribution,), contribution), tuple(a for a in value.axes if a is not contribution), value.dtype,
        value.place
    )
