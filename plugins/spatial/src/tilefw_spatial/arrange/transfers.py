"""How the elements of a buffer and the lanes of an array's vectors correspond, for the host that fills or reads it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.arrange.access import AccessTerm, AffineAccess
from tilefw_spatial.arrange.affine_lanes import affine_lanes, maps_of
from tilefw_spatial.arrange.lanes import LaneOrder
from tilefw_spatial.arrange.reindexing import over
from tilefw_spatial.graph import Axis
from tilefw_spatial.index_tables import check_size, together
from tilefw_spatial.program import AxisMap, Transfer


def transfers(
    access: AffineAccess, lanes: LaneOrder, strides: Mapping[Axis, int], chunk: int, fill: int = 0, once: bool = False
) -> tuple[Transfer, ...]:
    """For an array whose vector of index i… in time and chunk c is `Σ i · strides + c · chunk`; `once`: an element in several
    lanes is taken from the first."""
    if any(not term.axes for term in access.terms):  # a term without axes says that nothing is accessed
        return (Transfer(access.parameter, access.base, (), lanes.width, chunk, np.zeros((0, 3), dtype=np.int64), fill),)
    firsts = lanes.firsts() if once else None
    rest: list[AccessTerm] = []
    by_axis: dict[Axis | None, list[AccessTerm]] = {None: [], **{axis: [] for axis in strides}}
    for term in access.terms:
        along = {None if axis in lanes.axes else axis for axis in term.axes}
        if len(along) > 1:
            rest.append(term)
        else:
            by_axis[along.pop()].append(term)
    split = _separated(access, lanes) if rest else None
    if rest and split is None:
        return (Transfer(access.parameter, 0, (), lanes.width, chunk, _explicit(access, lanes, strides, chunk, firsts), fill),)
    if split is not None:
        return transfers(split, lanes, strides, chunk, fill, once)
    time = tuple(_time_map(axis, terms, strides[axis]) for axis, terms in by_axis.items() if axis is not None)
    found = affine_lanes(by_axis[None], lanes) if lanes.chunks > 1 else None
    parts = [(_lane_map(by_axis[None], lanes, firsts),)] if found is None else maps_of(*found, chunk, lanes.width)
    return tuple(Transfer(access.parameter, access.base, (*maps, *time), lanes.width, chunk, None, fill) for maps in parts)


def _lane_map(terms: list[AccessTerm], lanes: LaneOrder, valid: NDArray[np.bool_] | None) -> AxisMap:
    """All positions as one axis, of which those in `valid` count; a value with no axis along lanes is the same in all."""
    check_size(lanes.positions)
    offsets = np.zeros(lanes.positions, dtype=np.int64)
    for term in terms:
        index = tuple(lanes.index[axis] for axis in term.axes)
        offsets = offsets + np.asarray(term.offsets)[index]
        if term.valid is not None:
            there = np.asarray(term.valid)[index]
            valid = there if valid is None else valid & there
    return AxisMap(lanes.positions, offsets, 0, 1, valid)


def _time_map(axis: Axis, terms: list[AccessTerm], stride: int) -> AxisMap:
    offsets, valid = np.zeros(axis.extent, dtype=np.int64), None
    for term in terms:
        offsets = offsets + np.asarray(term.offsets)
        valid = together(valid, term.valid)
    return AxisMap(axis.extent, offsets, stride, 0, None if valid is None else np.asarray(valid))


def _joint(access: AffineAccess) -> tuple[tuple[Axis, ...], NDArray[np.int64], NDArray[np.bool_]]:
    """The access as one table over all of its axes."""
    axes = tuple(dict.fromkeys(axis for term in access.terms for axis in term.axes))
    return axes, *access.elements(axes)


def _separated(access: AffineAccess, lanes: LaneOrder) -> AffineAccess | None:
    """The access as a term along lanes and one for each axis in time, None where it is no such sum."""
    axes, offsets, valid = _joint(access)
    groups = [tuple(axis for axis in axes if axis in lanes.axes), *((axis,) for axis in axes if axis not in lanes.axes)]
    groups = [group for group in groups if group]
    if not valid.any():
        return None
    origin = np.unravel_index(int(valid.argmax()), valid.shape)
    base, terms = int(offsets[origin]), []
    whole, inside = np.full(offsets.shape, base), np.ones(valid.shape, dtype=np.bool_)
    for group in groups:
        index = tuple(slice(None) if axis in group else origin[n] for n, axis in enumerate(axes))
        term = AccessTerm(group, offsets[index] - base, valid[index])
        terms.append(term)
        whole += over(group, np.asarray(term.offsets), axes)
        inside &= over(group, valid[index], axes)
    same = (inside == valid).all() and (np.where(valid, whole, 0) == np.where(valid, offsets, 0)).all()
    return AffineAccess(access.parameter, base, tuple(terms)) if same else None


def _explicit(
    access: AffineAccess, lanes: LaneOrder, strides: Mapping[Axis, int], chunk: int, firsts: NDArray[np.bool_] | None,
) -> NDArray[np.int64]:
    """Rows of (host element, vector, lane)."""
    axes, offsets, valid = _joint(access)
    time = tuple(strides)
    grid = [axis.extent for axis in time] + [lanes.positions]
    cells = np.indices(grid, sparse=True)
    position = cells[-1]
    index = tuple(lanes.index[axis][position] if axis in lanes.axes else cells[time.index(axis)] for axis in axes)
    vector = sum((cells[n] * strides[axis] for n, axis in enumerate(time)), start=position // lanes.width * chunk)
    rows = [np.broadcast_to(part, grid).reshape(-1) for part in (offsets[index], vector, position % lanes.width)]
    taken = valid[index] if firsts is None else valid[index] & firsts
    return np.stack(rows, axis=1)[np.broadcast_to(taken, grid).reshape(-1)]
