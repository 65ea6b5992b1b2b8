"""Vectors whose last lanes are empty, sent without them: some vectors carry the others' lanes behind their own.

A product counts the lanes of an activation up to its depth, whatever lies behind them. Where K leaves the last lanes of each vector
of a chunk empty, the chunk's last vectors (riders) travel in pieces in the first ones' (carriers') empty lanes, and the chip that
gets them takes them apart: a permutation for each piece, and an OR of the pieces. Carriers stay as they came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilefw.api.integers import ceil_div
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import Machine
from tilefw_spatial.partition.combined import combined
from tilefw_spatial.partition.filling import moves
from tilefw_spatial.program import AxisMap, Transfer
from tilefw_spatial.stream_program import AccessPattern, Array, LaneStreamOp, StreamOp

PIECES = 5
"""The most pieces that a rider is cut into: as many permutations bring it together again."""

_CODES = {1: "int8", 2: "int16", 4: "int32"}


@dataclass(frozen=True, slots=True)
class Ride:
    """Piece `piece` of riders `rider` to `rider + count`, in gap `gap` of as many carriers from `carrier` on."""

    piece: int
    gap: int
    rider: int
    carrier: int
    count: int


@dataclass(frozen=True, slots=True)
class Packing:
    """`rows` vectors of which lanes from `used` on are empty; the first `carriers` of them carry the rest, whose lanes are cut into
    `pieces` of `width`."""

    rows: int
    used: int
    pieces: int
    width: int
    carriers: int

    @property
    def riders(self) -> int:
        """Vectors that are not sent themselves."""
        return self.rows - self.carriers

    def rides(self) -> Iterator[Ride]:
        """Where each piece travels: all riders' first pieces, then the second ones, …, carrier by carrier, gap by gap."""
        for piece in range(self.pieces):
            rider = 0
            while rider < self.riders:
                gap, carrier = divmod(piece * self.riders + rider, self.carriers)
                count = min(self.riders - rider, self.carriers - carrier)
                yield Ride(piece, gap, rider, carrier, count)
                rider += count

    def lanes(self, ride: Ride) -> tuple[int, int, int]:
        """The first lane of a ride's piece in the rider, that in the carrier, and how many there are."""
        own = ride.piece * self.width
        return own, self.used + ride.gap * self.width, min(self.width, self.used - own)


def packing(rows: int, used: int, lanes: int) -> Packing | None:
    """The way to send `rows` vectors of `used` of their lanes in the fewest vectors; None where none are saved."""
    found: list[Packing] = []
    for pieces in range(1, PIECES + 1):
        width = ceil_div(used, pieces)
        gaps = (lanes - used) // width
        carriers = -(-rows * pieces // (gaps + pieces))
        if carriers < rows:
            found.append(Packing(rows, used, pieces, width, carriers))
    return min(found, key=lambda one: (one.carriers, one.pieces), default=None)


def carried(packed: Packing, transfer: Transfer) -> Iterator[Transfer]:
    """What the host puts into the gaps of the carriers, where `transfer` fills the vectors: an axis along lanes, then rows."""
    along, rows = transfer.axes
    for ride in packed.rides():
        own, other, width = packed.lanes(ride)
        lanes = _moved(along, own, other, width)
        time = _moved(rows, packed.carriers + ride.rider, ride.carrier, ride.count)
        ride_along = replace(transfer, axes=(lanes, time))
        if moves(ride_along):
            yield ride_along


def _moved(axis: AxisMap, begin: int, at: int, count: int) -> AxisMap:
    """Indices `begin` to `begin + count` of an axis as indices from `at` on; of those before nothing is transferred."""
    offsets, valid = np.zeros(at + count, np.int64), np.zeros(at + count, np.bool_)
    there = min(count, axis.extent - begin)
    if there > 0:
        offsets[at : at + there] = axis.offsets[begin : begin + there]
        valid[at : at + there] = True if axis.valid is None else axis.valid[begin : begin + there]
    return AxisMap(at + count, offsets, axis.vector, axis.lane, valid)


def taken_apart(packed: Packing, array: Array, machine: Machine) -> tuple[list[StreamOp], list[Array]]:
    """The stream operations that make the riders of an array whose carriers have arrived, and the arrays that they need for
    that."""
    pieces = [Array(f"{array.name}piece{number}", array.dtype, packed.riders, "temp") for number in range(packed.pieces)]
    stream_ops: list[StreamOp] = [
        LaneStreamOp(
            (ride.count,), "PRM", array.dtype, AccessPattern(array, ride.carrier, (1,)), AccessPattern(
                pieces[ride.piece], ride.rider, (1,)
            ),
            _map(machine.lanes, *packed.lanes(ride)),
        )
        for ride in packed.rides()
    ]
    code = _CODES[TYPES[array.dtype].nbytes]
    return [*stream_ops, combined("LOGIC.or", code, pieces, AccessPattern(array, packed.carriers, (1,)), machine)], pieces


def _map(lanes: int, own: int, other: int, width: int) -> tuple[int, ...]:
    """Lanes from `other` on come to those from `own` on; all others are zero."""
    return tuple(other + lane - own if own <= lane < own + width else -1 for lane in range(lanes))
