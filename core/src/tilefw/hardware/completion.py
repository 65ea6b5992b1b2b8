"""A launch on a card that may still run: a pair of events around it, which tell its end and how long it took."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tilefw.hardware.driver import Driver
from tilefw.hardware.failures import DriverError, told


class EventPool:
    """Events of one card that are used again, since making one takes longer than recording it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._free: list[int] = []
        self._lock = threading.RLock()  # a completion that is collected in here gives its events back from here

    def take(self) -> int:
        """An event; the card is current. Raises DriverError."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return self._driver.new_event()

    def take_two(self) -> tuple[int, int]:
        """Two events, as `take`."""
        with self._lock:
            if len(self._free) > 1:
                return self._free.pop(), self._free.pop()
        return self.take(), self.take()

    def give_back(self, *events: int) -> None:
        with self._lock:
            self._free += events


class CardCompletion:
    """`tilefw.api.Completion` of one launch. `doing` and `device` tell what failed where it does; `keeps` lives as long as the
    launch needs it."""

    __slots__ = ("_device", "_doing", "_driver", "_events", "_keeps", "_lock", "_number", "_pool", "_seconds")

    def __init__(
        self, driver: Driver, number: int, events: tuple[int, int], pool: EventPool, doing: object, device: str, keeps: object
    ) -> None:
        self._driver, self._number, self._pool = driver, number, pool
        self._events: tuple[int, int] | None = events
        self._doing, self._device, self._keeps = doing, device, keeps
        self._lock = threading.Lock()
        self._seconds: float | None = None

    def done(self) -> bool:
        """Whether the launch has ended; a failure counts as an end, and `wait` tells it."""
        with self._lock:
            if self._events is None:
                return True
            end = self._events[1]
            return bool(self._asked(lambda: self._driver.happened(end), True))

    def wait(self) -> float:
        """Wait for the end; the seconds between the events. Raises LaunchError TFW0349 where the launch failed."""
        with self._lock:
            if self._events is not None:
                start, end = self._events
                with told(self._doing, self._device), self._driver.on(self._number):
                    self._driver.wait_event(end)
                    self._seconds = self._driver.seconds(start, end)
                self._pool.give_back(*self._events)
                self._events, self._keeps = None, None
            assert self._seconds is not None
            return self._seconds

    def _asked(self, ask: Callable[[], bool], failed: bool) -> bool:
        try:
            with self._driver.on(self._number):
                return ask()
        except DriverError:
            return failed

    def __del__(self) -> None:
        # Events that are recorded anew while the old record is pending lose it, which nobody waits for any more.
        events = getattr(self, "_events", None)
        if events is not None:
            self._pool.give_back(*events)
