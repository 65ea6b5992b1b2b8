"""What a memory slice does: RD, WR, GTH and SCT. Each returns how many points of its burst it did."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.chip import Request, SpatialChip, Taint
from tilefw_spatial.simulate.findings import Faults

# Cycles from the passing of a gather's index to the read: the delay of a write's operand, twice (`isa.table`, GTH).
GATHER_READ = 4


def read(chip: SpatialChip, burst: Burst) -> int:
    """RD: rows onto a stream. A copy: the row may be written again while its vector flows."""
    slice_ = chip.slices[burst.queue.unit]
    rows = chip.slices.rows(burst)
    chip.slices.access(burst, burst.time, writes=False)
    written = slice_.written[rows] & (rows >= 0)
    values = _rows(slice_.data, burst, rows)
    tainted = None if written.all() else ~written
    chip.put(burst, burst.inst.dst, burst.time + chip.machine.delays["read"], burst.period, values, tainted)
    return burst.count


def write(chip: SpatialChip, burst: Burst) -> int:
    """WR: what passes into rows."""
    due = burst.time + chip.machine.delays["write"]
    (values,), tainted, count = chip.take(burst, [Request(burst.inst.a, 1, due, burst.period, burst.count)])
    burst = burst.head(count)
    rows = chip.slices.rows(burst)
    chip.slices.access(burst, due, writes=True)
    sound(chip, burst, tainted, due)
    slice_, inside = chip.slices[burst.queue.unit], rows >= 0
    slice_.data[rows[inside]] = values[0][inside]
    slice_.written[rows[inside]] = True
    return count


def gather(chip: SpatialChip, burst: Burst) -> int:
    """GTH: each lane's own byte of the row that its index names."""
    machine = chip.machine
    (index,), tainted, count = chip.take(burst, [Request(burst.inst.a, 2, burst.time, burst.period, burst.count)])
    burst = burst.head(count)
    chip.slices.access(burst, burst.time + GATHER_READ, writes=False)
    slice_ = chip.slices[burst.queue.unit]
    rows, lanes, outside = _addressed(chip, burst, index)
    values = np.where(outside, np.uint8(0), slice_.data[rows, lanes])
    tainted = _either(tainted, ~np.logical_and.reduce(slice_.written[rows], axis=1))
    chip.put(burst, burst.inst.dst, burst.time + machine.delays["gather"], burst.period, values, tainted)
    return count


def scatter(chip: SpatialChip, burst: Burst) -> int:
    """SCT: each lane's own byte into the row that its index names."""
    due = burst.time + chip.machine.delays["scatter"]
    requests = [Request(burst.inst.a, 2, due, burst.period, burst.count), Request(burst.inst.b, 1, due, burst.period, burst.count)]
    (index, values), tainted, count = chip.take(burst, requests)
    burst = burst.head(count)
    chip.slices.access(burst, due, writes=True)
    sound(chip, burst, tainted, due)
    slice_ = chip.slices[burst.queue.unit]
    rows, lanes, outside = _addressed(chip, burst, index)
    for point in range(count):  # in order of time: later vectors replace earlier ones
        inside = ~outside[point]
        slice_.data[rows[point][inside], lanes[inside]] = values[0][point][inside]
        slice_.written[rows[point][inside]] = True
    return count


def sound(chip: SpatialChip, burst: Burst, tainted: Taint, cycle: int) -> None:
    """Report a store of what was never initialised."""
    if tainted is not None:
        message = f"what was never initialised is stored in {burst.queue.unit}"
        chip.findings.add(Faults.UNINITIALISED, message, burst, cycle + int(np.argmax(tainted)) * burst.period)


def _rows(data: NDArray[np.uint8], burst: Burst, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The bytes of rows; a run of them at once."""
    if burst.step == 1 and (rows >= 0).all():
        return data[burst.address : burst.address + burst.count].copy()
    return np.where((rows >= 0)[:, None], data[rows], np.uint8(0))


def _addressed(
    chip: SpatialChip, burst: Burst, index: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Rows [count, lanes] that indices of two byte planes name, their lanes, and where they leave the bank, which is reported."""
    machine = chip.machine
    rows = burst.inst.address + (index[0].astype(np.int64) | index[1].astype(np.int64) << 8)
    end = (burst.inst.address // machine.rows + 1) * machine.rows
    outside = rows >= end
    if outside.any():
        point, lane = (int(i) for i in np.argwhere(outside)[0])
        message = f"index of lane {lane} leaves the bank by row {int(rows[point, lane])} in {burst.queue.unit}"
        chip.findings.add(Faults.ROW, message, burst, burst.time + point * burst.period)
    return np.where(outside, 0, rows), np.arange(machine.lanes), outside


def _either(tainted: Taint, more: NDArray[np.bool_]) -> Taint:
    both = more if tainted is None else tainted | more
    return both if both.any() else None
