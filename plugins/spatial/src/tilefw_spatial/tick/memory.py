"""What a memory slice does in one superlane: RD, WR, GTH, SCT."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.tick import findings as kinds
from tilefw_spatial.tick.point import Point
from tilefw_spatial.tick.superlane import LaneWord, Phase, Steps, Superlane

# GTH: its index passes at t, the bank is read at t + 4 (`isa.table`).
GATHER_READ = 4


def read(lane: Superlane, point: Point) -> Steps:
    """RD: the row is read now and on the stream later; it may be written again between."""
    slice_, row = lane.slice(point.queue.unit), lane.row(point)
    lane.access(point, writes=False)
    word = LaneWord(np.zeros(lane.machine.superlane_lanes, np.uint8), True)
    if row is not None:
        word = LaneWord(slice_.data[row, lane.lanes].copy(), not slice_.written[row, lane.number])
    yield Phase.ARRIVE, lane.machine.delays["read"]
    lane.put(point, point.inst.dst, word)


def write(lane: Superlane, point: Point) -> Steps:
    """WR: what passes then is stored then."""
    yield Phase.WORK, lane.machine.delays["write"]
    word, row = lane.take(point, point.inst.a), lane.row(point)
    lane.access(point, writes=True)
    _sound(lane, point, word.tainted)
    if row is not None:
        slice_ = lane.slice(point.queue.unit)
        slice_.data[row, lane.lanes] = word.data
        slice_.written[row, lane.number] = True


def gather(lane: Superlane, point: Point) -> Steps:
    """GTH: each lane's own byte, of the row that its index names."""
    index, tainted = lane.take_planes(point, point.inst.a, 2)
    yield Phase.WORK, GATHER_READ
    lane.access(point, writes=False)
    slice_ = lane.slice(point.queue.unit)
    rows, inside = _rows(lane, point, index)
    columns = np.arange(lane.lanes.start, lane.lanes.stop)
    data = np.where(inside, slice_.data[rows, columns], 0).astype(np.uint8)
    word = LaneWord(data, tainted or not slice_.written[rows, lane.number].all())
    yield Phase.ARRIVE, lane.machine.delays["gather"] - GATHER_READ
    lane.put(point, point.inst.dst, word)


def scatter(lane: Superlane, point: Point) -> Steps:
    """SCT: each lane's own byte, into the row that its index names."""
    yield Phase.WORK, lane.machine.delays["scatter"]
    index, tainted = lane.take_planes(point, point.inst.a, 2)
    word = lane.take(point, point.inst.b)
    lane.access(point, writes=True)
    _sound(lane, point, tainted or word.tainted)
    slice_ = lane.slice(point.queue.unit)
    rows, inside = _rows(lane, point, index)
    for offset in np.flatnonzero(inside):
        slice_.data[rows[offset], lane.lanes.start + offset] = word.data[offset]
    # Every superlane has written when any lane of the vector has: a row counts as a whole.
    slice_.written[rows[inside]] = True


def _rows(lane: Superlane, point: Point, index: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rows that indices name, and which of them are in the bank: the first that is not is reported."""
    rows = point.inst.address + index[0].astype(np.int64) + 256 * index[1].astype(np.int64)
    inside = rows < (point.inst.address // lane.machine.rows + 1) * lane.machine.rows
    if not inside.all():
        first = int(np.argmin(inside))
        message = f"index of lane {lane.lanes.start + first} leaves the bank by row {int(rows[first])} in {point.queue.unit}"
        lane.report(kinds.ROW, message, point)
    return np.where(inside, rows, 0), inside


def _sound(lane: Superlane, point: Point, tainted: bool) -> None:
    if tainted:
        lane.report(kinds.UNINITIALISED, f"what was never initialised is stored in {point.queue.unit}", point)
