"""Where the indices of an access stand: by axis where that can be, else one by one; and whether that is within the buffer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilefw.api import Buffer, CompileError
from tilefw_spatial.graph import Along, Axis, Where
from tilefw_spatial.lower.fuse import Fusion, Sums
from tilefw_spatial.lower.known import LARGEST, Array, Key, Term, separated
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.state import Reach, State
from tilefw_spatial.lower.tiles import refusal

NOWHERE = Where(0, 0, ())


def sums(state: State, reach: Reach) -> Sums:
    """An access over the axes as they have become, in as many terms as it has."""
    roots = [_rooted(state, term) for term in reach.offset]
    masks = [part for term in reach.mask for part in _apart(_rooted(state, term))]
    return Sums(tuple(part for term in roots for part in separated(term)), tuple(mask for mask in masks if mask.keys))


def _rooted(state: State, term: Term) -> Term:
    return Term(term.data, tuple(state.axes[key] if isinstance(key, Axis) else key for key in term.keys))


def _apart(mask: Term) -> tuple[Term, ...]:
    """A conjunction as terms of one key each, where it is such a one."""
    if len(mask.keys) < 2:
        return (mask,)
    parts = []
    for place, key in enumerate(mask.keys):
        rest = tuple(i for i in range(len(mask.keys)) if i != place)
        parts.append(Term(np.asarray(mask.data.any(axis=rest)), (key,)))
    joined = np.ones((), np.bool_)
    for part in parts:
        joined = np.logical_and(joined, part.over(mask.keys))
    return tuple(parts) if np.array_equal(joined, mask.data) else (mask,)


def where(reach: Reach, access: Sums, fusion: Fusion, axes: Sequence[Axis], buffer: Buffer | None) -> Where:
    """The access over `axes`. Raises CompileError (TFW0661) where it leaves the buffer."""
    terms = [fusion.term(term) for term in access.offsets]
    masks = [fusion.term(term) for term in access.masks]
    base = sum(int(term.data) for term in terms if not term.keys)
    joint = any(len(term.keys) > 1 for term in (*terms, *masks))
    if not joint:
        along = tuple(_along(axis, terms, masks) for axis in axes)
        low, high = _range(base, along)
        if _inside(reach, buffer, low, high):
            return Where(reach.parameter, base, along)
        if not reach.clipped:
            raise _outside(reach, low if low < 0 else high, buffer)
    if extent(axes) > LARGEST:
        raise refusal(reach.place, "an access depends on too much at once to be laid out", "memory.gather." + reach.dtype.name)
    return _explicit(reach, base, terms, masks, axes, buffer)


def _along(axis: Axis, terms: Sequence[Term], masks: Sequence[Term]) -> Along:
    offsets, valid = np.zeros(axis.extent, np.int64), None
    for term in terms:
        if axis in term.keys:
            offsets = offsets + term.data
    for mask in masks:
        if axis in mask.keys:
            valid = mask.data if valid is None else valid & mask.data
    return Along(axis, offsets, None if valid is None or valid.all() else valid)


def _range(base: int, along: Sequence[Along]) -> tuple[int, int]:
    """The first and the last element that are accessed; an empty range where none is."""
    low = high = base
    for part in along:
        offsets = part.offsets if part.valid is None else part.offsets[part.valid]
        if not offsets.size:
            return 0, -1
        low, high = low + int(offsets.min()), high + int(offsets.max())
    return low, high


def _inside(reach: Reach, buffer: Buffer | None, low: int, high: int) -> bool:
    if buffer is None or high < low:
        return True
    size = reach.dtype.storage_bits // 8
    return buffer.offset + low * size >= 0 and buffer.offset + (high + 1) * size <= buffer.nbytes


def _outside(reach: Reach, element: int, buffer: Buffer | None) -> CompileError:
    assert buffer is not None
    held = (buffer.nbytes - buffer.offset) // (reach.dtype.storage_bits // 8)
    return CompileError(
        f"the launch accesses element {element} of a buffer of {held} elements", "TFW0661", reach.place,
        help="mask the access, or launch with a larger buffer",
    )


def _explicit(
    reach: Reach, base: int, terms: Sequence[Term], masks: Sequence[Term], axes: Sequence[Axis], buffer: Buffer | None
) -> Where:
    """Every index by itself."""
    keys: tuple[Key, ...] = tuple(axes)
    shape = [axis.extent for axis in axes]
    offsets = np.full(shape, base, np.int64)
    for term in terms:
        if term.keys:
            offsets += term.over(keys)
    valid = np.ones(shape, np.bool_)
    for mask in masks:
        valid &= mask.over(keys)
    if buffer is not None:
        size = reach.dtype.storage_bits // 8
        inside = (buffer.offset + offsets * size >= 0) & (buffer.offset + (offsets + 1) * size <= buffer.nbytes)
        if not reach.clipped and not inside[valid].all():
            raise _outside(reach, int(offsets[valid & ~inside][0]), buffer)
        valid &= inside
    along = tuple(Along(axis, np.zeros(axis.extent, np.int64)) for axis in axes)
    return Where(reach.parameter, 0, along, np.where(valid, offsets, -1))


def without_repeats(place: Where) -> Where:
    """An access whose last index stands where several touch one element."""
    if _is_distinct(place):
        return place
    offsets = elements(place)
    flat = offsets.ravel()[::-1]
    _, last = np.unique(flat, return_index=True)
    kept = np.full(flat.shape, -1, np.int64)
    kept[last] = flat[last]
    along = tuple(Along(part.axis, np.zeros(part.axis.extent, np.int64)) for part in place.along)
    return Where(place.parameter, 0, along, kept[::-1].reshape(offsets.shape))


def elements(place: Where) -> Array:
    """The element of every index of an access, -1 for none, over its axes."""
    if place.explicit is not None:
        return place.explicit
    offsets = np.full([part.axis.extent for part in place.along], place.base, np.int64)
    valid = np.ones(offsets.shape, np.bool_)
    for dim, part in enumerate(place.along):
        shape = [-1 if i == dim else 1 for i in range(len(place.along))]
        offsets = offsets + part.offsets.reshape(shape)
        if part.valid is not None:
            valid &= part.valid.reshape(shape)
    return np.where(valid, offsets, -1)


def _is_distinct(place: Where) -> bool:
    """Whether no two indices touch one element: each axis steps over all that the finer ones reach, or it is found one by one."""
    if place.explicit is None:
        spans = []
        for part in place.along:
            offsets = np.sort(part.offsets if part.valid is None else part.offsets[part.valid])
            if offsets.size > 1:
                spans.append((int(np.diff(offsets).min()), int(offsets[-1] - offsets[0])))
        reach = 0
        for step, span in sorted(spans):
            if step <= reach:
                break
            reach += span
        else:
            return True
    found = elements(place)
    found = found[found >= 0]
    return np.unique(found).size == found.size
