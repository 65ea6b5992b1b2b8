"""The registers of a class while values are placed in them, in the order of their beginnings: what stands where, what is free now.

Places are tried from the lowest on. Which registers are taken at the position that allocation has come to is kept as a set of bits,
so that only those which may do are looked at: with files of hundreds of registers most are not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

# A position: an instruction reads at 2i and writes at 2i + 1, so a result may take the place of an operand that dies there.
Segment = tuple[int, int]
_END, _START = 0, 1  # of two at one position the end comes first


class RegisterFile:
    """`count` registers, of which those in `reserved` are for nobody."""

    def __init__(self, count: int, reserved: frozenset[int]) -> None:
        self.count = count
        self._usable = ((1 << count) - 1) & ~sum(1 << k for k in reserved)
        self._reserved = reserved
        self._starts: list[list[int]] = [[] for _ in range(count)]
        self._ends: list[list[int]] = [[] for _ in range(count)]
        self._busy = 0
        self._events: list[tuple[int, int, int]] = []

    def take(self, index: int, segments: Sequence[Segment]) -> None:
        """These segments of a register, apart from those that it has."""
        for start, end in segments:
            k = bisect_right(self._starts[index], start)
            self._starts[index].insert(k, start)
            self._ends[index].insert(k, end)
            heappush(self._events, (start, _START, index))
            heappush(self._events, (end, _END, index))

    def place(self, width: int, align: int, parts: Sequence[Sequence[Segment]], preferred: Sequence[int]) -> int | None:
        """Where `width` registers in a row, the first at a multiple of `align`, are free for `parts`: at `preferred`, or as low as
        can be. Calls come in the order of the first beginning in `parts`."""
        for first in preferred:
            span = range(first, first + width)
            if first % align == 0 and span.stop <= self.count and self._reserved.isdisjoint(span) and self._fits(first, parts):
                return first
        position = min((segments[0][0] for segments in parts if segments), default=0)
        self._advance(position)
        for first in self._candidates(width, align, parts, position):
            if self._fits(first, parts):
                return first
        return None

    def _candidates(self, width: int, align: int, parts: Sequence[Sequence[Segment]], position: int) -> Iterator[int]:
        """The places, lowest first, but for those where a part that begins now stands on a register that is taken now."""
        mask = (1 << max(0, self.count - width + 1)) - 1
        for i, segments in enumerate(parts):
            begins = segments and segments[0][0] == position
            mask &= (self._usable & ~self._busy if begins else self._usable) >> i
        while mask:
            lowest = mask & -mask
            mask ^= lowest
            first = lowest.bit_length() - 1
            if first % align == 0:
                yield first

    def _fits(self, first: int, parts: Sequence[Sequence[Segment]]) -> bool:
        return not any(self._meets(first + i, segments) for i, segments in enumerate(parts))

    def _meets(self, index: int, segments: Sequence[Segment]) -> bool:
        starts, ends = self._starts[index], self._ends[index]
        for start, end in segments:
            k = bisect_right(starts, start)
            if (k and ends[k - 1] > start) or (k < len(starts) and starts[k] < end):
                return True
        return False

    def _advance(self, position: int) -> None:
        events = self._events
        while events and events[0][0] <= position:
            _, kind, index = heappop(events)
            if kind == _START:
                self._busy |= 1 << index
            else:
                self._busy &= ~(1 << index)
