"""Copies between ranks that the host starts and a copy engine makes, without a kernel: from one rank's heap to another's.

A copy comes behind all launches of both ranks that were made before, and before those that are made after: it is one more thing in
the stream of each. An engine of the rank that has the source makes its copies one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.api.errors import LaunchError
from tilefw.distributed.symmetric_heap import SymmetricArray, SymmetricHeap
from tilefw.runtime.arguments.unwritten import mark_again, unwritten


@dataclass(frozen=True, slots=True)
class RankCopy:
    """A copy that was made: the ranks, where it reads and writes in their heaps, its bytes, and how many runs of the node came
    before it."""

    source: int
    destination: int
    read: int
    written: int
    nbytes: int
    runs_before: int

    def is_behind(self, earlier: RankCopy) -> bool:
        """Whether it uses bytes that an earlier one wrote, or writes those that it used."""
        return any(
            rank == other and begin < there + earlier.nbytes and there < begin + self.nbytes
            for rank, begin, other, there in (
                (self.source, self.read, earlier.destination, earlier.written),
                (self.destination, self.written, earlier.destination, earlier.written),
                (self.destination, self.written, earlier.source, earlier.read),
            )
        )


@dataclass(frozen=True, slots=True)
class _HeapPart:
    """A part of a rank's copy of a symmetric array, and at which byte of it the part begins."""

    array: SymmetricArray
    rank: int
    begin: int

    @property
    def offset(self) -> int:
        """Where the part begins in the heap."""
        return self.array.offset + self.begin


def copy(heap: SymmetricHeap, source: np.ndarray[Any, Any], destination: np.ndarray[Any, Any], runs_before: int) -> RankCopy:
    """Make one, of a contiguous part of a rank's array to one of another rank's. Raises LaunchError TFW0883, TFW0876."""
    whence, whither = _part(heap, source, "source"), _part(heap, destination, "destination")
    if (source.shape, source.dtype) != (destination.shape, destination.dtype):
        raise LaunchError(
            f"a copy is of one shape and type: {source.dtype}{list(source.shape)} to {destination.dtype}{list(destination.shape)}",
            code="TFW0883",
        )
    if whence.rank == whither.rank:
        raise LaunchError(f"source and destination are both rank {whence.rank}'s", code="TFW0883", help="copy by NumPy or a kernel")
    if whence.rank // heap.domain != whither.rank // heap.domain:
        raise LaunchError(f"rank {whence.rank} does not reach rank {whither.rank}", code="TFW0876")
    left = unwritten(_bytes(whence.array.arrays[whence.rank]))
    np.copyto(destination, source)
    if left is not None:  # what nobody has written stays so, wherever it is copied to
        raw = _bytes(whither.array.arrays[whither.rank])
        marked = np.zeros(raw.size, np.bool_)
        marked[whither.begin : whither.begin + source.nbytes] = left[whence.begin : whence.begin + source.nbytes]
        mark_again(raw, marked)
    return RankCopy(whence.rank, whither.rank, whence.offset, whither.offset, source.nbytes, runs_before)


def _part(heap: SymmetricHeap, given: Any, role: str) -> _HeapPart:
    if isinstance(given, np.ndarray) and given.flags.c_contiguous:
        start = given.ctypes.data
        for array in heap.arrays:
            for rank, own in enumerate(array.arrays):
                begin = start - own.ctypes.data
                if begin >= 0 and begin + given.nbytes <= own.nbytes:
                    return _HeapPart(array, rank, begin)
    raise LaunchError(
        f"the {role} of a copy is no contiguous part of a rank's copy of a symmetric array", code="TFW0883",
        help="give `x[rank]`, or a slice along its first axis",
    )


def _bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.reshape(-1).view(np.uint8)
