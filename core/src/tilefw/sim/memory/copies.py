"""Asynchronous copies in flight: counted in groups per thread or by the events of their wave, landing only when a wait covers them.

A copy's source is read at its start (any moment until the wait is legal; a write to it meanwhile is a race); its destination
bytes are flagged until it lands. Copies that one wait covers land in an order that the seed permutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilefw.sim.checks import leftovers
from tilefw.sim.floats import Array
from tilefw.sim.memory.regions import ELEMENTS, Region, gather, gather_poison, scatter
from tilefw.sim.program import Instruction
from tilefw.sim.tracking.events import settled_by
from tilefw.sim.tracking.queues import Kind


@dataclass(slots=True)
class _Copy:
    """One instruction's copies, by element: thread, number of its group, destination offset, bytes and their poison. With `kind`
    they land with events of that kind, and `group` is the event's number."""

    instruction: Instruction
    destination: Region
    index: Array
    thread: Array
    group: Array
    data: Array
    poison: Array | None
    filled: Array
    kind: Kind | None = None


class Copies:
    """The copies of one batch. `outstanding` counts instructions with copies in flight."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._flying: list[_Copy] = []
        groups, waves, lanes = batch.frame.shape
        self._threads = np.arange(groups * waves * lanes).reshape(groups, waves, lanes)
        self._commits = np.zeros(groups * waves * lanes, dtype=np.int64)
        self._overlaps = False

    @property
    def outstanding(self) -> int:
        return len(self._flying)

    def _acting(self, lanes: Any) -> Array:
        """Flat numbers of the batch's threads that act now."""
        frame = lanes.frame
        threads = self._threads
        if frame is not self._batch.frame:
            threads = threads[frame.group[:, 0, 0], frame.wave[:, 0, 0]][:, None, :]
        return threads.reshape(-1) if lanes.mask is None else threads[np.broadcast_to(lanes.mask, frame.shape)]

    def issue(
        self, lanes: Any, destination_space: str, destination: Array, source_space: str, source: Array, size: int,
        source_size: Array | None,
    ) -> None:
        frame = lanes.frame
        mask = np.broadcast_to(np.True_ if lanes.mask is None else lanes.mask, frame.shape)
        if not mask.any():
            return
        thread = self._acting(lanes)
        wanted = self._read_source(lanes, source_space, source, size, source_size, mask)
        filled = np.zeros(frame.shape, dtype=np.bool_) if source_size is None else np.broadcast_to(source_size == 0, frame.shape)
        filled = filled[mask]
        pieces = lanes.pieces(destination_space, destination, size, "write", mask)
        data, poison = wanted
        kind, group = self._group(lanes, thread)
        for piece in pieces:
            chosen = piece.lanes[mask]
            copy = _Copy(
                lanes.instruction, piece.region, piece.index, thread[chosen], group[chosen], data[chosen],
                None if poison is None else poison[chosen], filled[chosen], kind,
            )
            self._launch(lanes, copy, size)
        launch = lanes.launch
        launch.counters.access(source_space, "copy", size, int(mask.sum()))

    def _group(self, lanes: Any, thread: Array) -> tuple[Kind | None, Array]:
        """What finishes the copies that the running instruction starts for these threads: an event of its own, or a group."""
        kind = settled_by(lanes.instruction)
        if kind is None:
            return None, self._commits[thread]
        _, waves, width = self._batch.frame.shape
        number = self._batch.events.number(lanes.frame, kind, lanes.instruction)
        return kind, number[thread // (waves * width), thread // width % waves]

    def _read_source(
        self, lanes: Any, space: str, source: Array, size: int, source_size: Array | None, mask: Array
    ) -> tuple[Array, Array | None]:
        """Data (and poison) of every acting lane, zero beyond what is asked for."""
        frame = lanes.frame
        amount = np.broadcast_to(np.uint32(size) if source_size is None else np.minimum(source_size, np.uint32(size)), frame.shape)
        raw = np.zeros(frame.shape, dtype=ELEMENTS[size])
        poison = None
        whole = mask & (amount == size)
        for part, width in [(whole, size)] if whole.any() else []:
            for piece in lanes.pieces(space, source, width, "read", part):
                self._watch_source(lanes, piece, width, space)
                raw[piece.lanes] = gather(piece.region, piece.index, width)
                if piece.region.poison is not None and lanes.launch.track_poison:
                    poison = np.zeros(frame.shape, dtype=ELEMENTS[size]) if poison is None else poison
                    poison[piece.lanes] = gather_poison(piece.region, piece.index, width)
        raw_bytes = raw[..., None].view(np.uint8)
        ragged = mask & (amount != size) & (amount != 0)
        for place in range(size) if ragged.any() else []:
            part = ragged & (amount > place)
            if part.any():
                for piece in lanes.pieces(space, source.astype(np.uint64) + np.uint64(place), 1, "read", part):
                    raw_bytes[..., place][piece.lanes] = gather(piece.region, piece.index, 1)
        return raw[mask], None if poison is None else poison[mask]

    def _watch_source(self, lanes: Any, piece: Any, size: int, space: str) -> None:
        if lanes.launch.races is not None and space in ("global", "shared", "generic"):
            lanes.launch.races.access(lanes, piece, size, "read", False, None)

    def _launch(self, lanes: Any, copy: _Copy, size: int) -> None:
        region = copy.destination
        if region.flags is None:
            region.flags = np.zeros(len(region.data), dtype=np.uint8)
        view = region.flags.view(ELEMENTS[size])
        place = copy.index >> (size.bit_length() - 1)
        if view[place].any():
            self._overlaps = True
        view[place] = np.frombuffer(b"\xff" * size, dtype=ELEMENTS[size])[0]
        if lanes.launch.races is not None:
            lanes.launch.races.start_copy(lanes, copy, size)
        self._flying.append(copy)

    def commit(self, lanes: Any) -> None:
        self._commits[self._acting(lanes)] += 1

    def wait(self, lanes: Any, pending: int) -> None:
        """Land the copies of the acting threads but the `pending` newest committed groups (-1: all, uncommitted too)."""
        if not self._flying:
            return
        everyone = lanes.mask is None and lanes.frame is self._batch.frame
        if everyone:
            limit = self._commits - pending
        else:
            # Nobody else's copies land: their limit is below every group.
            limit = np.full(len(self._commits), -1, dtype=np.int64)
            acting = self._acting(lanes)
            limit[acting] = self._commits[acting] - pending
        self._finish(lanes, lambda copy: (copy.group < limit[copy.thread]) & (copy.kind is None))

    def land(self, lanes: Any, kind: Kind, done: Array) -> None:
        """Events of a kind are finished, of each wave [workgroups, waves] so many: their copies land."""
        if not self._flying:
            return
        numbers = np.repeat(done.reshape(-1), self._batch.frame.shape[2])
        self._finish(lanes, lambda copy: (copy.group <= numbers[copy.thread]) & (copy.kind == kind))

    def _finish(self, lanes: Any, finished: Callable[[_Copy], Array]) -> None:
        """Land the elements that are finished, the copies in an order that the seed permutes."""
        landing, rest = [], []
        for copy in self._flying:
            done = finished(copy)
            if done.all():
                landing.append(copy)
            elif done.any():
                landing.append(_part(copy, done))
                rest.append(_part(copy, ~done))
            else:
                rest.append(copy)
        self._flying = rest
        random = lanes.launch.random
        for i in range(len(landing)) if random is None else random.permutation(len(landing)):
            self._land(lanes, landing[i])
        if self._overlaps:
            self._mark_again()

    def _land(self, lanes: Any, copy: _Copy) -> None:
        region, data = copy.destination, copy.data
        size = data.dtype.itemsize
        scatter(region.data, region.view(size), copy.index, data, size)
        if region.poison is not None:
            marks = np.zeros((1,), dtype=data.dtype) if copy.poison is None else copy.poison
            scatter(region.poison, region.poison_view(size), copy.index, marks, size)
        elif copy.poison is not None and copy.poison.view(np.uint8).any():
            region.poison = np.zeros(len(region.data), dtype=np.uint8)
            scatter(region.poison, region.poison_view(size), copy.index, copy.poison, size)
        assert region.flags is not None
        region.flags.view(ELEMENTS[size])[copy.index >> (size.bit_length() - 1)] = 0
        unread = self._batch.unread
        if unread is not None and unread.region is region:
            _, waves, width = self._batch.frame.shape
            unread.copied(lanes, copy.index, size, copy.instruction.index, copy.thread // width % waves, copy.filled)
        if lanes.launch.races is not None:
            lanes.launch.races.land_copy(lanes, copy, size)

    def _mark_again(self) -> None:
        for copy in self._flying:
            assert copy.destination.flags is not None
            size = copy.data.dtype.itemsize
            marks = copy.destination.flags.view(ELEMENTS[size])
            marks[copy.index >> (size.bit_length() - 1)] = np.frombuffer(b"\xff" * size, dtype=ELEMENTS[size])[0]
        self._overlaps = bool(self._flying)

    def origin(self, region: Region, offset: int) -> Instruction | None:
        """The instruction whose copy in flight covers a byte."""
        for copy in self._flying:
            if copy.destination is region and ((offset - copy.index) // copy.data.dtype.itemsize == 0).any():
                return copy.instruction
        return None

    def finish(self, lanes: Any) -> None:
        """The batch has ended: copies still in flight are leftovers."""
        for copy in self._flying:
            committed = copy.kind is not None or bool((copy.group < self._commits[copy.thread]).any())
            leftovers.report(lanes, copy.instruction, committed, len(copy.index))
        self._flying.clear()


def _part(copy: _Copy, chosen: Array) -> _Copy:
    return _Copy(
        copy.instruction, copy.destination, copy.index[chosen], copy.thread[chosen], copy.group[chosen],
        copy.data[chosen], None if copy.poison is None else copy.poison[chosen], copy.filled[chosen], copy.kind,
    )
