"""Sets of integers as sorted disjoint intervals: what is taken of a resource, and where the next gap is.

Neighbours that touch are one interval, so that a resource that is busy all the time costs nothing to ask. Gaps of long ago are
given up: beyond `KEPT` intervals the oldest half counts as taken, which bounds the time of a question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable

Span = tuple[int, int]
"""A half-open interval: the first integer, and the one behind the last."""

KEPT = 256


class Intervals:
    """A set of integers."""

    __slots__ = ("begins", "ends")

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self.begins)

    def earliest(self, begin: int, length: int) -> int:
        """The least integer from `begin` on where `length` successive ones are not in the set."""
        begins, ends = self.begins, self.ends
        at = bisect_right(ends, begin)
        while at < len(begins) and begins[at] < begin + length:
            begin = ends[at]
            at += 1
        return begin

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether any of [begin, end) is in the set."""
        at = bisect_right(self.ends, begin)
        return at < len(self.begins) and self.begins[at] < end

    def add(self, begin: int, end: int) -> None:
        """Put [begin, end) in; parts that are in already stay."""
        first, last = bisect_left(self.ends, begin), bisect_right(self.begins, end)
        if first < last:
            begin, end = min(begin, self.begins[first]), max(end, self.ends[last - 1])
        self.begins[first:last], self.ends[first:last] = [begin], [end]
        if len(self.begins) > KEPT:
            self._forget(KEPT // 2)

    def remove(self, begin: int, end: int) -> None:
        """Take [begin, end), all of which is in, out again."""
        at = bisect_right(self.begins, begin) - 1
        low, high = self.begins[at], self.ends[at]
        kept = [(a, b) for a, b in ((low, begin), (end, high)) if a < b]
        self.begins[at : at + 1], self.ends[at : at + 1] = [a for a, _ in kept], [b for _, b in kept]

    def _forget(self, count: int) -> None:
        self.begins[:count], self.ends[:count] = [self.begins[0]], [self.ends[count - 1]]


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same integers as sorted spans that neither overlap nor touch."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def overlap(left: Collection[Span], right: Collection[Span]) -> bool:
    """Whether two sets of spans, of which one has few, have an integer in common."""
    return any(begin < other_end and other_begin < end for begin, end in left for other_begin, other_end in right)
