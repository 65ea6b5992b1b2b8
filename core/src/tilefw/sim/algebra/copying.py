"""Asynchronous copies of the lane algebra: started, committed to groups, waited for; see `Algebra` for their meaning."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tilefw.sim.algebra.memory import MemoryLanes
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access
from tilefw.sim.memory.copies import Copy
from tilefw.sim.memory.regions import ELEMENTS, gather, gather_poison
from tilefw.sim.tracking.events import settled_by
from tilefw.sim.tracking.queues import Kind


class CopyingLanes(MemoryLanes):
    """Starts copies, and shows checks what they read, what they will write and what has landed."""

    def copy_async(
        self, destination_space: str, destination: Array, source_space: str, source: Array, size: int,
        source_size: Array | None = None,
    ) -> None:
        shape = self.frame.shape
        mask = self.acting_lanes()
        if not mask.any():
            return
        threads = self.batch.copies.threads(self.frame, self.mask)
        data, poison = self._read_source(source_space, source, size, source_size, mask)
        filled = np.zeros(shape, dtype=np.bool_) if source_size is None else np.broadcast_to(source_size == 0, shape)
        filled = filled[mask]
        kind, group = self._copy_group(threads)
        for piece in self.pieces(destination_space, destination, size, "write", mask):
            assert piece.lanes is not None
            chosen = piece.lanes[mask]
            copy = Copy(
                self.instruction, piece.region, piece.index, threads[chosen], group[chosen], data[chosen],
                None if poison is None else poison[chosen], filled[chosen], kind,
            )
            for observe in self.observers.copy_started:
                observe(self, copy)
            self.batch.copies.start(copy)
        self.counters.access(source_space, "copy", size, int(mask.sum()))

    def _copy_group(self, threads: Array) -> tuple[Kind | None, Array]:
        """What finishes the copies that the running instruction starts for these threads: an event of its own, or a group."""
        kind = settled_by(self.instruction)
        if kind is None:
            return None, self.batch.copies.group(threads)
        _, waves, width = self.batch.frame.shape
        number = self.batch.events.number(self.frame, kind, self.instruction)
        return kind, number[threads // (waves * width), threads // width % waves]

    def _read_source(
        self, space: str, source: Array, size: int, source_size: Array | None, mask: Array
    ) -> tuple[Array, Array | None]:
        """Data (and poison) of every acting lane, zero beyond what is asked for."""
        shape = self.frame.shape
        amount = np.broadcast_to(np.uint32(size) if source_size is None else np.minimum(source_size, np.uint32(size)), shape)
        raw = np.zeros(shape, dtype=ELEMENTS[size])
        poison = None
        whole = mask & (amount == size)
        pieces = self.pieces(space, source, size, "read", whole) if whole.any() else []
        for observe in self.observers.copy_read if pieces else ():
            observe(self, Access(space, pieces, size, "read"))
        for piece in pieces:
            raw[piece.lanes] = gather(piece.region, piece.index, size)
            if piece.region.poison is not None and self.observers.follows_undefined:
                poison = np.zeros(shape, dtype=ELEMENTS[size]) if poison is None else poison
                poison[piece.lanes] = gather_poison(piece.region, piece.index, size)
        raw_bytes = raw[..., None].view(np.uint8)
        ragged = mask & (amount != size) & (amount != 0)
        for offset in range(size) if ragged.any() else []:
            part = ragged & (amount > offset)
            if part.any():
                for piece in self.pieces(space, source.astype(np.uint64) + np.uint64(offset), 1, "read", part):
                    raw_bytes[..., offset][piece.lanes] = gather(piece.region, piece.index, 1)
        return raw[mask], None if poison is None else poison[mask]

    def commit_group(self) -> None:
        copies = self.batch.copies
        copies.commit(copies.threads(self.frame, self.mask))

    def wait_group(self, pending: int) -> None:
        copies = self.batch.copies
        everyone = self.mask is None and self.frame is self.batch.frame
        threads = None if everyone else copies.threads(self.frame, self.mask)
        self._landed(copies.wait(threads, pending, self.launch.schedule.random))

    def wait_all(self) -> None:
        self.wait_group(-1)

    def land(self, kind: Kind, done: Array) -> None:
        """So many events of a kind are finished, of each wave of the batch [workgroups, waves]."""
        self._landed(self.batch.copies.land(kind, done, self.launch.schedule.random))

    def _landed(self, copies: Iterable[Copy]) -> None:
        for copy in copies:
            for observe in self.observers.copy_landed:
                observe(self, copy)

    def leave_copies(self) -> None:
        """The batch has ended: what is still in flight never lands."""
        for copy, committed in self.batch.copies.leave():
            for observe in self.observers.copy_left:
                observe(self, copy, committed)
