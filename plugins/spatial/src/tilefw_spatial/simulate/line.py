"""Values in time: a line holds what one stream (by diagonal), one ALU or one link carries, burst by burst.

Every value of a burst has a key; keys of a burst are `period` apart. A line refuses two values of one key.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.simulate.burst import Burst

Values = NDArray[Any]


@dataclass(slots=True, eq=False)
class LineSegment:
    """The values of one burst, [count, lanes], under the keys start, start + period, ...; `position` is where they began.

    `tainted` has for each whether it came from uninitialised memory; None where none did."""

    start: int
    period: int
    count: int
    values: Values
    tainted: NDArray[np.bool_] | None
    source: Burst
    position: int = 0

    @property
    def last(self) -> int:
        return self.start + (self.count - 1) * self.period

    def index(self, key: int) -> int:
        """Which of the values has this key; -1 where none has."""
        index, rest = divmod(key - self.start, self.period)
        return index if rest == 0 and 0 <= index < self.count else -1

    def overlaps(self, other: LineSegment) -> bool:
        """Whether both have a value under one key."""
        if self.last < other.start or other.last < self.start:
            return False
        if self.period == other.period == 1:
            return True
        few, many = (self, other) if self.count <= other.count else (other, self)
        return any(many.index(few.start + i * few.period) >= 0 for i in range(few.count))


@dataclass(slots=True)
class LineFound:
    """What a line has under the first keys of a request, up to the first that is missing."""

    values: Values | None
    tainted: NDArray[np.bool_] | None
    count: int


class Line:
    """Segments in the order of their first keys. `width` is the largest extent in keys of any, for finding them again."""

    __slots__ = ("_enough", "_segments", "_starts", "_width")

    def __init__(self) -> None:
        self._segments: list[LineSegment] = []
        self._starts: list[int] = []
        self._width = 0
        self._enough = 32

    def add(self, segment: LineSegment) -> LineSegment | None:
        """Put a burst's values on the line; returns the segment that conflicts with it, if any (the later value then remains)."""
        rival = next((other for other in self._between(segment.start, segment.last) if other.overlaps(segment)), None)
        index = bisect_left(self._starts, segment.start)
        self._segments.insert(index, segment)
        insort(self._starts, segment.start)
        self._width = max(self._width, segment.last - segment.start)
        return rival

    def forget(self, key: int) -> None:
        """Drop what lies wholly before a key: now and then, when there has come as much as was left."""
        if len(self._segments) < self._enough:
            return
        self._segments = [s for s in self._segments if s.last >= key]
        self._starts = [s.start for s in self._segments]
        self._width = max((s.last - s.start for s in self._segments), default=0)
        self._enough = max(32, 2 * len(self._segments))

    def find(self, start: int, period: int, count: int, behind: int = -1, west: bool = False) -> LineFound:
        """The values of `count` keys from `start` on. Where a position is given (`behind`), only of segments that began before it
        in the direction of flow."""
        last = start + (count - 1) * period
        candidates = self._between(start, last)
        if behind >= 0:
            candidates = [s for s in candidates if (s.position >= behind if west else s.position <= behind)]
        runs: list[tuple[LineSegment, int, int, int]] = []
        done = 0
        while done < count:
            run = next((r for s in candidates if (r := _run(s, start + done * period, period, count - done))), None)
            if run is None:
                break
            runs.append(run)
            done += run[2]
        return _joined(runs, done)

    def _between(self, first: int, last: int) -> list[LineSegment]:
        low = bisect_left(self._starts, first - self._width)
        return [s for s in self._segments[low : bisect_left(self._starts, last + 1)] if s.last >= first]


def _run(segment: LineSegment, key: int, period: int, limit: int) -> tuple[LineSegment, int, int, int] | None:
    """How many values from `key` on, `period` apart, a segment has: itself, first index, how many, stride in indices."""
    first = segment.index(key)
    if first < 0:
        return None
    stride, rest = divmod(period, segment.period)
    if rest or limit == 1:
        return segment, first, 1, 1
    return segment, first, min(limit, 1 + (segment.count - 1 - first) // stride), stride


def _joined(runs: list[tuple[LineSegment, int, int, int]], count: int) -> LineFound:
    if not runs:
        return LineFound(None, None, 0)
    values = [s.values[first : first + (n - 1) * stride + 1 : stride] for s, first, n, stride in runs]
    tainted = None
    if any(s.tainted is not None for s, *_ in runs):
        tainted = np.concatenate([
            np.zeros(n, bool) if s.tainted is None else s.tainted[first : first + (n - 1) * stride + 1 : stride]
            for s, first, n, stride in runs
        ])
        tainted = tainted if tainted.any() else None
    return LineFound(values[0] if len(values) == 1 else np.concatenate(values), tainted, count)
