"""The registers of a file while values are placed in them: which stand where, and which are free now.

Each register has the points at which it is taken as bits of an int, so that a place is judged by an `and` for each register.
Where values come in the order of their beginnings, the registers taken at the point that allocation has come to are a set of bits
too, so that only those are looked at which may do: with files of hundreds of registers most are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from tilefw.machine.live_ranges import LivePart

_END, _START = 0, 1  # of two at one point the end comes first


class RegisterFile:
    """`count` registers, of which those in `reserved` are for nobody."""

    def __init__(self, count: int, reserved: frozenset[int]) -> None:
        self.count = count
        self._usable = ((1 << count) - 1) & ~sum(1 << k for k in reserved)
        self._taken = [0] * count
        self._busy = 0
        self._reached = 0  # behind the highest register that is taken at any time
        self._changes: list[tuple[int, int, int]] = []
        self._multiples: dict[int, int] = {}

    @property
    def available(self) -> int:
        """How many registers there are for values."""
        return self._usable.bit_count()

    def take(self, first: int, parts: Sequence[LivePart]) -> None:
        """Put a register's parts at `first` and behind."""
        for part in parts:
            start = first + part.first
            self._reached = max(self._reached, start + part.width)
            for i in range(start, start + part.width):
                self._taken[i] |= part.points << part.segments[0][0]
            registers = ((1 << part.width) - 1) << start
            for begin, end in part.segments:
                heappush(self._changes, (begin, _START, registers))
                heappush(self._changes, (end, _END, registers))

    def find_free(self, width: int, align: int, parts: Sequence[LivePart], preferred: Sequence[int], in_order: bool) -> int | None:
        """Where `width` registers in a row, the first at a multiple of `align`, are free for `parts`: at `preferred`, or as low as
        can be; None where nowhere. `in_order`: calls come in the order of the first beginning in `parts`."""
        allowed = self._multiples_of(align) & ((1 << max(0, self.count - width + 1)) - 1)
        usable = allowed & _runs(self._usable, width)
        for first in preferred:
            if first >= 0 and usable >> first & 1 and self._fits(first, parts):
                return first
        if in_order:
            position = min(part.segments[0][0] for part in parts)
            self._advance(position)
            free = ~self._busy
            for part in parts:
                if part.segments[0][0] == position:
                    usable &= _runs(free, part.width) >> part.first
            if width < 4:  # narrow values fill up what is left beside others, so that places for wide ones stay whole
                whole = _runs(free & self._usable, 2 * width) & self._multiples_of(2 * width)
                beside = usable & ~(whole | whole << width) & ((1 << self._reached) - 1)
                for first in _members(beside):
                    if self._fits(first, parts):
                        return first
                usable ^= beside
        for first in _members(usable):
            if self._fits(first, parts):
                return first
        return None

    def _fits(self, first: int, parts: Sequence[LivePart]) -> bool:
        for part in parts:
            start, begin = first + part.first, part.segments[0][0]
            for i in range(start, start + part.width):
                if self._taken[i] >> begin & part.points:
                    return False
        return True

    def _advance(self, position: int) -> None:
        changes = self._changes
        while changes and changes[0][0] <= position:
            _, kind, registers = heappop(changes)
            self._busy = self._busy | registers if kind == _START else self._busy & ~registers

    def _multiples_of(self, align: int) -> int:
        if align not in self._multiples:
            self._multiples[align] = sum(1 << k for k in range(0, self.count, align))
        return self._multiples[align]


def _runs(registers: int, width: int) -> int:
    """The registers from which `width` in a row are in the set."""
    have = 1
    while have < width:
        step = min(have, width - have)
        registers &= registers >> step
        have += step
    return registers


def _members(registers: int) -> Iterator[int]:
    while registers:
        lowest = registers & -registers
        yield lowest.bit_length() - 1
        registers ^= lowest
