"""Order through memory: a vector is read no earlier than in the cycle in which it is stored, and what is stored in rows that
another array had comes after all that was done with that one.

Sweeps are rigid, so that it takes one number a sweep: the least begin at which each of its reads and stores comes after what it
waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Home
from tilefw_spatial.schedule.runs import AccessRun
from tilefw_spatial.sweep import Array

Homes = Callable[[Array], Sequence[Home]]
"""Where an array lies: one home for each of its copies."""


@dataclass(frozen=True, slots=True)
class MemoryTouch:
    """Vectors of an array that a sweep reads or stores. Point 0 of the runs is at `time`, counted from the sweep's begin: the cycle
    in which an RD issues, or a vector is stored, at the place that is first or last reached. `spread` cycles lie between the first
    and the last place."""

    array: Array
    runs: Sequence[AccessRun]
    time: int
    stores: bool
    spread: int

    def first(self) -> int:
        """The cycle in which the first row is touched."""
        return self.time + min(run.point for run in self.runs) - (self.spread if self.stores else 0)

    def last(self) -> int:
        """The cycle in which the last row is touched."""
        return self.time + max(run.last_point for run in self.runs) + (0 if self.stores else self.spread)


def reach(machine: Machine, home: Home, at: int) -> int:
    """Cycles between position `at` and the farthest place of an array."""
    return max(abs(at - machine.position(rows.slice)) for places in home.planes for rows in places)


def spread(machine: Machine, homes: Iterable[Home], at: int) -> int:
    """Cycles between the nearest and the farthest place of an array's copies, seen from position `at`."""
    found = [abs(at - machine.position(rows.slice)) for home in homes for places in home.planes for rows in places]
    return max(found) - min(found)


def is_east(machine: Machine, home: Home) -> bool:
    """Whether an array stands in the eastern hemisphere; none stands in both."""
    return machine.position(home.planes[0][0].slice) > machine.position("VXM")


@dataclass(slots=True)
class StoredRows:
    """When each vector of each array is stored; what no sweep stores is there from the beginning. `before` has the arrays, by
    identity, that had rows of an array before it (`placement`), `ends` when each array was touched last."""

    times: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    before: dict[int, frozenset[int]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def least(self, touches: Sequence[MemoryTouch]) -> int:
        """The least begin of a sweep with these touches."""
        begin = 0
        for touch in touches:
            if touch.stores:
                for other in self.before.get(id(touch.array), ()):
                    begin = max(begin, self.ends.get(other, -1) + 1 - touch.first())
                continue
            stored = self.times.get(id(touch.array))
            if stored is None:
                continue
            for run in touch.runs:
                late = stored[run.vectors()] - run.points()
                begin = max(begin, int(late.max()) - touch.time)
        return begin

    def add(self, touches: Sequence[MemoryTouch], begin: int) -> None:
        """Note what a sweep touches that begins at `begin`."""
        for touch in touches:
            self.ends[id(touch.array)] = max(self.ends.get(id(touch.array), -1), begin + touch.last())
            if not touch.stores:
                continue
            stored = self.times.get(id(touch.array))
            if stored is None:
                stored = self.times[id(touch.array)] = np.zeros(touch.array.vectors, np.int64)
            for run in touch.runs:
                np.maximum.at(stored, run.vectors(), begin + touch.time + run.points())
