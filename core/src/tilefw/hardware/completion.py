"""A launch on a card that may still run: a pair of events around it, which tell its end and how long it took."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from tilefw.hardware.driver import Driver
from tilefw.hardware.failures import DriverError, told


class EventPool:
    """Events of one card by two, that are used again, since making one takes longer than recording it. Adding to a list and taking
    from it are whole, whoever is doing the other."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._free: list[tuple[int, int]] = []

    def take(self) -> tuple[int, int]:
        """Two events; the card is current. Raises DriverError."""
        try:
            return self._free.pop()
        except IndexError:
            return self._driver.new_event(), self._driver.new_event()

    def give_back(self, events: tuple[int, int]) -> None:
        self._free.append(events)


@dataclass(frozen=True, slots=True)
class CardEntry:
    """An entry with all that its launches on one card have in common. `keeps` lives as long as one of them may run."""

    driver: Driver
    number: int
    device: str
    pool: EventPool
    name: str
    block: tuple[int, int, int]
    keeps: object

    def doing(self, grid: tuple[int, int, int]) -> str:
        """What a launch is, in the words of an error."""
        return f"{self.name} over a grid of {_by(grid)} workgroups of {_by(self.block)} threads"


def _by(extents: Iterable[int]) -> str:
    return "x".join(map(str, extents))


class CardCompletion:
    """`tilefw.api.Completion` of one launch."""

    __slots__ = ("_entry", "_events", "_grid", "_lock", "_seconds")

    def __init__(self, entry: CardEntry, grid: tuple[int, int, int], events: tuple[int, int]) -> None:
        self._entry: CardEntry | None = entry
        self._grid = grid
        self._events = events
        self._lock = threading.RLock()  # a signal's handler may wait where its thread does
        self._seconds = 0.0

    def done(self) -> bool:
        """Whether the launch has ended; a failure counts as an end, and `wait` tells it."""
        with self._lock:
            entry = self._entry
            if entry is None:
                return True
            try:
                with entry.driver.on(entry.number):
                    return entry.driver.happened(self._events[1])
            except DriverError:
                return True

    def wait(self) -> float:
        """Wait for the end; the seconds between the events. Raises LaunchError TFW0349 where the launch failed."""
        with self._lock:
            entry = self._entry
            if entry is not None:
                start, end = self._events
                with told(_Doing(entry, self._grid), entry.device), entry.driver.on(entry.number):
                    entry.driver.wait_event(end)
                    if self._entry is None:  # a signal's handler has waited meanwhile, and the events may be another launch's
                        return self._seconds
                    self._seconds = entry.driver.seconds(start, end)
                self._entry = None
                entry.pool.give_back(self._events)
            return self._seconds

    def __del__(self) -> None:
        # Events that are recorded anew while the old record is pending lose it, which nobody waits for any more.
        entry = getattr(self, "_entry", None)
        if entry is not None:
            entry.pool.give_back(self._events)


@dataclass(frozen=True, slots=True)
class _Doing:
    entry: CardEntry
    grid: tuple[int, int, int]

    def __str__(self) -> str:
        return self.entry.doing(self.grid)
