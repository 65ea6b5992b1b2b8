"""Between the host's bytes and vectors in slices: every transfer's elements, moved as strided copies where they are strided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tilefw.api import CodeError, LaunchError
from tilefw_spatial.isa import TYPES
from tilefw_spatial.program import HostTensor, RowAllocation, Transfer
from tilefw_spatial.simulate.chip import SpatialChip
from tilefw_spatial.simulate.findings import Faults, Findings

Words = NDArray[Any]  # elements as unsigned integers of their width
# Elements whose indices are worked out at once, where copies are not strided.
_CHUNK = 1 << 20
# Runs shorter than this on average are moved by their elements' indices.
_SHORT = 8


@dataclass(slots=True)
class HostBuffer:
    """The storage that a pointer argument points into, at byte `offset`; `poison` has a byte for each that was never written."""

    name: str
    data: NDArray[np.uint8]
    offset: int
    poison: NDArray[np.uint8] | None = None

    def words(self, nbytes: int) -> tuple[Words, int]:
        """All elements of the storage at multiples of their width from the pointer, and the pointer's index among them."""
        return _as_words(self.data, self.offset, nbytes), self.offset // nbytes

    def poisoned(self, nbytes: int) -> Words | None:
        """For each of those elements, whether any bit of it was never written: not zero."""
        return None if self.poison is None else _as_words(self.poison, self.offset, nbytes)


def _as_words(data: NDArray[np.uint8], offset: int, nbytes: int) -> Words:
    start = offset % nbytes
    count = max(0, len(data) - start) // nbytes
    return data[start : start + count * nbytes].view(f"u{nbytes}")


@dataclass(slots=True)
class _Axis:
    """One axis of a transfer's elements: what each index adds to the host's element and to the word of the vectors."""

    host: NDArray[np.int64]
    word: NDArray[np.int64]

    def sliced(self, part: slice) -> _Axis:
        return _Axis(self.host[part], self.word[part])


def fill(tensor: HostTensor, buffers: Sequence[HostBuffer | None], chips: Sequence[SpatialChip], findings: Findings) -> None:
    """Put an `in` or `const` array into its slices."""
    allocation = tensor.allocation
    nbytes = TYPES[allocation.dtype].nbytes
    lanes = chips[0].machine.lanes
    if tensor.data is not None:
        vectors = np.ascontiguousarray(tensor.data).view(f"u{nbytes}").reshape(allocation.vectors, lanes)
        place(allocation, vectors, None, chips)
        return
    vectors = np.full((allocation.vectors, lanes), tensor.transfers[0].fill if tensor.transfers else 0, f"u{nbytes}")
    poison: Words | None = None
    for transfer in tensor.transfers:
        buffer = _buffer(tensor, transfer, buffers)
        words, origin = buffer.words(nbytes)
        _move(transfer, words, origin, vectors, buffer.name, findings, to_host=False)
        doubtful = buffer.poisoned(nbytes)
        if doubtful is not None and doubtful.any():
            poison = np.zeros_like(vectors) if poison is None else poison
            _move(transfer, doubtful, origin, poison, buffer.name, None, to_host=False)
    place(allocation, vectors, None if poison is None else np.logical_or.reduce(poison != 0, axis=1), chips)


def collect(tensor: HostTensor, buffers: Sequence[HostBuffer | None], chips: Sequence[SpatialChip], findings: Findings) -> None:
    """Bring an `out` array to the host."""
    nbytes = TYPES[tensor.allocation.dtype].nbytes
    vectors, written = gathered(tensor.allocation, chips)
    for transfer in tensor.transfers:
        buffer = _buffer(tensor, transfer, buffers)
        words, origin = buffer.words(nbytes)
        _report_unwritten(tensor, transfer, written, vectors.shape[1], findings)
        _move(transfer, words, origin, vectors, buffer.name, findings, to_host=True)
        poison = buffer.poisoned(nbytes)
        if poison is not None:
            _move(transfer, poison, origin, np.zeros_like(vectors), buffer.name, None, to_host=True)


def place(allocation: RowAllocation, vectors: Words, poisoned: NDArray[np.bool_] | None, chips: Sequence[SpatialChip]) -> None:
    """Vectors into the rows of their allocation; those that are poisoned are as if nobody had written them."""
    for rows, plane, index in _allocations(allocation):
        count = len(range(*index.indices(allocation.vectors)))
        slice_ = chips[rows.chip].slices[rows.slice]
        begin = rows.bank * chips[rows.chip].machine.rows + rows.row
        slice_.data[begin : begin + count] = vectors[index].view(np.uint8).reshape(count, vectors.shape[1], -1)[:, :, plane]
        slice_.written[begin : begin + count] = True if poisoned is None else ~poisoned[index]


def gathered(allocation: RowAllocation, chips: Sequence[SpatialChip]) -> tuple[Words, NDArray[np.bool_]]:
    """The vectors of an allocation, and whether all bytes of each were ever written."""
    nbytes, lanes = TYPES[allocation.dtype].nbytes, chips[0].machine.lanes
    raw = np.empty((allocation.vectors, lanes, nbytes), np.uint8)
    written = np.ones(allocation.vectors, bool)
    for rows, plane, index in _allocations(allocation):
        count = len(range(*index.indices(allocation.vectors)))
        slice_ = chips[rows.chip].slices[rows.slice]
        begin = rows.bank * chips[rows.chip].machine.rows + rows.row
        raw[index, :, plane] = slice_.data[begin : begin + count]
        written[index] &= slice_.written[begin : begin + count]
    return raw.view(f"u{nbytes}")[..., 0], written


def _allocations(allocation: RowAllocation) -> Iterator[tuple[Any, int, slice]]:
    """Every run of rows of an allocation with its byte plane and the vectors that lie there."""
    segments = range(0, allocation.vectors, allocation.segment)
    for plane, (s, group) in product(range(len(allocation.planes)), product(range(len(segments)), range(allocation.groups))):
        start = segments[s] + group
        end = min(segments[s] + allocation.segment, allocation.vectors)
        if start < end:
            yield allocation.planes[plane][s * allocation.groups + group], plane, slice(start, end, allocation.groups)


def _buffer(tensor: HostTensor, transfer: Transfer, buffers: Sequence[HostBuffer | None]) -> HostBuffer:
    buffer = buffers[transfer.parameter]
    if buffer is None:
        message = f"{tensor.name} lies in the buffer of parameter {transfer.parameter}, which is a null pointer"
        raise LaunchError(message, code="TFW0838")
    return buffer


def _report_unwritten(tensor: HostTensor, transfer: Transfer, written: NDArray[np.bool_], lanes: int, findings: Findings) -> None:
    if written.all():
        return
    accessed = np.zeros(len(written), bool)
    for part in _parts(_axes(transfer, lanes)):
        accessed[(_sum(part, "word") // lanes).ravel()] = True
    missing = np.flatnonzero(accessed & ~written)
    if len(missing):
        message = f"vector {int(missing[0])} of {tensor.name} goes to the host and was never written ({len(missing)} such)"
        findings.add(Faults.UNINITIALISED, message, None)


def _move(
    transfer: Transfer, host: Words, origin: int, vectors: Words, name: str, findings: Findings | None, *, to_host: bool
) -> None:
    """Copy a transfer's elements between the host's words (element 0 at `origin`) and vectors."""
    lanes = vectors.shape[1]
    flat = vectors.reshape(-1)
    if transfer.explicit is not None:
        table = transfer.explicit.astype(np.int64)
        if len(table):
            words = table[:, 1] * lanes + table[:, 2]
            _check_words(int(words.min()), int(words.max()), len(flat))
        _by_index(host, table[:, 0] + origin, flat, table[:, 1] * lanes + table[:, 2], name, findings, to_host)
        return
    axes = _axes(transfer, lanes)
    if any(not len(axis.host) for axis in axes):
        return
    start = transfer.base + origin
    _check_words(*_extent(axes, "word"), len(flat))
    low, high = _extent(axes, "host")
    inside = start + low >= 0 and start + high < len(host)
    for run in _runs(axes[-1]):
        steps = _steps([*axes[:-1], run])
        if inside and steps is not None:
            _strided(host, start, flat, [*axes[:-1], run], steps, to_host)
            continue
        for part in _parts([*axes[:-1], run]):
            _by_index(host, (start + _sum(part, "host")).ravel(), flat, _sum(part, "word").ravel(), name, findings, to_host)


def _extent(axes: Sequence[_Axis], side: str) -> tuple[int, int]:
    """The least and the greatest sum of the axes' indices."""
    return sum(int(getattr(a, side).min()) for a in axes), sum(int(getattr(a, side).max()) for a in axes)


def _check_words(low: int, high: int, count: int) -> None:
    if low < 0 or high >= count:
        raise CodeError("a transfer has elements outside of its tensor's vectors", code="TFW0736")


def _axes(transfer: Transfer, lanes: int) -> list[_Axis]:
    """The transfer's axes with only what is valid, those along lanes made into one, last."""
    outer: list[_Axis] = []
    host, vector, position = (np.zeros(1, np.int64) for _ in range(3))
    for axis in transfer.axes:
        index = np.arange(axis.extent) if axis.valid is None else np.flatnonzero(axis.valid)
        offsets = np.asarray(axis.offsets, np.int64)[index]
        if axis.lane == 0:
            outer.append(_Axis(offsets, index * axis.vector * lanes))
            continue
        host = (host[:, None] + offsets).ravel()
        vector = (vector[:, None] + index * axis.vector).ravel()
        position = (position[:, None] + index * axis.lane).ravel()
    vector = vector + position // transfer.lanes * transfer.chunk
    return [*outer, _Axis(host, vector * lanes + position % transfer.lanes)]


def _runs(axis: _Axis) -> Iterator[_Axis]:
    """Parts of an axis along which both sides advance evenly; the whole where they would be too short."""
    count = len(axis.host)
    if count > 2:
        breaks = np.flatnonzero((np.diff(axis.host, 2) != 0) | (np.diff(axis.word, 2) != 0)) + 2
        # A jump between two even runs changes the step twice: the element after it begins the next run.
        starts = [0, *(int(t) for i, t in enumerate(breaks) if i == 0 or t != breaks[i - 1] + 1)]
        if len(starts) * _SHORT <= count:
            for begin, end in zip(starts, [*starts[1:], count], strict=True):
                yield axis.sliced(slice(begin, end))
            return
    yield axis


def _steps(axes: Sequence[_Axis]) -> list[tuple[int, int]] | None:
    """What each axis adds to host and word from index to index; None where one is not even."""
    found: list[tuple[int, int]] = []
    for axis in axes:
        if len(axis.host) == 1:
            found.append((0, 0))
            continue
        host, word = np.diff(axis.host), np.diff(axis.word)
        if (host != host[0]).any() or (word != word[0]).any():
            return None
        found.append((int(host[0]), int(word[0])))
    return found


def _strided(
    host: Words, start: int, flat: Words, axes: Sequence[_Axis], steps: list[tuple[int, int]], to_host: bool
) -> None:
    size = host.itemsize
    shape = [len(axis.host) for axis in axes]
    first_host, first_word = start + sum(int(a.host[0]) for a in axes), sum(int(a.word[0]) for a in axes)
    theirs = as_strided(host[first_host:], shape, [h * size for h, _ in steps])
    ours = as_strided(flat[first_word:], shape, [w * size for _, w in steps])
    if to_host:
        theirs[...] = ours
    else:
        ours[...] = theirs


def _parts(axes: Sequence[_Axis]) -> Iterator[list[_Axis]]:
    """The axes in parts of a size whose indices memory can hold: the first axis is cut."""
    rest = int(np.prod([len(axis.host) for axis in axes[1:]]))
    step = max(1, _CHUNK // max(1, rest))
    for begin in range(0, len(axes[0].host), step):
        yield [axes[0].sliced(slice(begin, begin + step)), *axes[1:]]


def _sum(axes: Sequence[_Axis], side: str) -> NDArray[np.int64]:
    total = np.zeros((), np.int64)
    for axis in axes:
        total = total[..., None] + getattr(axis, side)
    return total


def _by_index(
    host: Words, elements: NDArray[np.int64], flat: Words, words: NDArray[np.int64], name: str, findings: Findings | None,
    to_host: bool,
) -> None:
    outside = (elements < 0) | (elements >= len(host))
    if outside.any():
        what = "store to" if to_host else "load from"
        first, count = int(elements[outside][0]), int(outside.sum())
        message = f"out-of-bounds {what} {name}: element {first} of a storage of {len(host)} ({count} such)"
        if findings is not None:
            findings.add(Faults.HOST, message, None)
        elements, words = elements[~outside], words[~outside]
    if to_host:
        host[elements] = flat[words]
    else:
        flat[words] = host[elements]
