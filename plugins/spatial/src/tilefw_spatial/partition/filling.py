"""What the host puts into the chunks of an array: transfers as tables of lanes and rows, of which any chunks can be taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.program import AxisMap, Transfer
from tilefw_spatial.stream_program import Array


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """A transfer of an array in chunks of as many vectors as `rows` has indices. Element (c, l, r) is `offsets[c, l]` and the row's
    own offset behind the base; `valid` has the lanes of each chunk that are filled."""

    transfer: Transfer
    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_]
    rows: AxisMap

    def part(self, numbers: Sequence[int]) -> Transfer:
        """Some chunks, one after the other in an array of their own: an axis along lanes, then one over rows."""
        chosen, width = list(numbers), self.transfer.lanes
        lanes = AxisMap(len(chosen) * width, self.offsets[chosen].reshape(-1), 0, 1, self.valid[chosen].reshape(-1))
        chunk = self.rows.extent if len(chosen) > 1 else 0
        return Transfer(self.transfer.parameter, self.transfer.base, (lanes, self.rows), width, chunk, None, self.transfer.fill)


def fillings(array: Array, lanes: int) -> tuple[Filling, ...] | None:
    """The transfers of an array of vectors of `lanes` lanes; None where chunks and rows do not add up to what they move."""
    if array.role != "in" or not array.transfers or not array.vectors or array.groups != 1 or array.segment:
        return None
    rows = max(transfer.chunk for transfer in array.transfers) or array.vectors
    if array.vectors % rows:
        return None
    found = [_filling(transfer, rows, array.vectors // rows, lanes) for transfer in array.transfers]
    return None if None in found else tuple(one for one in found if one is not None)


def parts(found: Sequence[Filling], numbers: Sequence[int]) -> tuple[Transfer, ...]:
    """What is put into some chunks; the first one's fill is what the other lanes hold."""
    first, *rest = (filling.part(numbers) for filling in found)
    return (first, *(transfer for transfer in rest if moves(transfer)))


def moves(transfer: Transfer) -> bool:
    """Whether anything is transferred."""
    return all(axis.valid is None or axis.valid.any() for axis in transfer.axes)


def _filling(transfer: Transfer, rows: int, chunks: int, lanes: int) -> Filling | None:
    if transfer.explicit is not None or transfer.lanes != lanes:
        return None
    along = [axis for axis in transfer.axes if _chooses_chunks(axis, rows)]
    time = [axis for axis in transfer.axes if not _chooses_chunks(axis, rows)]
    if any(axis.lane and axis.vector for axis in along) or sum((axis.extent - 1) * axis.vector for axis in time) >= rows:
        return None
    offsets, vector, position = _valid_cells(along)
    number = vector // rows + position // lanes
    if (number >= chunks).any() or (transfer.chunk != rows and (position >= lanes).any()):
        return None
    table, there = np.zeros((chunks, lanes), np.int64), np.zeros((chunks, lanes), np.bool_)
    table[number, position % lanes], there[number, position % lanes] = offsets, True
    return Filling(transfer, table, there, _one(time, rows))


def _chooses_chunks(axis: AxisMap, rows: int) -> bool:
    """Whether an axis goes along lanes or from chunk to chunk, and not from row to row."""
    return axis.lane > 0 or (axis.extent > 1 and axis.vector > 0 and axis.vector % rows == 0)


def _one(time: Sequence[AxisMap], rows: int) -> AxisMap:
    """All axes in time as one over all rows."""
    offsets, vector, _ = _valid_cells(time)
    table, there = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    table[vector], there[vector] = offsets, True
    return AxisMap(rows, table, 1, 0, None if there.all() else there)


def _valid_cells(axes: Sequence[AxisMap]) -> tuple[NDArray[np.int64], ...]:
    """Offset, vector and position of all that the product of the axes transfers."""
    shape = [axis.extent for axis in axes]
    index = np.indices(shape).reshape(len(shape), prod(shape))
    kept = index[:, np.logical_and.reduce([np.ones(prod(shape), np.bool_), *_valid(axes, index)])]
    none = np.zeros(kept.shape[1], np.int64)
    return (
        sum((axis.offsets[kept[n]] for n, axis in enumerate(axes)), none),
        sum((kept[n] * axis.vector for n, axis in enumerate(axes)), none),
        sum((kept[n] * axis.lane for n, axis in enumerate(axes)), none),
    )


def _valid(axes: Sequence[AxisMap], index: NDArray[np.int64]) -> Iterator[NDArray[np.bool_]]:
    return (axis.valid[index[n]] for n, axis in enumerate(axes) if axis.valid is not None)
