"""Ops that give elements a new shape: most only name dims anew, a reshape renames axes, and all others take elements by index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tilefw.api import DType
from tilefw.api.ir import BroadcastOp, ExpandDimsOp, JoinOp, ReshapeOp, SplatOp, SplitOp, StructuralOp, TransOp, place_of, types
from tilefw_spatial.graph import Axis, Join, Rename
from tilefw_spatial.lower.constant_tile import Array, ConstantTerm, ConstantTile, of_term
from tilefw_spatial.lower.state import State
from tilefw_spatial.lower.tiles import Data, Entry, Pointer, refusal


def spread(state: State, op: SplatOp | BroadcastOp) -> Entry:
    """A splat or a broadcast: the elements depend on no more than before."""
    entry, shape = state.values[op.source], types.shape_of(op.results[0].type)
    return _spread(entry, shape)


def _spread(entry: Entry, shape: tuple[int, ...]) -> Entry:
    if not isinstance(entry, Data):
        return _changed(entry, lambda tile: replace(tile, shape=shape), lambda data: spread_data(data, shape))
    return spread_data(entry, shape)


def spread_data(data: Data, shape: tuple[int, ...]) -> Data:
    """Loaded data broadcast."""
    form = data.linear
    if form is not None:
        form = replace(form, base=spread_data(form.base, shape), offset=replace(form.offset, shape=shape))
    return Data(data.value, data.dims or (None,) * len(shape), shape, form)


def expand_dims(state: State, op: ExpandDimsOp) -> Entry:
    """A new dim of extent 1."""
    entry, shape = state.values[op.source], types.shape_of(op.results[0].type)
    return renumbered(entry, {dim: dim + (dim >= op.axis) for dim in range(len(shape) - 1)}, shape)


def transposed(state: State, op: TransOp) -> Entry:
    """Dims in another order."""
    shape = types.shape_of(op.results[0].type)
    return renumbered(state.values[op.source], {source: dim for dim, source in enumerate(op.order)}, shape)


def renumbered(entry: Entry, dims: dict[int, int], shape: tuple[int, ...]) -> Entry:
    """The same elements with dims in another order."""
    if isinstance(entry, Data):
        return _renumbered(entry, dims, shape)
    return _changed(entry, lambda tile: tile.renamed(dims, shape), lambda data: _renumbered(data, dims, shape))


def _renumbered(data: Data, dims: dict[int, int], shape: tuple[int, ...]) -> Data:
    axes_of_dims: list[Axis | None] = [None] * len(shape)
    for old, new in dims.items():
        axes_of_dims[new] = data.dims[old]
    form = data.linear
    if form is not None:
        form = replace(form, base=_renumbered(form.base, dims, shape), offset=form.offset.renamed(dims, shape))
    return Data(data.value, tuple(axes_of_dims), shape, form)


def reshaped(state: State, op: ReshapeOp) -> Entry:
    """The elements in row-major order under other dims."""
    return regrouped(state, state.values[op.source], types.shape_of(op.results[0].type))


def regrouped(state: State, entry: Entry, shape: tuple[int, ...]) -> Entry:
    """The elements in row-major order under other dims; only dims that are split or joined get other axes."""
    groups = _groups(entry.shape, shape)
    if not isinstance(entry, Data):
        return _changed(entry, lambda tile: tile.mapped(lambda term: _regrouped(term, groups, tile.shape, shape), shape))
    dims: list[Axis | None] = [None] * len(shape)
    value = entry.value
    for old, new in groups:
        axes = [axis for dim in old if (axis := state.dim_axis(entry, dim)) is not None]
        if not axes:
            continue
        if len(old) == len(new) == 1:
            dims[new[0]] = axes[0]
            continue
        fresh = [state.fresh(shape[dim]) for dim in new]
        index = None if len(axes) == len(old) else _projected(state, entry, old)
        rest = [axis for axis in state.axes.all(value.axes) if axis not in axes]
        value = state.made(Rename(value, tuple(axes), tuple(fresh), index), (*rest, *fresh), entry.dtype)
        for dim, axis in zip(new, fresh, strict=True):
            dims[dim] = axis
    return Data(value, tuple(dims), shape)


def _projected(state: State, entry: Data, old: Sequence[int]) -> Array:
    """For each index over all of `old`, the flat index over those of these dims that have an axis."""
    axes_of_dims = np.unravel_index(np.arange(prod(entry.shape[dim] for dim in old)), [entry.shape[dim] for dim in old])
    flat = np.zeros_like(axes_of_dims[0])
    for dim, index in zip(old, axes_of_dims, strict=True):
        if state.dim_axis(entry, dim) is not None:
            flat = flat * entry.shape[dim] + index
    return flat


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Dims of both shapes in groups of equal products, as small as can be; dims of extent 1 are in none."""
    left = [dim for dim, extent in enumerate(old) if extent > 1]
    right = [dim for dim, extent in enumerate(new) if extent > 1]
    groups: list[tuple[list[int], list[int]]] = []
    while left:
        a, b = [left.pop(0)], [right.pop(0)]
        while (x := prod(old[dim] for dim in a)) != (y := prod(new[dim] for dim in b)):
            if x < y:
                a.append(left.pop(0))
            else:
                b.append(right.pop(0))
        groups.append((a, b))
    return groups


def _regrouped(
    term: ConstantTerm, groups: Sequence[tuple[list[int], list[int]]], old: Sequence[int], new: Sequence[int]
) -> ConstantTerm:
    """A term under the dims of another shape; it comes to depend on all dims of a group that it depends on."""
    for before, _ in groups:
        if len(before) > 1 and any(dim in term.keys for dim in before):
            keys = (*(key for key in term.keys if key not in before), *before)
            extents = [term.data.shape[term.keys.index(key)] if key in term.keys else 1 for key in keys]
            extents[-len(before) :] = [old[dim] for dim in before]
            term = ConstantTerm(np.broadcast_to(term.over(keys), extents), keys)
    axes = [key for key in term.keys if isinstance(key, Axis)]
    used = [(before, after) for before, after in groups if any(dim in term.keys for dim in before)]
    data = term.over((*axes, *(dim for before, _ in used for dim in before)))
    data = data.reshape([*(axis.extent for axis in axes), *(new[dim] for _, after in used for dim in after)])
    return ConstantTerm(data, (*axes, *(dim for _, after in used for dim in after)))


def joined(state: State, op: JoinOp) -> Entry:
    """Two tiles side by side in a new last dim."""
    entries = [state.values[operand] for operand in op.operands]
    shape = types.shape_of(op.results[0].type)
    if all(isinstance(entry, ConstantTile) for entry in entries):
        wholes = [entry.whole() for entry in entries if isinstance(entry, ConstantTile)]
        keys = tuple(dict.fromkeys(key for whole in wholes for key in whole.keys))
        arrays = np.broadcast_arrays(*(whole.over(keys) for whole in wholes))
        assert isinstance(entries[0], ConstantTile)
        return of_term(entries[0].dtype, shape, ConstantTerm(np.stack(arrays, axis=-1), (*keys, len(shape) - 1)))
    target = state.aligned(entries)
    operands = tuple(state.value(entry, target) for entry in entries)
    axis, parts = state.fresh(2), (state.fresh(1), state.fresh(1))
    axes = [axis for operand in operands for axis in operand.axes]
    value = state.made(Join(operands, axis, parts), (*axes, axis), _dtype(entries[0]))
    return state.data(value, (*target, axis), shape)


def split(state: State, op: SplitOp) -> list[Entry]:
    """The two halves of a last dim of 2."""
    entry = state.values[op.source]
    return [taken_along(state, entry, len(entry.shape) - 1, np.asarray([half]), drop=True) for half in (0, 1)]


def moved(state: State, op: StructuralOp) -> Entry:
    """Any other op that moves the elements of one tile: along one dim if it only does that (a flip), else in row-major order."""
    if len(op.operands) != 1 or len(op.results) != 1:
        raise refusal(place_of(op), f"`{op.name}` moves elements between tiles", op.capability or op.name)
    entry, shape = state.values[op.operands[0]], types.shape_of(op.results[0].type)
    (flat,) = op.elements(np.arange(prod(entry.shape)).reshape(1, *entry.shape))
    along = _along_one_dim(flat[0], entry.shape)
    if along is not None:
        return taken_along(state, entry, *along)
    return regrouped(state, taken_along(state, regrouped(state, entry, (prod(entry.shape),)), 0, flat.reshape(-1)), shape)


def _along_one_dim(flat: Array, shape: tuple[int, ...]) -> tuple[int, Array] | None:
    """The one dim along which elements are taken, and the index there of each, the same everywhere; None for all other moves."""
    if flat.shape != shape:
        return None
    found: list[tuple[int, Array]] = []
    for dim, (index, own) in enumerate(zip(np.unravel_index(flat, shape), np.indices(shape), strict=True)):
        if np.array_equal(index, own):
            continue
        line = index[tuple(slice(None) if d == dim else slice(0, 1) for d in range(len(shape)))]
        if not np.array_equal(index, np.broadcast_to(line, shape)):
            return None
        found.append((dim, line.reshape(-1)))
    return found[0] if len(found) == 1 else None


def taken_along(state: State, entry: Entry, dim: int, index: Array, drop: bool = False) -> Entry:
    """The elements at `index` along a dim; `drop`: there is one, and the dim goes."""
    shape = (*entry.shape[:dim], *(() if drop else (len(index),)), *entry.shape[dim + 1 :])
    axes_of_dims = {old: old - (drop and old > dim) for old in range(len(entry.shape)) if not (drop and old == dim)}
    if not isinstance(entry, Data):
        return _changed(entry, lambda tile: tile.mapped(lambda term: _taken(term, dim, index), shape).renamed(axes_of_dims, shape))
    axis = state.dim_axis(entry, dim)
    if axis is None:
        return renumbered(entry, axes_of_dims, shape)
    fresh = None if len(index) == 1 else state.fresh(len(index))
    new = () if fresh is None else (fresh,)
    rest = [other for other in state.axes.all(entry.value.axes) if other is not axis]
    value = state.made(Rename(entry.value, (axis,), new, np.asarray(index, np.int64)), (*rest, *new), entry.dtype)
    dims = tuple(fresh if old == dim else other for old, other in enumerate(entry.dims))
    return renumbered(Data(value, dims, shape), axes_of_dims, shape) if drop else Data(value, dims, shape)


def _taken(term: ConstantTerm, dim: int, index: Array) -> ConstantTerm:
    if dim not in term.keys:
        return term
    taken = ConstantTerm(term.data.take(index, axis=term.keys.index(dim)), term.keys)
    return taken.minimal() if len(index) == 1 else taken


def _changed(
    entry: ConstantTile | Pointer, change: Callable[[ConstantTile], ConstantTile], chosen: Callable[[Data], Data] | None = None
) -> Entry:
    """A change of shape on constant elements, or on the offsets of pointers."""
    if not isinstance(entry, Pointer):
        return change(entry)
    if entry.chosen is None:
        return entry.moved(change(entry.offset))
    if chosen is None:
        raise refusal(None, "pointers that data chooses are reshaped", f"memory.gather.{entry.dtype.name}")
    return replace(entry, offset=change(entry.offset), chosen=chosen(entry.chosen))


def _dtype(entry: Entry) -> DType:
    assert not isinstance(entry, Pointer)
    return entry.dtype
