"""Which arrays can be divided by chunks of their lanes: operands of products, whose vectors of one part of K follow one another.

No sweep then reads two chunks in one walk, so that each can lie in an array of its own and be another chip's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tilefw_spatial.arrange.matrix import DEPTHS
from tilefw_spatial.partition.packing import LANES
from tilefw_spatial.program import AxisMap, Transfer
from tilefw_spatial.schedule.lifetimes import arrays_of
from tilefw_spatial.schedule.runs import runs
from tilefw_spatial.sweep import Array, MatrixSweep, Product, Work


@dataclass(frozen=True, slots=True)
class Chunks:
    """An array as `used` says: a number for each chunk of `rows` vectors, the lanes of it that products count."""

    rows: int
    used: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Activations:
    """What one chip's products take as activations; arrays of `others`, by identity, are read by something else as well."""

    products: dict[int, list[tuple[MatrixSweep, Product]]]
    others: set[int]

    @staticmethod
    def of(work: Work) -> Activations:
        """Those of all of a chip's sweeps."""
        found = Activations({}, set())
        for sweep in work.sweeps:
            if isinstance(sweep, MatrixSweep):
                for product in sweep.products:
                    found.products.setdefault(id(product.activations.array), []).append((sweep, product))
                    found.others.add(id(product.weights))
            else:
                found.others.update(id(array) for array in arrays_of(sweep))
        return found

    def chunks(self, array: Array) -> Chunks | None:
        """How an array's chunks are used; None where it cannot be divided by them."""
        rows = _rows(array)
        if rows is None or id(array) in self.others or id(array) not in self.products:
            return None
        used = [0] * (array.vectors // rows)
        for sweep, product in self.products[id(array)]:
            bounds = [run.bounds() for run in runs((sweep.rows,), product.activations)]
            chunk = min(low for low, _ in bounds) // rows
            if max(high for _, high in bounds) // rows != chunk:
                return None
            used[chunk] = max(used[chunk], product.half * DEPTHS[sweep.dtype] + product.depth)
        return Chunks(rows, tuple(used))


def _rows(array: Array) -> int | None:
    """Vectors of a chunk, where the host fills the array by one axis along lanes and others in time."""
    if array.role != "in" or array.groups != 1 or array.segment or len(array.transfers) != 1:
        return None
    transfer = array.transfers[0]
    along = [axis for axis in transfer.axes if axis.lane]
    time = [axis for axis in transfer.axes if not axis.lane]
    rows = transfer.chunk or array.vectors
    if transfer.explicit is not None or [(axis.vector, axis.lane) for axis in along] != [(0, 1)] or array.vectors % rows:
        return None
    return rows if transfer.lanes == LANES and sum((axis.extent - 1) * axis.vector for axis in time) < rows else None


def part_of_transfer(transfer: Transfer, rows: int, numbers: Sequence[int]) -> Transfer:
    """The transfer of some chunks, one after the other in an array of their own: positions along lanes, then rows."""
    along = next(axis for axis in transfer.axes if axis.lane)
    lanes = [_cut(along, number * LANES, (number + 1) * LANES) for number in numbers]
    offsets = np.concatenate([offsets for offsets, _ in lanes])
    valid = np.concatenate([valid for _, valid in lanes])
    both = (AxisMap(len(offsets), offsets, 0, 1, valid), _in_time(transfer, rows))
    return replace(transfer, axes=both, chunk=rows if len(numbers) > 1 else 0)


def _cut(axis: AxisMap, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and what is valid of indices `begin` to `end`; what is beyond the axis' extent is not."""
    count = max(0, min(axis.extent, end) - begin)
    offsets, valid = np.zeros(end - begin, np.int64), np.zeros(end - begin, np.bool_)
    offsets[:count] = axis.offsets[begin : begin + count]
    valid[:count] = True if axis.valid is None else axis.valid[begin : begin + count]
    return offsets, valid


def _in_time(transfer: Transfer, rows: int) -> AxisMap:
    """All axes in time as one."""
    time = [axis for axis in transfer.axes if not axis.lane]
    offsets, valid = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    shape = [axis.extent for axis in time]
    index = np.indices(shape).reshape(len(shape), prod(shape))
    vector = sum((index[n] * axis.vector for n, axis in enumerate(time)), np.zeros(prod(shape), np.int64))
    offsets[vector] = sum((axis.offsets[index[n]] for n, axis in enumerate(time)), np.zeros(prod(shape), np.int64))
    valid[vector] = np.logical_and.reduce([np.ones(prod(shape), np.bool_), *_valid(time, index)])
    return AxisMap(rows, offsets, 1, 0, valid)


def _valid(time: Sequence[AxisMap], index: np.ndarray) -> Iterator[np.ndarray]:
    return (axis.valid[index[n]] for n, axis in enumerate(time) if axis.valid is not None)
