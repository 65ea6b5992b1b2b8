"""A vector clock of many agents: one array, never changed once it is made, with the value's equality and hash."""

from __future__ import annotations

import numpy as np

from tilefw.sim.floats import Array


class WideClock:
    """By agent the number of its last known event."""

    __slots__ = ("_hash", "events")

    def __init__(self, events: Array) -> None:
        self.events = events
        self._hash: int | None = None

    def __getitem__(self, agent: int) -> int:
        return int(self.events[agent])

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, WideClock) and np.array_equal(self.events, other.events))

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.events.tobytes())
        return self._hash

    def after(self, agent: int, event: int) -> WideClock:
        """With one event of an agent."""
        events = self.events.copy()
        events[agent] = event
        return WideClock(events)

    def later(self, other: WideClock) -> WideClock:
        """What either knows; one of the two where that one knows it all, so that those who know the same share it."""
        events = np.maximum(self.events, other.events)
        for one in (other, self):
            if np.array_equal(events, one.events):
                return one
        return WideClock(events)
