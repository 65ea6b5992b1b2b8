"""Accumulators by time: which rows of which bank hold sums from a stream operation's first product until they are drained."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilefw_spatial.machine import Machine

KEPT = 512
"""Sums of a plane that are looked at; in the time of older ones nothing new is placed."""


@dataclass(frozen=True, slots=True)
class _AccumulatorRange:
    """Rows [first, end) of a plane's accumulators, both banks in a row, in cycles [since, until)."""

    first: int
    end: int
    since: int
    until: int


class Accumulators:
    """What each plane's accumulators hold, and when."""

    def __init__(self, machine: Machine) -> None:
        self._rows, self._banks = machine.accumulator_rows, machine.accumulator_banks
        self._ranges: dict[str, deque[_AccumulatorRange]] = defaultdict(deque)
        self._least: dict[str, int] = defaultdict(int)

    def least(self, planes: Sequence[str]) -> int:
        """The cycle before which no new sums may begin."""
        return max(self._least[plane] for plane in planes)

    def take(self, planes: Sequence[str], rows: int, since: int, until: int) -> int | None:
        """The address of `rows` accumulators of one bank that are free on all `planes` in [since, until), taken; None if there are
        none."""
        busy = sorted((taken.first, taken.end) for taken in self._meeting(planes, since, until))
        for bank in range(self._banks):
            at = bank * self._rows
            for first, end in busy:
                if first >= at + rows:
                    break
                at = max(at, end)
            if at + rows <= (bank + 1) * self._rows:
                for plane in planes:
                    self._add(plane, _AccumulatorRange(at, at + rows, since, until))
                return at
        return None

    def _add(self, plane: str, taken: _AccumulatorRange) -> None:
        found = self._ranges[plane]
        found.append(taken)
        if len(found) > KEPT:
            self._least[plane] = max(self._least[plane], found.popleft().until)

    def release(self, planes: Sequence[str]) -> None:
        """Give back what was taken last."""
        for plane in planes:
            self._ranges[plane].pop()

    def next_end(self, planes: Sequence[str], since: int, until: int) -> int:
        """When the first of the conflicting ones is drained."""
        return min(taken.until for taken in self._meeting(planes, since, until))

    def _meeting(self, planes: Sequence[str], since: int, until: int) -> Iterator[_AccumulatorRange]:
        for plane in planes:
            yield from (taken for taken in self._ranges[plane] if taken.since < until and since < taken.until)
