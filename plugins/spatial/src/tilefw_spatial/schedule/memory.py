"""Order through memory: a vector is read no earlier than in the cycle in which it is stored.

Sweeps are rigid, so that it takes one number a sweep: the least begin at which each of its reads comes after the store that it
waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Home
from tilefw_spatial.schedule.runs import Run
from tilefw_spatial.sweep import Array

Homes = Callable[[Array], Sequence[Home]]
"""Where an array lies: one home for each of its copies."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Vectors of an array that a sweep reads or stores. Point 0 of the runs is at `time`, counted from the sweep's begin: the cycle
    in which an RD issues, or a vector is stored, at the place that is first or last reached."""

    array: Array
    runs: Sequence[Run]
    time: int
    stores: bool


def reach(machine: Machine, home: Home, at: int) -> int:
    """Cycles between position `at` and the farthest place of an array."""
    return max(abs(at - machine.position(rows.slice)) for places in home.planes for rows in places)


def is_east(machine: Machine, home: Home) -> bool:
    """Whether an array stands in the eastern hemisphere; none stands in both."""
    return machine.position(home.planes[0][0].slice) > machine.position("VXM")


@dataclass(slots=True)
class Stores:
    """When each vector of each array is stored; what no sweep stores is there from the beginning."""

    times: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def least(self, touches: Sequence[Touch]) -> int:
        """The least begin of a sweep with these touches."""
        begin = 0
        for touch in touches:
            stored = self.times.get(id(touch.array))
            if touch.stores or stored is None:
                continue
            for run in touch.runs:
                late = stored[run.vectors()] - run.points()
                begin = max(begin, int(late.max()) - touch.time)
        return begin

    def add(self, touches: Sequence[Touch], begin: int) -> None:
        """Note what a sweep stores that begins at `begin`."""
        for touch in touches:
            if not touch.stores:
                continue
            stored = self.times.get(id(touch.array))
            if stored is None:
                stored = self.times[id(touch.array)] = np.zeros(touch.array.vectors, np.int64)
            for run in touch.runs:
                np.maximum.at(stored, run.vectors(), begin + touch.time + run.points())
