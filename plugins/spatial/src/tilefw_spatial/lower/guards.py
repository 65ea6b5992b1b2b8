"""Run-time checks of accesses that depend on data: they store flags, which the device reads when the launch is over.

Nothing of the machine stops at a wrong address: an index is clamped to the table, and the flag records that it had to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from math import prod

import numpy as np

from tilefw.api import DTYPES, DType
from tilefw.api.integers import ceil_div
from tilefw.api.ir import Operation, place_of
from tilefw_spatial.graph import Axis, BoundsCheck
from tilefw_spatial.lower.constant_tile import Array, ConstantTerm, ConstantTile, Key, both, iota, of_term, splat, total
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.reach import reached
from tilefw_spatial.lower.state import PendingStore, State
from tilefw_spatial.lower.tiles import Data, Entry, Pointer

_MOST_SUMMED = 1 << 20  # numbers of terms that are added up: beyond them bounds are those of each by itself
BOOL = DTYPES["int1"]
_INT64 = DTYPES["int64"]


def forbid(state: State, op: Operation, bad: Entry, mask: ConstantTile | None, what: str) -> None:
    """An element of `bad` that is set, where `mask` has it, is a finding of the launch at this operation."""
    if isinstance(bad, Pointer) or (isinstance(bad, ConstantTile) and bad.number is False):
        return
    axes = _axes(state, bad)
    masked = mask and _projected(mask, axes)
    keys = tuple(dict.fromkeys((*axes, *(masked.keys if masked else ()))))
    target = state.aligned([bad])
    flags = Pointer(0, BOOL, _counted_over(keys, bad.shape))
    reach, dims = reached(state, op, flags, masked, target, False)
    value = state.value(bad, target)
    state.axes.keep_apart((*reach.axes, *value.axes, *(axis for axis in dims if axis is not None)))
    check = BoundsCheck(what, prod(_extent(key, bad.shape) for key in keys), place_of(op))
    state.stores.append(PendingStore(value, reach, None, None, extent(reach.axes), state.loops, check))


def forbid_beside(state: State, op: Operation, pointer: Pointer, doubt: Data, what: str) -> None:
    """An access at constant addresses that data masks is a finding where it leaves the buffer."""
    buffer, size = state.buffers[pointer.parameter], pointer.dtype.storage_bits // 8
    if buffer is None:
        return
    mask, asked = doubt.apart or (None, doubt)
    least, most = -(buffer.offset // size), (buffer.nbytes - buffer.offset) // size - 1
    low, high = _bounds(pointer.offset, mask)
    if least <= low and high <= most:
        return
    whole = pointer.offset.whole()
    beyond: Array = np.asarray((whole.data < least) | (whole.data > most))
    outside = of_term(BOOL, pointer.shape, ConstantTerm(beyond, whole.keys))
    wanted = outside if mask is None else both(outside, mask)
    if wanted.whole().data.any():
        forbid(state, op, asked, wanted, f"{what} beside {state.names[pointer.parameter]} that data asks for")


def _axes(state: State, entry: ConstantTile | Data) -> tuple[Key, ...]:
    """What an entry depends on: its dims by their number, programs and loops."""
    if isinstance(entry, ConstantTile):
        return entry.keys
    dims = {axis: dim for dim in range(len(entry.shape)) if (axis := state.dim_axis(entry, dim)) is not None}
    return tuple(dims.get(axis, axis) for axis in state.axes.all(entry.value.axes))


def _extent(key: Key, shape: Sequence[int]) -> int:
    return key.extent if isinstance(key, Axis) else shape[key]


def _counted_over(keys: Sequence[Key], shape: tuple[int, ...]) -> ConstantTile:
    """A number of its own for each index of the keys."""
    found, step = splat(0, _INT64, shape), 1
    for key in reversed(keys):
        found = total(found, iota(_INT64, shape, key, _extent(key, shape), 0, step))
        step *= _extent(key, shape)
    return found


def _projected(mask: ConstantTile, axes: Iterable[Key]) -> ConstantTile:
    """For which indices of `axes` a mask has any element at all; the mask as it is where its terms hang together."""
    kept = set(axes)
    others = [key for term in mask.terms for key in term.keys if key not in kept]
    if len(others) != len(set(others)):
        return mask
    return ConstantTile(mask.dtype, mask.shape, tuple(_any(term, kept) for term in mask.terms))


def _any(term: ConstantTerm, kept: set[Key]) -> ConstantTerm:
    over = tuple(position for position, key in enumerate(term.keys) if key not in kept)
    return ConstantTerm(
        np.any(term.data, axis=over, keepdims=False), tuple(key for key in term.keys if key in kept)
    ) if over else term


def allowed(
    offset: ConstantTile, mask: ConstantTile | None, low: int, high: int, scale: int, dtype: DType
) -> tuple[ConstantTile | None, ConstantTile | None]:
    """The least and the greatest integer of which `scale` times, added to the offset, is from `low` to `high` wherever the mask has
    the element; None for what no integer of the type is beyond."""
    least, most = _bounds(offset, mask)
    first, last = _ceil(low - least, scale), (high - most) // scale
    if (first, last) == (_ceil(low - most, scale), (high - least) // scale):
        return _bound(ConstantTerm(np.asarray(first)), dtype, offset, -1), _bound(ConstantTerm(np.asarray(last)), dtype, offset, 1)
    whole = offset.whole()
    firsts, lasts = (
        ConstantTerm(-((whole.data - low) // scale), whole.keys), ConstantTerm((high - whole.data) // scale, whole.keys)
    )
    return _bound(firsts, dtype, offset, -1), _bound(lasts, dtype, offset, 1)


def _bound(numbers: ConstantTerm, dtype: DType, like: ConstantTile, side: int) -> ConstantTile | None:
    """A bound as an integer of a type; nothing is beyond its ends."""
    low, high = -(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1
    if (numbers.data <= low).all() if side < 0 else (numbers.data >= high).all():
        return None
    return of_term(dtype, like.shape, ConstantTerm(np.clip(numbers.data, low, high), numbers.keys))


def _ceil(value: int, scale: int) -> int:
    return ceil_div(value, scale)


def _bounds(offset: ConstantTile, mask: ConstantTile | None) -> tuple[int, int]:
    """The least and the greatest that an offset may be where a mask has it, term by term."""
    conditions = () if mask is None else tuple(condition for condition in mask.terms if condition.keys)
    low = high = 0
    for term in _summed(offset.terms, conditions):
        data = term.over(term.keys)
        for condition in conditions:
            if set(condition.keys) <= set(term.keys):
                valid = np.broadcast_to(condition.over(term.keys), data.shape)
                data = np.ma.array(data, mask=~valid | np.ma.getmaskarray(data))
        if not np.ma.count(data):
            return 0, 0  # nothing is accessed
        low, high = low + int(data.min()), high + int(data.max())
    return low, high


def _summed(terms: Sequence[ConstantTerm], conditions: Iterable[ConstantTerm]) -> list[ConstantTerm]:
    """A sum's terms, those that one condition is about added up: `64 · block + i` where `64 · block + i < columns`."""
    apart = list(terms)
    for condition in conditions:
        related = [term for term in apart if set(term.keys) & set(condition.keys)]
        keys = tuple(dict.fromkeys(key for term in related for key in term.keys))
        shape = np.broadcast_shapes(*(term.over(keys).shape for term in related))
        if len(related) > 1 and prod(shape) <= _MOST_SUMMED:
            total = ConstantTerm(reduce(np.add, (term.over(keys) for term in related)), keys)
            apart = [*(term for term in apart if term not in related), total]
    return apart
