"""Asynchronous copies of the lane algebra: started, committed to groups, waited for; see `Algebra` for their meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
        kind, group = self.copy_group(threads)
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

    def copy_group(self, threads: Array) -> tuple[Kind | None, Array]:
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
        raw = np.zeros(shape, dtype=ELEMENTS[size])
        poison = None
        for offset, unit, part in _parts_of_source(size, source_size, mask):
            pieces = self.pieces(space, source.astype(np.uint64) + np.uint64(offset) if offset else source, unit, "read", part)
            for observe in self.observers.copy_read:
                observe(self, Access(space, pieces, unit, "read"))
            for piece in pieces:
                _element(raw, unit, offset)[piece.lanes] = gather(piece.region, piece.index, unit)
                if piece.region.poison is not None and self.observers.follows_undefined:
                    poison = np.zeros(shape, dtype=ELEMENTS[size]) if poison is None else poison
                    _element(poison, unit, offset)[piece.lanes] = gather_poison(piece.region, piece.index, unit)
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


def _parts_of_source(size: int, source_size: Array | None, mask: Array) -> Iterator[tuple[int, int, Array]]:
    """What lanes of `mask` read of a source of `size` bytes, of which they ask for `source_size`: all of it at once, or so many
    bytes at once that all other amounts are multiples of them. (Offset, bytes, lanes)."""
    if source_size is None:
        yield 0, size, mask
        return
    amount = np.broadcast_to(np.minimum(source_size, np.uint32(size)), mask.shape)
    whole = mask & (amount == size)
    if whole.any():
        yield 0, size, whole
    ragged = mask & (amount != size) & (amount != 0)
    if not ragged.any():
        return
    amounts = int(np.bitwise_or.reduce(amount[ragged]))
    unit = amounts & -amounts
    for offset in range(0, size, unit):
        part = ragged & (amount > offset)
        if part.any():
            yield offset, unit, part


def _element(values: Array, unit: int, offset: int) -> Array:
    """Of each value the element of `unit` bytes that begins at an offset, as a view."""
    return values[..., None].view(ELEMENTS[unit])[..., offset // unit]
