"""Where the indices of an access stand: by axis where that can be, else one by one; and whether that is within the buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilefw.api import Buffer, CompileError
from tilefw_spatial.graph import Along, Axis, Joint, Where
from tilefw_spatial.lower.fuse import Fusion, Sums
from tilefw_spatial.lower.known import LARGEST, Array, Key, Term, separated
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.state import Reach, State
from tilefw_spatial.lower.tiles import refusal

NOWHERE = Where(0, 0, ())
MOST_TURNS = 64  # each is a store of its own


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
    along = tuple(_along(axis, [t for t in terms if len(t.keys) == 1], [m for m in masks if len(m.keys) == 1]) for axis in axes)
    joint = [_joint(term.keys, term.data, None) for term in terms if len(term.keys) > 1]
    joint += [_joint(mask.keys, np.zeros(mask.data.shape, np.int64), mask.data) for mask in masks if len(mask.keys) > 1]
    place = Where(reach.parameter, base, along, tuple(joint))
    low, high = _range(place)
    if not _inside(reach, buffer, low, high):
        place = _checked(reach, place, buffer)
    return place


def _joint(keys: Sequence[Key], offsets: Array, valid: Array | None) -> Joint:
    return Joint(tuple(key for key in keys if isinstance(key, Axis)), offsets, valid)


def _along(axis: Axis, terms: Sequence[Term], masks: Sequence[Term]) -> Along:
    of_axis = [term.data for term in terms if axis in term.keys]
    offsets, valid = sum(of_axis[1:], of_axis[0]) if of_axis else np.zeros(axis.extent, np.int64), None
    for mask in masks:
        if axis in mask.keys:
            valid = mask.data if valid is None else valid & mask.data
    return Along(axis, offsets, None if valid is None or valid.all() else valid)


_FARTHEST = np.iinfo(np.int64).max


def _range(place: Where) -> tuple[int, int]:
    """The first and the last element that are accessed; an empty range where none is."""
    low = high = place.base
    for part in _independent(place):
        offsets, valid = elements(part)
        if not valid.any():
            return 0, -1
        low += int(offsets.min(where=valid, initial=_FARTHEST))
        high += int(offsets.max(where=valid, initial=-_FARTHEST))
    return low, high


def _independent(place: Where) -> list[Where]:
    """An access as parts that have no axis in common, each without the base."""
    parts = [Where(place.parameter, 0, (along,)) for along in place.along]
    for joint in place.joint:
        met = [part for part in parts if any(along.axis in joint.axes for along in part.along)]
        parts = [part for part in parts if not any(part is other for other in met)]
        along = tuple(along for part in met for along in part.along)
        parts.append(Where(place.parameter, 0, along, (*(joint for part in met for joint in part.joint), joint)))
    return parts


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


def _checked(reach: Reach, place: Where, buffer: Buffer | None) -> Where:
    """The access index by index: an error where one leaves the buffer, or, where data decides, without those that do."""
    assert buffer is not None
    if extent(part.axis for part in place.along) > LARGEST:
        raise refusal(reach.place, "an access depends on too much at once to be laid out", "memory.gather." + reach.dtype.name)
    offsets, valid = elements(place)
    size = reach.dtype.storage_bits // 8
    inside = (buffer.offset + offsets * size >= 0) & (buffer.offset + (offsets + 1) * size <= buffer.nbytes)
    if inside[valid].all():
        return place
    if not reach.clipped:
        raise _outside(reach, int(offsets[valid & ~inside][0]), buffer)
    return _masked(place, inside)


def _masked(place: Where, valid: Array) -> Where:
    """An access with one more condition, over all of its axes."""
    term = Term(valid, tuple(part.axis for part in place.along)).minimal()
    joint = _joint(term.keys, np.zeros(term.data.shape, np.int64), term.data)
    return replace(place, joint=(*place.joint, joint))


def without_repeats(place: Where, trips: Term) -> Where:
    """An access whose last index stands where several touch one element."""
    offsets, indices = _in_turn(place, trips)
    order = indices[::-1]
    _, last = np.unique(offsets.ravel()[order], return_index=True)
    kept = np.zeros(offsets.size, np.bool_)
    kept[order[last]] = True
    return _masked(place, kept.reshape(offsets.shape))


def turns(place: Where, trips: Term, reach: Reach) -> list[Where]:
    """An access as several that touch no element twice: the first has each element's first index, the second its second, …"""
    offsets, indices = _in_turn(place, trips)
    touched = offsets.ravel()[indices]
    order = np.argsort(touched, kind="stable")
    _, first, counts = np.unique(touched[order], return_index=True, return_counts=True)
    number = np.full(offsets.size, -1, np.int64)
    number[indices[order]] = np.arange(order.size) - np.repeat(first, counts)
    most = int(counts.max())
    if most > MOST_TURNS:
        what = f"data masks a store that writes one element up to {most} times, and {MOST_TURNS} is the most"
        raise refusal(reach.place, what, f"memory.scatter.{reach.dtype.name}")
    return [_masked(place, (number == turn).reshape(offsets.shape)) for turn in range(most)]


def _in_turn(place: Where, trips: Term) -> tuple[Array, Array]:
    """The elements of an access, and the flat indices that are accessed in the order of the trips through the loops around."""
    offsets, valid = elements(place)
    indices = np.flatnonzero(valid)
    numbers = np.broadcast_to(trips.over(tuple(part.axis for part in place.along)), offsets.shape)
    return offsets, indices[np.argsort(numbers.ravel()[indices], kind="stable")]


def elements(place: Where) -> tuple[Array, Array]:
    """The element of every index of an access, and whether it is accessed, over its axes."""
    axes = tuple(part.axis for part in place.along)
    offsets = np.full([axis.extent for axis in axes], place.base, np.int64)
    valid = np.ones(offsets.shape, np.bool_)
    for part in (*place.along, *place.joint):
        keys: tuple[Key, ...] = (part.axis,) if isinstance(part, Along) else part.axes
        offsets += Term(part.offsets, keys).over(axes)
        if part.valid is not None:
            valid &= Term(part.valid, keys).over(axes)
    return offsets, valid


def is_distinct(place: Where) -> bool:
    """Whether no two indices touch one element: each part steps over all that the finer ones reach, or it is found one by one."""
    spans = []
    for part in _independent(place):
        offsets, valid = elements(part)
        found = np.sort(offsets[valid])
        if found.size > 1:
            spans.append((int(np.diff(found).min()), int(found[-1] - found[0])))
    reach = 0
    for step, span in sorted(spans):
        if step <= reach:
            break
        reach += span
    else:
        return True
    if any(step == 0 for step, _ in spans):
        return False
    offsets, valid = elements(place)
    found = np.sort(offsets[valid])
    return bool((found[1:] != found[:-1]).all())
