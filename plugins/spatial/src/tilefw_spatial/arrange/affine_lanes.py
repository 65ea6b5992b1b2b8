"""Lane positions whose elements are affine, as vectors and the lanes of each instead of position by position."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tilefw.api.integers import ceil_div
from tilefw_spatial.arrange.access import AccessTerm
from tilefw_spatial.arrange.lanes import LaneOrder
from tilefw_spatial.graph import Axis
from tilefw_spatial.index_tables import AffineTable, IndexInterval, Valid, together
from tilefw_spatial.program import AxisMap


def affine_lanes(terms: Sequence[AccessTerm], lanes: LaneOrder) -> tuple[AffineTable, IndexInterval] | None:
    """What lane positions add to an access, and which of them are valid; None where that is not affine, or not one interval."""
    if lanes.product is None:
        return None
    long = [axis for axis in lanes.product if axis.extent > 1]
    steps, first = dict.fromkeys(lanes.product, 0), 0
    valid: Valid | None = None
    for term in terms:
        if len(term.axes) != 1 or not isinstance(term.offsets, AffineTable):
            return None
        steps[term.axes[0]] += term.offsets.step
        first += term.offsets.first
        if term.valid is not None:
            found = _positions(term.valid, term.axes[0], lanes, long)
            if found is None:
                return None
            valid = together(valid, found)
    if any(steps[outer] != steps[inner] * inner.extent for outer, inner in pairwise(long)):
        return None
    table = AffineTable(first, steps[long[-1]] if long else 0, lanes.positions)
    span = IndexInterval(0, lanes.positions, lanes.positions) if valid is None else valid
    return (table, span) if isinstance(span, IndexInterval) and span.any() else None


def _positions(valid: Valid, axis: Axis, lanes: LaneOrder, long: Sequence[Axis]) -> IndexInterval | None:
    """The positions that have an index of the outermost axis which counts."""
    if not isinstance(valid, IndexInterval) or (long and axis is not long[0]):
        return None
    inner = lanes.positions // axis.extent
    return IndexInterval(valid.low * inner, valid.high * inner, lanes.positions)


def maps_of(table: AffineTable, span: IndexInterval, chunk: int, width: int) -> list[tuple[AxisMap, ...]]:
    """Axes for whole vectors, and for what lies in part of a vector before and after them; `chunk` is from vector to vector,
    each of `width` lanes."""
    begin, end = ceil_div(span.low, width), span.high // width
    if begin > end:  # within one vector
        return [_part(table, span.low, span.high, chunk, width)]
    found = [_part(table, span.low, begin * width, chunk, width)] if span.low < begin * width else []
    if begin < end:
        vectors = AxisMap(end - begin, np.asarray(table[begin * width : end * width : width]) - table.first, chunk, 0)
        found.append((*_skipped(begin * chunk), vectors, _even(AffineTable(table.first, table.step, width))))
    return [*found, _part(table, end * width, span.high, chunk, width)] if end * width < span.high else found


def _part(table: AffineTable, low: int, high: int, chunk: int, width: int) -> tuple[AxisMap, ...]:
    """Positions of one vector."""
    first = low % width
    lanes = _even(table[low - first : high])
    if first:
        lanes = AxisMap(lanes.extent, lanes.offsets, 0, 1, np.arange(lanes.extent) >= first)
    return (*_skipped(low // width * chunk), lanes)


def _even(table: AffineTable) -> AxisMap:
    return AxisMap(table.count, np.asarray(table), 0, 1)


def _skipped(vectors: int) -> tuple[AxisMap, ...]:
    """An axis that skips so many vectors before the first; no axis where there is none to skip."""
    return (AxisMap(2, np.zeros(2, np.int64), vectors, 0, np.array([False, True])),) if vectors else ()
