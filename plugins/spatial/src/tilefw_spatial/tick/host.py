"""The host's arrays into slices before the first cycle and back after the last, an element at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw.api import LaunchError
from tilefw_spatial.isa import TYPES
from tilefw_spatial.program import HostTensor, RowAllocation, Transfer
from tilefw_spatial.tick.findings import HOST, UNINITIALISED, TickFindings
from tilefw_spatial.tick.superlane import TickSlice


@dataclass(frozen=True, slots=True)
class TickArray:
    """The storage that a pointer points into, at byte `offset`."""

    name: str
    data: NDArray[np.uint8]
    offset: int = 0


def fill(tensor: HostTensor, arrays: Sequence[TickArray | None], slices: Sequence[Any], lanes: int, findings: TickFindings) -> None:
    """Put an `in` or `const` array into its rows."""
    allocation, nbytes = tensor.allocation, TYPES[tensor.allocation.dtype].nbytes
    image = np.zeros((allocation.vectors, lanes, nbytes), np.uint8)
    if tensor.data is not None:
        image[:] = np.ascontiguousarray(tensor.data).view(np.uint8).reshape(image.shape)
    elif tensor.transfers:
        image[:] = np.frombuffer(tensor.transfers[0].fill.to_bytes(nbytes, "little"), np.uint8)
    for transfer in tensor.transfers:
        for data, vector, lane in _elements(tensor, transfer, arrays, nbytes, findings):
            image[vector, lane] = data
    for vector, plane, slice_, row in _rows(allocation, slices):
        slice_.data[row] = image[vector, :, plane]
        slice_.written[row] = True


def collect(
    tensor: HostTensor, arrays: Sequence[TickArray | None], slices: Sequence[Any], lanes: int, findings: TickFindings
) -> None:
    """Bring an `out` array to the host."""
    allocation, nbytes = tensor.allocation, TYPES[tensor.allocation.dtype].nbytes
    image = np.zeros((allocation.vectors, lanes, nbytes), np.uint8)
    written = np.ones(allocation.vectors, bool)
    for vector, plane, slice_, row in _rows(allocation, slices):
        image[vector, :, plane] = slice_.data[row]
        written[vector] &= slice_.written[row].all()
    for transfer in tensor.transfers:
        for data, vector, lane in _elements(tensor, transfer, arrays, nbytes, findings):
            data[:] = image[vector, lane]
            if not written[vector]:
                findings.whole(UNINITIALISED, f"vector {vector} of {tensor.name} goes to the host and was never written")


def _rows(allocation: RowAllocation, slices: Sequence[Any]) -> Iterator[tuple[int, int, TickSlice, int]]:
    """Where each byte plane of each vector lies."""
    for vector in range(allocation.vectors):
        segment, rest = divmod(vector, allocation.segment)
        for plane, blocks in enumerate(allocation.planes):
            at = blocks[segment * allocation.groups + rest % allocation.groups]
            slice_: TickSlice = slices[at.chip][at.slice]
            yield vector, plane, slice_, at.bank * slice_.bank_rows + at.row + rest // allocation.groups


def _elements(
    tensor: HostTensor, transfer: Transfer, arrays: Sequence[TickArray | None], nbytes: int, findings: TickFindings
) -> Iterator[tuple[NDArray[np.uint8], int, int]]:
    """Every element of a transfer: its bytes at the host, its vector, its lane."""
    array = arrays[transfer.parameter]
    if array is None:
        message = f"{tensor.name} lies in the buffer of parameter {transfer.parameter}, which is a null pointer"
        raise LaunchError(message, code="TFW0838")
    for element, vector, lane in _indices(transfer):
        begin = array.offset + element * nbytes
        if begin < 0 or begin + nbytes > len(array.data):
            findings.whole(HOST, f"element {element} of {array.name} is outside of its storage")
        else:
            yield array.data[begin : begin + nbytes], vector, lane


def _indices(transfer: Transfer) -> Iterator[tuple[int, int, int]]:
    if transfer.explicit is not None:
        for element, vector, lane in transfer.explicit.tolist():
            yield element, vector, lane
        return
    for index in product(*(range(axis.extent) for axis in transfer.axes)):
        pairs = list(zip(transfer.axes, index, strict=True))
        if any(axis.valid is not None and not axis.valid[i] for axis, i in pairs):
            continue
        element = transfer.base + sum(int(axis.offsets[i]) for axis, i in pairs)
        position = sum(i * axis.lane for axis, i in pairs)
        vector = sum(i * axis.vector for axis, i in pairs) + position // transfer.lanes * transfer.chunk
        yield element, vector, position % transfer.lanes
