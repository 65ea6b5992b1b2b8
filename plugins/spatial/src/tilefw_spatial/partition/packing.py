"""Packed lanes: vectors whose last lanes are empty are sent in fewer vectors, which hold the lanes of the others behind their own.

A product counts the lanes of an activation up to its depth, whatever lies behind them. Where K leaves the last lanes of each vector
of a chunk empty, the chunk's last vectors are not sent themselves: parts of them are packed into the empty lanes of the first ones.
The receiving chip unpacks them: a permutation for each part, and an OR of the parts. The sent vectors stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilefw.api.integers import ceil_div
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.exchange import combination
from tilefw_spatial.partition.filling import moves
from tilefw_spatial.program import AxisMap, Transfer
from tilefw_spatial.stream_program import AccessPattern, Array, LaneStreamOp, StreamOp

PARTS = 5
"""The most parts of a packed vector: unpacking it takes as many permutations."""

_CODES = {1: "int8", 2: "int16", 4: "int32"}


@dataclass(frozen=True, slots=True)
class LaneMove:
    """Part `part` of packed vectors `source` to `source + count`, in gap `gap` of as many sent vectors from `target` on."""

    part: int
    gap: int
    source: int
    target: int
    count: int


@dataclass(frozen=True, slots=True)
class Packing:
    """`rows` vectors of which lanes from `used` on are empty; the first `sent` of them are sent, with the lanes of the rest in
    `parts` of `width` packed into them."""

    rows: int
    used: int
    parts: int
    width: int
    sent: int

    @property
    def unsent(self) -> int:
        """Vectors that are packed into others."""
        return self.rows - self.sent

    def lane_moves(self) -> Iterator[LaneMove]:
        """Where each part goes: the first parts of all packed vectors, then the second ones, …, vector by vector, gap by gap."""
        for part in range(self.parts):
            source = 0
            while source < self.unsent:
                gap, target = divmod(part * self.unsent + source, self.sent)
                count = min(self.unsent - source, self.sent - target)
                yield LaneMove(part, gap, source, target, count)
                source += count

    def lanes(self, move: LaneMove) -> tuple[int, int, int]:
        """The first lane of a part in the packed vector, that in the sent one, and how many there are."""
        own = move.part * self.width
        return own, self.used + move.gap * self.width, min(self.width, self.used - own)


def packing(rows: int, used: int, lanes: int) -> Packing | None:
    """The packing that sends `rows` vectors of `used` lanes each in the fewest vectors; None where none are saved."""
    found: list[Packing] = []
    for parts in range(1, PARTS + 1):
        width = ceil_div(used, parts)
        gaps = (lanes - used) // width
        sent = ceil_div(rows * parts, gaps + parts)
        if sent < rows:
            found.append(Packing(rows, used, parts, width, sent))
    return min(found, key=lambda one: (one.sent, one.parts), default=None)


def packed_transfers(packed: Packing, transfer: Transfer) -> Iterator[Transfer]:
    """What the host puts into the gaps of the sent vectors, where `transfer` fills the vectors: an axis along lanes, then rows."""
    along, rows = transfer.axes
    for move in packed.lane_moves():
        own, other, width = packed.lanes(move)
        lanes = _moved(along, own, other, width)
        time = _moved(rows, packed.sent + move.source, move.target, move.count)
        added = replace(transfer, axes=(lanes, time))
        if moves(added):
            yield added


def _moved(axis: AxisMap, begin: int, at: int, count: int) -> AxisMap:
    """Indices `begin` to `begin + count` of an axis as indices from `at` on; of those before nothing is transferred."""
    offsets, valid = np.zeros(at + count, np.int64), np.zeros(at + count, np.bool_)
    there = min(count, axis.extent - begin)
    if there > 0:
        offsets[at : at + there] = axis.offsets[begin : begin + there]
        valid[at : at + there] = True if axis.valid is None else axis.valid[begin : begin + there]
    return AxisMap(at + count, offsets, axis.vector, axis.lane, valid)


def unpacked(packed: Packing, array: Array, machine: Machine) -> tuple[list[StreamOp], list[Array]]:
    """The stream operations that unpack an array whose sent vectors have arrived, and the arrays that they need for that."""
    parts = [Array(f"{array.name}lanes{number}", array.dtype, packed.unsent, "temp") for number in range(packed.parts)]
    stream_ops: list[StreamOp] = [
        LaneStreamOp(
            (move.count,), "PRM", array.dtype, AccessPattern(array, move.target, (1,)), AccessPattern(
                parts[move.part], move.source, (1,)
            ),
            _map(machine.lanes, *packed.lanes(move)),
        )
        for move in packed.lane_moves()
    ]
    code = _CODES[TYPES[array.dtype].nbytes]
    return [*stream_ops, combination("LOGIC.or", code, parts, AccessPattern(array, packed.sent, (1,)), machine)], parts


def _map(lanes: int, own: int, other: int, width: int) -> tuple[int, ...]:
    """Lanes from `other` on come to those from `own` on; all others are zero."""
    return tuple(other + lane - own if own <= lane < own + width else -1 for lane in range(lanes))
