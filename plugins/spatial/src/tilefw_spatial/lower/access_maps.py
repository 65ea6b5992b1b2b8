"""The element of every index of an access: by axis where that is possible, else one by one; and whether it is within the buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tilefw.api import BufferPlacement, CompileError
from tilefw_spatial.graph import AccessMap, Along, Axis, Joint
from tilefw_spatial.index_tables import LARGEST, AffineTable, IndexInterval, Offsets, Valid, check_size, even, run, together
from tilefw_spatial.limits import beyond
from tilefw_spatial.lower.below import Below
from tilefw_spatial.lower.constant_tile import Array, ConstantTerm, Key, separated
from tilefw_spatial.lower.fuse import FusedSums, SumFusion
from tilefw_spatial.lower.programs import extent
from tilefw_spatial.lower.state import Reach, State

NOWHERE = AccessMap(0, 0, ())
MOST_PASSES = 64  # each is a store of its own


def sums(state: State, reach: Reach) -> FusedSums:
    """An access over the axes as they have become, in as many terms as it has."""
    roots = [_rooted(state, term) for term in reach.offset]
    masks = [part for term in reach.mask for part in _apart(_rooted(state, term))]
    return FusedSums(tuple(part for term in roots for part in separated(term)), tuple(mask for mask in masks if mask.keys))


def _rooted(state: State, term: ConstantTerm) -> ConstantTerm:
    return term.rekeyed([state.axes[key] if isinstance(key, Axis) else key for key in term.keys])


def _apart(mask: ConstantTerm) -> tuple[ConstantTerm, ...]:
    """A conjunction as terms of one key each, where it is such a one."""
    if isinstance(mask, Below):
        return mask.parts() or (mask,)
    if len(mask.keys) < 2:
        return (mask,)
    parts = []
    for position, key in enumerate(mask.keys):
        rest = tuple(i for i in range(len(mask.keys)) if i != position)
        parts.append(ConstantTerm(np.asarray(mask.data.any(axis=rest)), (key,)))
    joined = np.ones((), np.bool_)
    for part in parts:
        joined = np.logical_and(joined, part.over(mask.keys))
    return tuple(parts) if np.array_equal(joined, mask.data) else (mask,)


def access_map_of(
    reach: Reach, access: FusedSums, fusion: SumFusion, axes: Sequence[Axis], buffer: BufferPlacement | None
) -> AccessMap:
    """The access over `axes`. Raises CompileError (TFW0661) where it leaves the buffer."""
    terms, masks = (_by_axis(some, fusion) for some in (access.offsets, access.masks))
    base = sum(int(term.data) for term in terms.pop((), []))
    along = tuple(
        Along(axis, _offsets(axis, terms.pop((axis,), []), fusion), _valid(axis, masks.pop((axis,), []), fusion)) for axis in axes
    )
    joint = [_joint(fusion.term(term), False) for some in terms.values() for term in some]
    joint += [_joint(fusion.term(mask), True) for some in masks.values() for mask in some]
    access_map = AccessMap(reach.parameter, base, along, tuple(joint))
    low, high = reach_of(access_map)
    if not _inside(reach, buffer, low, high):
        access_map = _checked(reach, access_map, buffer)
    return access_map


def _by_axis(terms: Sequence[ConstantTerm], fusion: SumFusion) -> dict[tuple[Axis, ...], list[ConstantTerm]]:
    """Terms by the axes over which they come to be."""
    found: dict[tuple[Axis, ...], list[ConstantTerm]] = {}
    for term in terms:
        found.setdefault(fusion.axes(key for key in term.keys if isinstance(key, Axis)), []).append(term)
    return found


def _joint(term: ConstantTerm, masks: bool) -> Joint:
    """A term over several axes, as a mask or as an offset."""
    axes = tuple(key for key in term.keys if isinstance(key, Axis))
    return Joint(axes, np.zeros(term.data.shape, np.int64), term.data) if masks else Joint(axes, term.data, None)


def _offsets(axis: Axis, terms: Sequence[ConstantTerm], fusion: SumFusion) -> Offsets:
    """What an axis adds to an access: the sum of terms over what it is made of."""
    table = _affine_table(fusion.parts(axis), terms)
    if table is not None:
        return table
    first, *rest = (fusion.term(term).data for term in terms)
    return even(sum(rest, first))


def _affine_table(parts: Sequence[Axis], terms: Sequence[ConstantTerm]) -> AffineTable | None:
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


def _valid(axis: Axis, masks: Sequence[ConstantTerm], fusion: SumFusion) -> Valid | None:
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


def reach_of(access_map: AccessMap) -> tuple[int, int]:
    """The first and the last element that are accessed; an empty range where none is."""
    low = high = access_map.base
    for part in independent(access_map):
        offsets = accessed(part)
        if not len(offsets):
            return 0, -1
        low += int(offsets.min())
        high += int(offsets.max())
    return low, high


def accessed(access_map: AccessMap) -> Offsets:
    """The elements that are accessed, index by index."""
    if len(access_map.along) == 1 and not access_map.joint:
        (along,) = access_map.along
        if isinstance(along.offsets, AffineTable) and not isinstance(along.valid, np.ndarray):
            table = along.offsets if along.valid is None else along.offsets[along.valid.low : along.valid.high]
            return replace(table, first=table.first + access_map.base)
    offsets, valid = elements(access_map)
    return offsets[valid]


def independent(access_map: AccessMap) -> list[AccessMap]:
    """An access as parts that have no axis in common, each without the base."""
    parts = [AccessMap(access_map.parameter, 0, (along,)) for along in access_map.along]
    for joint in access_map.joint:
        related = [part for part in parts if any(along.axis in joint.axes for along in part.along)]
        parts = [part for part in parts if not any(part is other for other in related)]
        along = tuple(along for part in related for along in part.along)
        parts.append(AccessMap(access_map.parameter, 0, along, (*(joint for part in related for joint in part.joint), joint)))
    return parts


def _inside(reach: Reach, buffer: BufferPlacement | None, low: int, high: int) -> bool:
    if buffer is None or high < low:
        return True
    size = reach.dtype.storage_bits // 8
    return buffer.offset + low * size >= 0 and buffer.offset + (high + 1) * size <= buffer.nbytes


def _outside(reach: Reach, element: int, buffer: BufferPlacement | None) -> CompileError:
    assert buffer is not None
    count = (buffer.nbytes - buffer.offset) // (reach.dtype.storage_bits // 8)
    return CompileError(
        f"the launch accesses element {element} of a buffer of {count} elements", "TFW0661", reach.place,
        help="mask the access, or launch with a larger buffer",
    )


def _checked(reach: Reach, access_map: AccessMap, buffer: BufferPlacement | None) -> AccessMap:
    """The access index by index: an error where one leaves the buffer, or, where data decides, without those that do."""
    assert buffer is not None
    if not reach.clipped and extent(part.axis for part in access_map.along) > LARGEST:
        low, high = reach_of(access_map)
        raise _outside(reach, high if _inside(reach, buffer, low, low) else low, buffer)
    offsets, valid = elements(access_map)
    size = reach.dtype.storage_bits // 8
    inside = (buffer.offset + offsets * size >= 0) & (buffer.offset + (offsets + 1) * size <= buffer.nbytes)
    if inside[valid].all():
        return access_map
    if not reach.clipped:
        raise _outside(reach, int(offsets[valid & ~inside][0]), buffer)
    return _masked(access_map, inside)


def _masked(access_map: AccessMap, valid: Array) -> AccessMap:
    """An access with one more condition, over all of its axes."""
    term = ConstantTerm(valid, tuple(part.axis for part in access_map.along)).minimal()
    return replace(access_map, joint=(*access_map.joint, _joint(term, True)))


def without_repeats(access_map: AccessMap, trips: ConstantTerm) -> AccessMap:
    """An access without the indices that a later one of the same element replaces."""
    offsets, indices = _in_iteration_order(access_map, trips)
    order = indices[::-1]
    _, last = np.unique(offsets.ravel()[order], return_index=True)
    kept = np.zeros(offsets.size, np.bool_)
    kept[order[last]] = True
    return _masked(access_map, kept.reshape(offsets.shape))


def in_passes(access_map: AccessMap, trips: ConstantTerm, reach: Reach) -> list[AccessMap]:
    """An access as several, none of which has an element twice: the first has each element's first index, the second its second,
    …"""
    offsets, indices = _in_iteration_order(access_map, trips)
    addressed = offsets.ravel()[indices]
    order = np.argsort(addressed, kind="stable")
    _, first, counts = np.unique(addressed[order], return_index=True, return_counts=True)
    number = np.full(offsets.size, -1, np.int64)
    number[indices[order]] = np.arange(order.size) - np.repeat(first, counts)
    most = int(counts.max())
    if most > MOST_PASSES:
        what, help = "data masks a store that writes one element again and again", "let each iteration store elements of its own"
        raise beyond(what, most, MOST_PASSES, "times", reach.place, help)
    return [_masked(access_map, (number == one).reshape(offsets.shape)) for one in range(most)]


def _in_iteration_order(access_map: AccessMap, trips: ConstantTerm) -> tuple[Array, Array]:
    """The elements of an access, and the flat indices that are accessed in the order of the trips through the loops around."""
    offsets, valid = elements(access_map)
    indices = np.flatnonzero(valid)
    numbers = np.broadcast_to(trips.over(tuple(part.axis for part in access_map.along)), offsets.shape)
    return offsets, indices[np.argsort(numbers.ravel()[indices], kind="stable")]


def elements(access_map: AccessMap) -> tuple[Array, Array]:
    """The element of every index of an access, and whether it is accessed, over its axes."""
    axes = tuple(part.axis for part in access_map.along)
    check_size(extent(axes))
    offsets = np.full([axis.extent for axis in axes], access_map.base, np.int64)
    valid = np.ones(offsets.shape, np.bool_)
    for part in (*access_map.along, *access_map.joint):
        keys: tuple[Key, ...] = (part.axis,) if isinstance(part, Along) else part.axes
        offsets += ConstantTerm(np.asarray(part.offsets), keys).over(axes)
        if part.valid is not None:
            valid &= ConstantTerm(np.asarray(part.valid), keys).over(axes)
    return offsets, valid


def _least_step(offsets: Offsets) -> int:
    return abs(offsets.step) if isinstance(offsets, AffineTable) else int(np.diff(np.sort(offsets)).min())


def is_distinct(access_map: AccessMap) -> bool:
    """Whether no two indices access one element: each part steps over all that the finer ones reach, or it is found one by one."""
    spans = []
    for part in independent(access_map):
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
    offsets, valid = elements(access_map)
    found = np.sort(offsets[valid])
    return bool((found[1:] != found[:-1]).all())
