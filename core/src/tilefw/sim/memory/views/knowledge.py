"""What an agent knows: a vector clock of events that are before its next one, and the same through fences between ways to memory.

The `n`th event of agent `a` is known if `clock[a] >= n`: whoever knows an event knows all that its agent did before. Two events on
different ways to memory (or under two names of one location) are ordered only if the right fences stand between them, in the right
order. So there is one more clock for each such path of fences: `through[path]` are the events from which that path leads here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilefw.sim.memory.views.events import EventLabel
from tilefw.sim.memory.views.wide_clock import WideClock

Clock = tuple[int, ...] | WideClock
# A fence of a way, passed in a workgroup (the way's name, the group), or the fence between names of a location.
FenceStep = tuple[str, int]
ALIAS: FenceStep = ("", -1)
Path = tuple[FenceStep, ...]
# An event that may be known: its agent, its number, its label, its agent's workgroup.
KnownEvent = tuple[int, int, EventLabel, int]
_WIDE = 48
"""Agents from which on an array is cheaper than a tuple, which small tests copy, compare and hash all the time."""


def later(one: Clock, other: Clock) -> Clock:
    """What either knows."""
    if one is other:
        return one
    if isinstance(one, WideClock) or isinstance(other, WideClock):
        assert isinstance(one, WideClock) and isinstance(other, WideClock)
        return one.later(other)
    return one if one == other else tuple(map(max, one, other))


def first_clock(agents: int) -> Clock:
    """Nothing is known of so many agents."""
    return (0,) * agents if agents < _WIDE else WideClock(np.zeros(agents, np.int64))


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The clock of known events, and of those known through each path of fences."""

    clock: Clock
    through: dict[Path, Clock] = field(default_factory=dict, hash=False)

    def after(self, agent: int, event: int) -> Knowledge:
        """With the agent's own event."""
        clock = self.clock
        own = clock.after(agent, event) if isinstance(clock, WideClock) else (*clock[:agent], event, *clock[agent + 1 :])
        return Knowledge(own, self.through)

    def joined(self, other: Knowledge) -> Knowledge:
        """What either knows."""
        through = self.through
        if other.through:
            mine = self.through
            through = {**mine, **{path: later(clock, mine.get(path, clock)) for path, clock in other.through.items()}}
        return Knowledge(later(self.clock, other.clock), through)

    def passed(self, step: FenceStep) -> Knowledge:
        """Behind a fence between ways or names: every path that it can prolong leads here now."""
        through = dict(self.through)
        for path, clock in [((), self.clock), *self.through.items()]:
            if _prolongs(path, step):
                longer = (*path, step)
                through[longer] = later(clock, through[longer]) if longer in through else clock
        return Knowledge(self.clock, through)

    def key(self) -> tuple[object, ...]:
        """Equal for equal knowledge."""
        return self.clock, tuple(sorted(self.through.items()))

    def reaches(self, event: KnownEvent, label: EventLabel, group: int) -> bool:
        """Whether `event` is before an access of this label in this group, on its way to memory."""
        agent, number, source, source_group = event
        if source.address == label.address and source.way == label.way and (not source.way or source_group == group):
            return self.clock[agent] >= number
        path: Path = ((source.way, source_group),) if source.way else ()
        if source.address != label.address:
            path = (*path, ALIAS)
        if label.way:
            path = (*path, (label.way, group))
        clock = self.through.get(path)
        return clock is not None and clock[agent] >= number


def _prolongs(path: Path, step: FenceStep) -> bool:
    """Paths are at most: out of a way, between names, into a way."""
    if step == ALIAS:
        return path == () or (len(path) == 1 and path[0] != ALIAS)
    return len(path) < 2 or (len(path) == 2 and path[1] == ALIAS)
