"""The register pressure of a file at every point, and where it is too high: what spilling is decided by.

Points are kept in runs of a fixed length, so that a change of the pressure costs what it touches: the sums and maxima of the runs
in between stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilefw.api.integers import round_up
from tilefw.machine.inst import Reg
from tilefw.machine.live_ranges import LivePart, LiveRanges, Segment
from tilefw.machine.table import InstructionTable

Points = NDArray[np.int64]
UNLIMITED = 1 << 30  # registers of a file that stays virtual
RUN = 256  # points


class SpillPressure:
    """How many registers of a file are live `at` each point, and how many it has for values, `available`."""

    __slots__ = ("_changed", "_highest", "at", "available")

    def __init__(self, at: NDArray[np.int32], available: int) -> None:
        """`at`: a whole number of runs."""
        self.at = at
        self.available = available
        self._changed = np.ones(len(at) // RUN, np.bool_)
        self._highest: int | None = None  # anywhere, where it is known

    def add(self, segments: Iterable[Segment], count: int) -> None:
        """Count so many registers more as live in the segments."""
        at, changed = self.at, self._changed
        self._highest = None
        for start, end in segments:
            at[start:end] += count
            changed[start // RUN : (end - 1) // RUN + 1] = True

    def add_at(self, points: Collection[int], count: int) -> None:
        """Count so many registers more as live at points of runs that have changed already."""
        self._highest = None
        self.at[list(points)] += count

    def has_room(self, segments: Iterable[Segment], width: int) -> bool:
        """Whether so many registers are free in all of the segments."""
        most = self.available - width
        if self._highest is None:
            self._highest = int(self.at.max())
        return self._highest <= most or all(int(self.at[start:end].max()) <= most for start, end in segments)

    def changed_runs(self) -> NDArray[np.intp]:
        """The runs whose pressure has changed since the last call."""
        found = np.flatnonzero(self._changed)
        self._changed[found] = False
        return found


@dataclass(frozen=True, slots=True)
class Crowded:
    """Registers of a file that found no room, and how many more than live at once are to be free wherever one of them lives.
    `leaving`: those of others that found none where many were free at each point, so that they go themselves."""

    spare: int
    registers: frozenset[Reg]
    leaving: frozenset[Reg] = frozenset()


def most_live(
    ranges: LiveRanges, pressure: SpillPressure, exact: SpillPressure, crowded: Crowded | None
) -> NDArray[np.int32]:
    """How many registers of a file may be live at each point. Its `pressure` counts what is dead of a tuple as well, `exact` does
    not: only where the file is crowded it matters, as that may be of no use to another there."""
    most = np.full(len(pressure.at), pressure.available, np.int32)
    if crowded is not None:
        most += pressure.at - exact.at
        for reg in crowded.registers:
            for part in ranges.parts[reg]:
                for start, end in part.segments:
                    most[start:end] = pressure.available - crowded.spare
    return most


class Excess:
    """The points at which more than `most` registers are live, counted in any stretch of points in constant time."""

    __slots__ = ("_before", "_counts", "_highest", "_inside", "_most", "_most_of_run", "_pressure")

    def __init__(self, pressure: SpillPressure, most: NDArray[np.int32]) -> None:
        runs = len(pressure.at) // RUN
        self._pressure = pressure
        self._most = most
        self._most_of_run = most.reshape(-1, RUN)
        self._highest = np.zeros(runs, np.int32)  # excess of each run
        self._counts = np.zeros(runs + 1, np.int32)  # of such points in each run
        self._before = np.zeros(runs + 1, np.int32)  # of each run, such points in all runs before it
        self._inside = np.zeros((runs + 1, RUN), np.int16)  # of each point, such points before it in its run
        pressure.changed_runs()
        self._update(np.arange(runs))

    def update(self) -> None:
        """Follow the pressure."""
        self._update(self._pressure.changed_runs())

    def _update(self, runs: NDArray[np.intp]) -> None:
        excess = self._pressure.at.reshape(-1, RUN)[runs] - self._most_of_run[runs]
        beyond = excess > 0
        upto = np.cumsum(beyond, axis=1, dtype=np.int16)
        self._highest[runs] = excess.max(axis=1)
        self._counts[runs] = upto[:, -1]
        self._inside[runs] = upto - beyond
        np.cumsum(self._counts[:-1], out=self._before[1:])

    def worst(self) -> int | None:
        """The first of the points at which most registers too many are live; None where nowhere any is."""
        run = int(self._highest.argmax())
        if self._highest[run] <= 0:
            return None
        points = slice(run * RUN, (run + 1) * RUN)
        return points.start + int((self._pressure.at[points] - self._most[points]).argmax())

    def within(self, starts: Points, ends: Points) -> NDArray[np.int32]:
        """How many of the points are in each stretch, from its start to before its end."""
        inside = self._inside.reshape(-1)
        return self._before[ends // RUN] + inside[ends] - self._before[starts // RUN] - inside[starts]


def pressures(
    ranges: LiveRanges, live: Mapping[Reg, Sequence[LivePart]], table: InstructionTable, usable: Mapping[str, frozenset[int] | None]
) -> dict[str, SpillPressure]:
    """The pressure of each file in `usable`, where `live` are the parts of their virtual registers. `usable`: the physical
    registers for values, None for a file without limit; physical registers that the code names count where they are usable."""
    changes: dict[str, list[tuple[int, int, int]]] = {file: [] for file in usable}
    files = {cls: changes[file] for cls in table.classes if (file := table.file(cls)) in changes}
    for reg, parts in live.items():
        files[reg.cls] += [(start, end, part.width) for part in parts for start, end in part.segments]
    for reg, parts in ranges.fixed.items():
        if reg.cls not in usable:
            continue
        registers = usable[reg.cls] or frozenset()
        for part in parts:
            count = len(registers.intersection(range(part.first, part.first + part.width)))
            changes[reg.cls] += [(start, end, count) for start, end in part.segments]
    length = round_up(2 * ranges.starts[-1] + 3, RUN)
    found: dict[str, SpillPressure] = {}
    for file, its in changes.items():
        starts, ends, widths = np.array(its, np.int64).reshape(-1, 3).T
        steps = np.bincount(starts, widths, length + 1) - np.bincount(ends, widths, length + 1)
        registers = usable[file]
        found[file] = SpillPressure(np.cumsum(steps[:length]).astype(np.int32), UNLIMITED if registers is None else len(registers))
    return found
