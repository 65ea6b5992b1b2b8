"""Where the indices of an access stand: by axis where that can be, else one by one; and whether that is within the buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tilefw.api import BufferPlacement, CompileError
from tilefw_spatial.graph import Along, Axis, Joint, Where
from tilefw_spatial.index_tables import LARGEST, AffineTable, IndexInterval, Offsets, Valid, check_size, even, run, together
from tilefw_spatial.limits import beyond
from tilefw_spatial.lower.below import Below
from tilefw_spatial.lower.fuse import FusedSums, SumFusion
from tilefw_spatial.lower.known import Array, Key, KnownTerm, separated
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.state import Reach, State

NOWHERE = Where(0, 0, ())
MOST_TURNS = 64  # each is a store of its own


def sums(state: State, reach: Reach) -> FusedSums:
    """An access over the axes as they have become, in as many terms as it has."""
    roots = [_rooted(state, term) for term in reach.offset]
    masks = [part for term in reach.mask for part in _apart(_rooted(state, term))]
    return FusedSums(tuple(part for term in roots for part in separated(term)), tuple(mask for mask in masks if mask.keys))


def _rooted(state: State, term: KnownTerm) -> KnownTerm:
    return term.rekeyed([state.axes[key] if isinstance(key, Axis) else key for key in term.keys])


def _apart(mask: KnownTerm) -> tuple[KnownTerm, ...]:
    """A conjunction as terms of one key each, where it is such a one."""
    if isinstance(mask, Below):
        return mask.parts() or (mask,)
    if len(mask.keys) < 2:
        return (mask,)
    parts = []
    for place, key in enumerate(mask.keys):
        rest = tuple(i for i in range(len(mask.keys)) if i != place)
        parts.append(KnownTerm(np.asarray(mask.data.any(axis=rest)), (key,)))
    joined = np.ones((), np.bool_)
    for part in parts:
        joined = np.logical_and(joined, part.over(mask.keys))
    return tuple(parts) if np.array_equal(joined, mask.data) else (mask,)


def where(reach: Reach, access: FusedSums, fusion: SumFusion, axes: Sequence[Axis], buffer: BufferPlacement | None) -> Where:
    """The access over `axes`. Raises CompileError (TFW0661) where it leaves the buffer."""
    terms, masks = (_by_axis(some, fusion) for some in (access.offsets, access.masks))
    base = sum(int(term.data) for term in terms.pop((), []))
    along = tuple(
        Along(axis, _offsets(axis, terms.pop((axis,), []), fusion), _valid(axis, masks.pop((axis,), []), fusion)) for axis in axes
    )
    joint = [_joint(fusion.term(term), False) for some in terms.values() for term in some]
    joint += [_joint(fusion.term(mask), True) for some in masks.values() for mask in some]
    place = Where(reach.parameter, base, along, tuple(joint))
    low, high = reach_of(place)
    if not _inside(reach, buffer, low, high):
        place = _checked(reach, place, buffer)
    return place


def _by_axis(terms: Sequence[KnownTerm], fusion: SumFusion) -> dict[tuple[Axis, ...], list[KnownTerm]]:
    """Terms by the axes over which they come to be."""
    found: dict[tuple[Axis, ...], list[KnownTerm]] = {}
    for term in terms:
        found.setdefault(fusion.axes(key for key in term.keys if isinstance(key, Axis)), []).append(term)
    return found


def _joint(term: KnownTerm, masks: bool) -> Joint:
    """What a term over several axes says: of where the access is made, else of the element."""
    axes = tuple(key for key in term.keys if isinstance(key, Axis))
    return Joint(axes, np.zeros(term.data.shape, np.int64), term.data) if masks else Joint(axes, term.data, None)


def _offsets(axis: Axis, terms: Sequence[KnownTerm], fusion: SumFusion) -> Offsets:
    """What an axis adds to an access: the sum of terms over what it is made of."""
    table = _affine_table(fusion.parts(axis), terms)
    if table is not None:
        return table
    first, *rest = (fusion.term(term).data for term in terms)
    return even(sum(rest, first))


def _affine_table(parts: Sequence[Axis], terms: Sequence[KnownTerm]) -> AffineTable | None:
    """The sum of terms over axes that were fused, where it advances evenly."""
    steps, first = dict.fromkeys(parts, 0), 0
    for term in terms:
        offsets = even(term.data)
        if len(term.keys) != 1 or not isinstance(offsets, AffineTable):
            return None
        (key,) = term.keys
        assert isinstance(key, Axis)
        steps[key] += offsets.step
        first += offsets.first
    long = [part for part in parts if part.extent > 1]
    if any(steps[outer] != steps[inner] * inner.extent for outer, inner in pairwise(long)):
        return None
    return AffineTable(first, steps[long[-1]] if long else 0, extent(parts))


def _valid(axis: Axis, masks: Sequence[KnownTerm], fusion: SumFusion) -> Valid | None:
    """Where an axis has the access made, None for everywhere."""
    found: Valid | None = None
    for mask in masks:
        table = _affine_table(fusion.parts(axis), mask.sums) if isinstance(mask, Below) else None
        valid = run(fusion.term(mask).data) if table is None else _below(table, mask.bound) if isinstance(mask, Below) else None
        found = together(found, valid)
    return None if found is None or found.all() else found


def _below(table: AffineTable, bound: int) -> IndexInterval:
    """The indices at which an affine table is below a bound."""
    if table.step > 0:
        return IndexInterval(0, min(max(-((table.first - bound) // table.step), 0), table.count), table.count)
    if table.step < 0:
        return IndexInterval(min(max((table.first - bound) // -table.step + 1, 0), table.count), table.count, table.count)
    return IndexInterval(0, table.count if table.first < bound else 0, table.count)


def reach_of(place: Where) -> tuple[int, int]:
    """The first and the last element that are accessed; an empty range where none is."""
    low = high = place.base
    for part in independent(place):
        offsets = accessed(part)
        if not len(offsets):
            return 0, -1
        low += int(offsets.min())
        high += int(offsets.max())
    return low, high


def accessed(place: Where) -> Offsets:
    """The elements that are accessed, index by index."""
    if len(place.along) == 1 and not place.joint:
        (along,) = place.along
        if isinstance(along.offsets, AffineTable) and not isinstance(along.valid, np.ndarray):
            table = along.offsets if along.valid is None else along.offsets[along.valid.low : along.valid.high]
            return replace(table, first=table.first + place.base)
    offsets, valid = elements(place)
    return offsets[valid]


def independent(place: Where) -> list[Where]:
    """An access as parts that have no axis in common, each without the base."""
    parts = [Where(place.parameter, 0, (along,)) for along in place.along]
    for joint in place.joint:
        met = [part for part in parts if any(along.axis in joint.axes for along in part.along)]
        parts = [part for part in parts if not any(part is other for other in met)]
        along = tuple(along for part in met for along in part.along)
        parts.append(Where(place.parameter, 0, along, (*(joint for part in met for joint in part.joint), joint)))
    return parts


def _inside(reach: Reach, buffer: BufferPlacement | None, low: int, high: int) -> bool:
    if buffer is None or high < low:
        return True
    size = reach.dtype.storage_bits // 8
    return buffer.offset + low * size >= 0 and buffer.offset + (high + 1) * size <= buffer.nbytes


def _outside(reach: Reach, element: int, buffer: BufferPlacement | None) -> CompileError:
    assert buffer is not None
    held = (buffer.nbytes - buffer.offset) // (reach.dtype.storage_bits // 8)
    return CompileError(
        f"the launch accesses element {element} of a buffer of {held} elements", "TFW0661", reach.place,
        help="mask the access, or launch with a larger buffer",
    )


def _checked(reach: Reach, place: Where, buffer: BufferPlacement | None) -> Where:
    """The access index by index: an error where one leaves the buffer, or, where data decides, without those that do."""
    assert buffer is not None
    if not reach.clipped and extent(part.axis for part in place.along) > LARGEST:
        low, high = reach_of(place)
        raise _outside(reach, high if _inside(reach, buffer, low, low) else low, buffer)
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
    term = KnownTerm(valid, tuple(part.axis for part in place.along)).minimal()
    return replace(place, joint=(*place.joint, _joint(term, True)))


def without_repeats(place: Where, trips: KnownTerm) -> Where:
    """An access whose last index stands where several touch one element."""
    offsets, indices = _in_turn(place, trips)
    order = indices[::-1]
    _, last = np.unique(offsets.ravel()[order], return_index=True)
    kept = np.zeros(offsets.size, np.bool_)
    kept[order[last]] = True
    return _masked(place, kept.reshape(offsets.shape))


def turns(place: Where, trips: KnownTerm, reach: Reach) -> list[Where]:
    """An access as several that touch no element twice: the first has each element's first index, the second its second, …"""
    offsets, indices = _in_turn(place, trips)
    touched = offsets.ravel()[indices]
    order = np.argsort(touched, kind="stable")
    _, first, counts = np.unique(touched[order], return_index=True, return_counts=True)
    number = np.full(offsets.size, -1, np.int64)
    number[indices[order]] = np.arange(order.size) - np.repeat(first, counts)
    most = int(counts.max())
    if most > MOST_TURNS:
        what, help = "data masks a store that writes one element again and again", "let each iteration store elements of its own"
        raise beyond(what, most, MOST_TURNS, "times", reach.place, help)
    return [_masked(place, (number == turn).reshape(offsets.shape)) for turn in range(most)]


def _in_turn(place: Where, trips: KnownTerm) -> tuple[Array, Array]:
    """The elements of an access, and the flat indices that are accessed in the order of the trips through the loops around."""
    offsets, valid = elements(place)
    indices = np.flatnonzero(valid)
    numbers = np.broadcast_to(trips.over(tuple(part.axis for part in place.along)), offsets.shape)
    return offsets, indices[np.argsort(numbers.ravel()[indices], kind="stable")]


def elements(place: Where) -> tuple[Array, Array]:
    """The element of every index of an access, and whether it is accessed, over its axes."""
    axes = tuple(part.axis for part in place.along)
    check_size(extent(axes))
    offsets = np.full([axis.extent for axis in axes], place.base, np.int64)
    valid = np.ones(offsets.shape, np.bool_)
    for part in (*place.along, *place.joint):
        keys: tuple[Key, ...] = (part.axis,) if isinstance(part, Along) else part.axes
        offsets += KnownTerm(np.asarray(part.offsets), keys).over(axes)
        if part.valid is not None:
            valid &= KnownTerm(np.asarray(part.valid), keys).over(axes)
    return offsets, valid


def _least_step(offsets: Offsets) -> int:
    return abs(offsets.step) if isinstance(offsets, AffineTable) else int(np.diff(np.sort(offsets)).min())


def is_distinct(place: Where) -> bool:
    """Whether no two indices touch one element: each part steps over all that the finer ones reach, or it is found one by one."""
    spans = []
    for part in independent(place):
        found = accessed(part)
        if len(found) > 1:
            spans.append((_least_step(found), int(found.max()) - int(found.min())))
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
