"""The registers of a file while values are placed in them: which stand where, and which are free now.

Each register has the points at which it is taken as bits of an int, so that a place is judged by an `and` for each register.
Where values come in the order of their beginnings, the registers taken at the point that allocation has come to are a set of bits
too, so that only those are looked at which may do: with files of hundreds of registers most are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from tilefw.machine.live_ranges import LivePart

END, START = 0, 1  # changes: of two at one point the end comes first


class RegisterFile:
    """`count` registers, of which those in `reserved` are for nobody."""

    stride = 2048  # points, by which the oldest are forgotten

    def __init__(self, count: int, reserved: frozenset[int]) -> None:
        self.count = count
        self._usable = ((1 << count) - 1) & ~sum(1 << k for k in reserved)
        self._taken = [0] * count
        self._origin = 0  # the point that the lowest bit of `_taken` stands for: nobody asks about those before it any more
        self._busy = 0
        self._reached = 0  # the registers up to the highest that is taken at any time
        self._changes: list[tuple[int, int, int]] = []
        self._firsts: dict[tuple[int, int], int] = {}
        self._multiples: dict[int, int] = {}

    @property
    def available(self) -> int:
        """How many registers there are for values."""
        return self._usable.bit_count()

    def take(self, first: int, parts: Sequence[LivePart], position: int | None = None) -> None:
        """Put a register's parts at `first` and behind; `position` as it was for `find_free`."""
        for part in parts:
            start, begin = first + part.first, part.segments[0][0]
            points = part.points << begin - self._origin
            for i in range(start, start + part.width):
                self._taken[i] |= points
            registers = ((1 << part.width) - 1) << start
            self._reached |= (1 << start + part.width) - 1
            if begin != position:
                heappush(self._changes, (begin, START, registers))
            else:  # `find_free` has come to this point already
                self._busy |= registers
            heappush(self._changes, (part.segments[0][1], END, registers))
            for begin, end in part.segments[1:]:
                heappush(self._changes, (begin, START, registers))
                heappush(self._changes, (end, END, registers))

    def find_free(
        self, width: int, align: int, parts: Sequence[LivePart], preferred: Sequence[int], position: int | None = None
    ) -> int | None:
        """Where `width` registers in a row, the first at a multiple of `align`, are free for `parts`: at `preferred`, or as low as
        can be; None where nowhere. `position`: the first point of `parts`, where calls come in the order of these points."""
        usable = self._firsts_of(width, align)
        if position is not None:
            self._advance(position)
        for first in preferred:
            if first >= 0 and usable >> first & 1 and self._fits(first, parts):
                return first
        if position is not None:
            free = ~self._busy
            for part in parts:
                if part.segments[0][0] == position:
                    usable &= (free if part.width == 1 else _runs(free, part.width)) >> part.first
            if width < 4:  # narrow values fill up what is left beside others, so that places for wide ones stay whole
                whole = _runs(free & self._usable, 2 * width) & self._multiples_of(2 * width)
                beside = usable & ~(whole | whole << width) & self._reached
                first = self._lowest(beside, parts)
                if first is not None:
                    return first
                usable ^= beside
        return self._lowest(usable, parts)

    def _lowest(self, firsts: int, parts: Sequence[LivePart]) -> int | None:
        """The lowest of these registers from which the parts are free."""
        while firsts:
            lowest = firsts & -firsts
            first = lowest.bit_length() - 1
            if self._fits(first, parts):
                return first
            firsts ^= lowest
        return None

    def _fits(self, first: int, parts: Sequence[LivePart]) -> bool:
        taken, origin = self._taken, self._origin
        for part in parts:
            start, shift, points = first + part.first, part.segments[0][0] - origin, part.points
            for register in range(start, start + part.width):
                if taken[register] >> shift & points:
                    return False
        return True

    def _advance(self, position: int) -> None:
        changes = self._changes
        while changes and changes[0][0] <= position:
            _, kind, registers = heappop(changes)
            self._busy = self._busy | registers if kind == START else self._busy & ~registers
        if position - self._origin > self.stride:
            self._taken = [taken >> position - self._origin for taken in self._taken]
            self._origin = position

    def _firsts_of(self, width: int, align: int) -> int:
        """Where a value may begin, whatever is taken."""
        found = self._firsts.get((width, align))
        if found is None:
            found = self._multiples_of(align) & ((1 << max(0, self.count - width + 1)) - 1) & _runs(self._usable, width)
            self._firsts[width, align] = found
        return found

    def _multiples_of(self, align: int) -> int:
        if align not in self._multiples:
            self._multiples[align] = sum(1 << k for k in range(0, self.count, align))
        return self._multiples[align]


def _runs(registers: int, width: int) -> int:
    """The registers from which `width` in a row are in the set."""
    if width == 2:
        return registers & registers >> 1
    have = 1
    while have < width:
        step = min(have, width - have)
        registers &= registers >> step
        have += step
    return registers
