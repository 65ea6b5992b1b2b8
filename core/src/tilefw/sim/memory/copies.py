"""Asynchronous copies in flight: counted in groups per thread or by the events of their wave, landing only when a wait covers them.

A copy's source is read at its start (any moment until the wait is legal; a write to it meanwhile is a race); its destination
bytes are flagged until it lands. Copies that one wait covers land in an order that the seed permutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.memory.landing_order import Random, landed
from tilefw.sim.memory.regions import ELEMENTS, Region, scatter
from tilefw.sim.program import Instruction
from tilefw.sim.tracking.queues import Kind


@dataclass(slots=True)
class Copy:
    """One instruction's copies, by element.

    Each element has the number of its thread in the batch, the number of its group, its byte offset in `destination`, its bytes and
    their undefined bits; `filled` marks those that are zeros from beyond the source. With `kind` they land with events of that
    kind, and `group` is the event's number.
    """

    instruction: Instruction
    destination: Region
    index: Array
    thread: Array
    group: Array
    data: Array
    poison: Array | None
    filled: Array
    kind: Kind | None = None

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.data.dtype.itemsize

    def part(self, chosen: Array) -> Copy:
        """Only the chosen elements."""
        return Copy(
            self.instruction, self.destination, self.index[chosen], self.thread[chosen], self.group[chosen], self.data[chosen],
            None if self.poison is None else self.poison[chosen], self.filled[chosen], self.kind,
        )


class Copies:
    """The copies of one batch. `outstanding` counts instructions with copies in flight."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._flying: list[Copy] = []
        groups, waves, lanes = frame.shape
        self._threads = np.arange(groups * waves * lanes).reshape(groups, waves, lanes)
        self._commits = np.zeros(groups * waves * lanes, dtype=np.int64)
        self._overlaps = False

    @property
    def outstanding(self) -> int:
        return len(self._flying)

    def threads(self, frame: Frame, mask: Array | None) -> Array:
        """Flat numbers of the batch's threads that act in a frame under a mask."""
        threads = self._threads
        if frame is not self._frame:
            threads = threads[frame.group[:, 0, 0], frame.wave[:, 0, 0]][:, None, :]
        return threads.reshape(-1) if mask is None else threads[np.broadcast_to(mask, frame.shape)]

    def group(self, threads: Array) -> Array:
        """The number of the group that each thread fills now."""
        return self._commits[threads]

    def start(self, copy: Copy) -> None:
        """A copy may write its destination from now on."""
        flags = copy.destination.flags
        if flags is None:
            flags = copy.destination.flags = np.zeros(len(copy.destination.data), dtype=np.uint8)
        view, element = flags.view(ELEMENTS[copy.size]), copy.index >> (copy.size.bit_length() - 1)
        if view[element].any():
            self._overlaps = True
        view[element] = _all_flags(copy.size)
        self._flying.append(copy)

    def commit(self, threads: Array) -> None:
        self._commits[threads] += 1

    def wait(self, threads: Array | None, pending: int, random: Random) -> list[Copy]:
        """Land the copies of these threads (None: all) but the `pending` newest committed groups (-1: all, uncommitted too)."""
        if not self._flying:
            return []
        if threads is None:
            limit = self._commits - pending
        else:
            # Nobody else's copies land: their limit is below every group.
            limit = np.full(len(self._commits), -1, dtype=np.int64)
            limit[threads] = self._commits[threads] - pending
        return self._finish(lambda copy: (copy.group < limit[copy.thread]) & (copy.kind is None), random)

    def land(self, kind: Kind, done: Array, random: Random) -> list[Copy]:
        """Events of a kind are finished, of each wave [workgroups, waves] so many: their copies land."""
        if not self._flying:
            return []
        numbers = np.repeat(done.reshape(-1), self._frame.shape[2])
        return self._finish(lambda copy: (copy.group <= numbers[copy.thread]) & (copy.kind == kind), random)

    def _finish(self, finished: Callable[[Copy], Array], random: Random) -> list[Copy]:
        """Land the elements that are finished, the copies in an order that the seed permutes; gives them in that order."""
        landing, self._flying = landed(self._flying, finished, random)
        for copy in landing:
            _land(copy)
        if self._overlaps:
            self._mark_again()
        return landing

    def _mark_again(self) -> None:
        for copy in self._flying:
            assert copy.destination.flags is not None
            marks = copy.destination.flags.view(ELEMENTS[copy.size])
            marks[copy.index >> (copy.size.bit_length() - 1)] = _all_flags(copy.size)
        self._overlaps = bool(self._flying)

    def origin(self, region: Region, offset: int) -> Instruction | None:
        """The instruction whose copy in flight covers a byte."""
        for copy in self._flying:
            if copy.destination is region and ((offset - copy.index) // copy.size == 0).any():
                return copy.instruction
        return None

    def leave(self) -> list[tuple[Copy, bool]]:
        """The batch has ended: copies still in flight, each with whether a group or an event could have been waited for."""
        left = [(c, c.kind is not None or bool((c.group < self._commits[c.thread]).any())) for c in self._flying]
        self._flying = []
        return left

    def close(self) -> None:
        self._flying = []


def _land(copy: Copy) -> None:
    region, size = copy.destination, copy.size
    scatter(region.data, region.view(size), copy.index, copy.data, size)
    if region.poison is not None:
        marks = np.zeros((1,), dtype=copy.data.dtype) if copy.poison is None else copy.poison
        scatter(region.poison, region.poison_view(size), copy.index, marks, size)
    elif copy.poison is not None and copy.poison.view(np.uint8).any():
        region.poison = np.zeros(len(region.data), dtype=np.uint8)
        scatter(region.poison, region.poison_view(size), copy.index, copy.poison, size)
    assert region.flags is not None
    region.flags.view(ELEMENTS[size])[copy.index >> (size.bit_length() - 1)] = 0


def _all_flags(size: int) -> np.generic:
    return np.frombuffer(b"\xff" * size, dtype=ELEMENTS[size])[0]
