"""What waves of one workgroup tell each other by strong accesses and fences, for the race check: of each wave, not of all at once.

A release carries the clocks of the wave that makes it, and the events that it knows to be finished; what was once released at a
place is told to all waves of the workgroup that acquire there later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilefw.sim.engine.batch import Batch
from tilefw.sim.floats import Array

Place = tuple[int, int]
"""A region by its identity, and an address in it."""


class _Told(NamedTuple):
    """Up to which clock of each wave, and by kind up to which event of each, all is known to be over."""

    clocks: Array
    events: Array

    def joined(self, other: _Told | None) -> _Told:
        return self if other is None else _Told(np.maximum(self.clocks, other.clocks), np.maximum(self.events, other.events))


class WithinWorkgroups:
    """Of one launch. A wave is a workgroup's number and its own in it."""

    def __init__(self) -> None:
        self._released: dict[tuple[Place, int], _Told] = {}
        self._fenced: dict[tuple[int, int], _Told] = {}
        self._seen: dict[tuple[int, int], _Told] = {}

    def fence(self, batch: Batch, slot: int, wave: int) -> None:
        """What a wave knows is carried by its later strong writes."""
        self._fenced[int(batch.workgroups[slot]), wave] = _now(batch, slot, wave)

    def acquire(self, batch: Batch, slot: int, wave: int) -> None:
        """By a fence: a wave knows what its reads have seen released."""
        seen = self._seen.pop((int(batch.workgroups[slot]), wave), None)
        if seen is not None:
            _learn(batch, slot, wave, seen)

    def write(self, batch: Batch, slot: int, wave: int, place: Place, releases: bool) -> None:
        """A strong write of a wave: it carries what fences have released, and where it `releases`, all that the wave knows."""
        group = int(batch.workgroups[slot])
        told = _now(batch, slot, wave) if releases else self._fenced.get((group, wave))
        if told is not None:
            self._released[place, group] = told.joined(self._released.get((place, group)))

    def read(self, batch: Batch, slot: int, wave: int, place: Place, acquires: bool, passed_on: Array | None) -> None:
        """A strong read of a wave; `passed_on`: what other workgroups, which know it, have released there of the wave's own."""
        group = int(batch.workgroups[slot])
        told = self._released.get((place, group))
        if passed_on is not None:
            told = _Told(passed_on, batch.events.nothing_told()).joined(told)
        if told is None:
            return
        if acquires:
            _learn(batch, slot, wave, told)
        else:
            self._seen[group, wave] = told.joined(self._seen.get((group, wave)))

    def end(self, batch: Batch, regions: set[int]) -> None:
        """The workgroups of a batch have ended, and these regions (identities) with them."""
        ended = set(batch.workgroups.tolist())
        for waves in (self._fenced, self._seen):
            for wave in [wave for wave in waves if wave[0] in ended]:
                del waves[wave]
        for key in [key for key in self._released if key[1] in ended or key[0][0] in regions]:
            del self._released[key]


def _now(batch: Batch, slot: int, wave: int) -> _Told:
    """What a wave knows, which begins a new clock then."""
    return _Told(batch.clocks[slot, wave].copy(), batch.events.told(slot, wave, int(batch.clocks[slot, wave, wave]), None))


def _learn(batch: Batch, slot: int, wave: int, told: _Told) -> None:
    batch.clocks[slot, wave] = np.maximum(batch.clocks[slot, wave], told.clocks)
    batch.events.learn(slot, wave, told.events)
