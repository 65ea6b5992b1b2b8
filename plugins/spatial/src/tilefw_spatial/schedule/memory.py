"""Order through memory: a vector is read no earlier than in the cycle in which it is stored, and what is stored in rows that
another array had comes after all that was done with that one.

Times within a stream operation are fixed, so that it takes one number an operation: the least begin at which each of its reads and
stores comes after what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.machine import Machine
from tilefw_spatial.program import RowAllocation
from tilefw_spatial.schedule.runs import AccessRun
from tilefw_spatial.stream_program import Array

Allocations = Callable[[Array], Sequence[RowAllocation]]
"""Where an array lies: one allocation for each of its copies."""


@dataclass(frozen=True, slots=True)
class ArrayAccess:
    """Vectors of an array that a stream operation reads or stores. Point 0 of the runs is at `time`, counted from the stream
    operation's begin: the cycle in which an RD issues, or a vector is stored, at the slice that is first or last reached. `spread`
    cycles lie between the first and the last slice."""

    array: Array
    runs: Sequence[AccessRun]
    time: int
    stores: bool
    spread: int

    def first(self) -> int:
        """The cycle in which the first row is accessed."""
        return self.time + min(run.point for run in self.runs) - (self.spread if self.stores else 0)

    def last(self) -> int:
        """The cycle in which the last row is accessed."""
        return self.time + max(run.last_point for run in self.runs) + (0 if self.stores else self.spread)


def reach(machine: Machine, allocation: RowAllocation, at: int) -> int:
    """Cycles between position `at` and the farthest slice of an array."""
    return max(abs(at - machine.position(rows.slice)) for blocks in allocation.planes for rows in blocks)


def spread(machine: Machine, allocations: Iterable[RowAllocation], at: int) -> int:
    """Cycles between the nearest and the farthest slice of an array's copies, seen from position `at`."""
    found = [
        abs(at - machine.position(rows.slice)) for allocation in allocations for blocks in allocation.planes for rows in blocks
    ]
    return max(found) - min(found)


def is_east(machine: Machine, allocation: RowAllocation) -> bool:
    """Whether an array is in the eastern hemisphere; none is in both."""
    return machine.position(allocation.planes[0][0].slice) > machine.position("VXM")


@dataclass(slots=True)
class StoredRows:
    """When each vector of each array is stored; what no stream operation stores is there from the beginning. `before` has the
    arrays, by identity, that had rows of an array before it (`placement`), `begins` and `ends` when each array was accessed first
    and last."""

    times: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    before: dict[int, frozenset[int]] = field(default_factory=dict)
    begins: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def least(self, array_accesses: Sequence[ArrayAccess]) -> int:
        """The least begin of a stream operation with these accesses."""
        begin = 0
        for array_access in array_accesses:
            if array_access.stores:
                for other in self.before.get(id(array_access.array), ()):
                    begin = max(begin, self.ends.get(other, -1) + 1 - array_access.first())
                continue
            stored = self.times.get(id(array_access.array))
            if stored is None:
                continue
            for run in array_access.runs:
                late = stored[run.vectors()] - run.points()
                begin = max(begin, int(late.max()) - array_access.time)
        return begin

    def add(self, array_accesses: Sequence[ArrayAccess], begin: int) -> None:
        """Note what a stream operation accesses that begins at `begin`."""
        for array_access in array_accesses:
            first = begin + array_access.first()
            self.begins[id(array_access.array)] = min(self.begins.get(id(array_access.array), first), first)
            self.ends[id(array_access.array)] = max(self.ends.get(id(array_access.array), -1), begin + array_access.last())
            if not array_access.stores:
                continue
            stored = self.times.get(id(array_access.array))
            if stored is None:
                stored = self.times[id(array_access.array)] = np.zeros(array_access.array.vectors, np.int64)
            for run in array_access.runs:
                np.maximum.at(stored, run.vectors(), begin + array_access.time + run.points())
