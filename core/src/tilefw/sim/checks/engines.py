"""Engines at work: nobody reads or writes what an engine is to write, nor writes what it is to read, before a wait covers it
(TFW0826); and no engine is at work when its workgroup ends (TFW0808).

Shared memory is looked up by pieces of what engines move. In memory that all workgroups share, bytes count, of the copies of the
workgroups that run at once; who writes equal bytes there writes nothing that anybody misses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.engine.batch import Batch
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece
from tilefw.sim.memory.engine_copies import GRANULE, EngineCopy
from tilefw.sim.memory.regions import Region, gather
from tilefw.sim.report import first_true
from tilefw.sim.tracking.copy_clashes import meets, rows_that_meet

CODE = "TFW0826"


class PendingEngines(Check):
    """Looks up what engines are still to read and to write."""

    name = "pending"

    def access_in_flight(self, lanes: NumpyLanes, access: Access) -> None:
        engines = lanes.batch.engines
        for piece in access.pieces:
            written = engines.being_written(piece.region)
            read = engines.being_read(piece.region) if access.kind != "read" else None
            for counts, reading in ((written, False), (read, True)):
                if counts is not None:
                    self._look(lanes, piece, access, counts, reading)
            if piece.region.base:
                self._look_in_memory_of_all(lanes, piece, access)

    def _look_in_memory_of_all(self, lanes: NumpyLanes, piece: Piece, access: Access) -> None:
        for copy, reading in _sides_in_flight(lanes.batch, piece.region, access.kind != "read"):
            if copy.reduction is not None and (access.strong or access.kind == "atomic"):
                continue
            index, values = piece.offsets(lanes.frame.shape), access.values
            if values is not None:
                values = np.broadcast_to(values, lanes.frame.shape)
                values = values.reshape(-1) if piece.lanes is None else values[piece.lanes]
            met = meets(copy, reading, piece.region, index, access.size, values)
            if met.any():
                self._tell(lanes, piece, access, met.reshape(lanes.frame.shape) if piece.lanes is None else met, reading)

    def engine_started(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        """One engine's copy onto what another is still to read or to write, or from what another is still to write. Reductions of
        one place may go on together."""
        engines = lanes.batch.engines
        self._start_in_memory_of_all(lanes, copy)
        for region, index, counts, reading in (
            (copy.source, copy.read_from, engines.being_written(copy.source), False),
            (copy.destination, copy.written, engines.being_read(copy.destination), True),
            (copy.destination, copy.written, engines.being_written(copy.destination) if copy.reduction is None else None, False),
        ):
            if counts is None or not len(index):
                continue
            hit = counts[index // GRANULE] != 0
            if hit.any():
                self._tell_of_copy(lanes, region, index, hit, reading)

    def _start_in_memory_of_all(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        if copy.source.base:
            for other, _ in _sides_in_flight(lanes.batch, copy.source, writes=False):
                hit = meets(other, False, copy.source, copy.read_from, copy.size, None)
                self._tell_of_copy(lanes, copy.source, copy.read_from, hit, False)
        if not copy.destination.base or not len(copy.written):
            return
        reduces = copy.reduction is not None
        for other, reading in _sides_in_flight(lanes.batch, copy.destination, writes=True):
            if reduces and other.reduction is not None:
                continue
            values = None if reduces or copy.filling else gather(copy.source, copy.read_from, copy.size)
            hit = meets(other, reading, copy.destination, copy.written, copy.size, values)
            self._tell_of_copy(lanes, copy.destination, copy.written, hit, reading)
        if not reduces and len(copy.thread) > 1:
            self._tell_of_copy(lanes, copy.destination, copy.written, rows_that_meet(copy), False)

    def _tell_of_copy(self, lanes: NumpyLanes, region: Region, index: Array, hit: Array, reading: bool) -> None:
        if hit.any():
            at = int(index[int(np.argmax(hit))])
            where = lanes.locate(*first_true(lanes.acting_lanes()))
            address = region.base + at % max(1, region.stride)
            self._report(lanes, at, address, int(hit.sum()), where, Piece(region, index, None), reading, "copy")

    def _look(self, lanes: NumpyLanes, piece: Piece, access: Access, counts: Array, reading: bool) -> None:
        first, last = piece.index // GRANULE, (piece.index + access.size - 1) // GRANULE
        hit = np.asarray((counts[first] != 0) | (counts[last] != 0))
        if hit.any():
            self._tell(lanes, piece, access, hit, reading)

    def _tell(self, lanes: NumpyLanes, piece: Piece, access: Access, hit: Array, reading: bool) -> None:
        """Of the accesses of a piece that meet a copy."""
        if piece.lanes is None:
            bad = np.broadcast_to(hit, lanes.frame.shape)
            at = int(np.broadcast_to(piece.index, lanes.frame.shape)[bad][0])
        else:
            bad = np.zeros(lanes.frame.shape, dtype=np.bool_)
            bad[piece.lanes] = hit
            at = int(piece.index[hit][0])
        verb = {"read": "load", "write": "store"}.get(access.kind, "atomic operation")
        self._report(
            lanes, at, piece.region.base + at % max(1, piece.region.stride), int(bad.sum()), lanes.locate(*first_true(bad)), piece,
            reading, verb,
        )

    def _report(
        self, lanes: NumpyLanes, at: int, address: int, count: int, where: tuple[tuple[int, int, int], int, int], piece: Piece,
        reading: bool, verb: str,
    ) -> None:
        origin = lanes.batch.engines.origin(piece.region, at, reading)
        what = "has still to read" if reading else "has not delivered yet"
        memory = "memory" if piece.region.base else "shared memory"
        lanes.launch.diagnostics.reporter.add(
            self.name, CODE, f"{verb} accesses {memory} that an engine's copy {what}", lanes.instruction, count=count,
            where=where, address=address, other_site=None if origin is None else origin.index,
            other=None if origin is None else f"copy started by `{origin.text}`" + (f" ({origin.code})" if origin.code else ""),
            note="a wait for the copy must be between the two: on its barrier, or for its group",
        )


def _sides_in_flight(batch: Batch, region: Region, writes: bool) -> Iterator[tuple[EngineCopy, bool]]:
    """Copies of a batch that are still to write a region, or where an access `writes` to read it, and whether they read it."""
    for copy in batch.engines.flying:
        if copy.destination is region:
            yield copy, False
        if writes and copy.source is region and copy.data is None:
            yield copy, True


class EnginesAtExit(Check):
    """Reports copies that nobody waited for, as far as they need the memory of the workgroup that has ended."""

    name = "leftovers"

    def engine_left(self, batch: Batch, copy: EngineCopy) -> None:
        shared = batch.memory.region("shared")
        reads = copy.source is shared and copy.data is None
        if not reads and copy.destination is not shared:
            return
        verb = "reads" if reads else "writes"
        why = "" if copy.barriers is not None or bool(batch.engines.committed(copy).any()) else "; it is in no group"
        self.launch.diagnostics.reporter.add(
            self.name, "TFW0808", f"an engine's copy that {verb} shared memory is at work when its workgroup ends{why}",
            copy.instruction, count=len(copy.thread), note="a wait on its barrier, or for its group, must come before the end",
        )
