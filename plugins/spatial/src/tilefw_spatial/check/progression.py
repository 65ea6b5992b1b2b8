"""Cycles and diagonals of bursts as arithmetic progressions: what two have in common, which ones of a list meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import gcd
from typing import Generic, TypeVar

from tilefw.api.integers import ceil_div

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progression:
    """The numbers start, start + period, …, `count` of them; the period is at least 1."""

    start: int
    period: int
    count: int

    @property
    def last(self) -> int:
        return self.start + (self.count - 1) * self.period

    def index(self, number: int) -> int:
        """Which of the numbers this is; -1 where it is none."""
        index, rest = divmod(number - self.start, self.period)
        return index if not rest and 0 <= index < self.count else -1

    def common(self, other: Progression) -> int | None:
        """The first number that is in both."""
        low, high = max(self.start, other.start), min(self.last, other.last)
        if low > high:
            return None
        if self.period == other.period == 1:
            return low
        divisor = gcd(self.period, other.period)
        apart = other.start - self.start
        if apart % divisor:
            return None
        # Solve start + i · period = other.start (mod other.period) for i: the Chinese remainder theorem for two moduli.
        modulus = other.period // divisor
        i = apart // divisor * pow(self.period // divisor, -1, modulus) % modulus if modulus > 1 else 0
        found, step = self.start + i * self.period, self.period * modulus
        found += max(0, ceil_div(low - found, step)) * step
        found -= (found - low) // step * step
        return found if found <= high else None


@dataclass(frozen=True, slots=True)
class ProgressionSpan(Generic[T]):
    """A progression and whose it is."""

    numbers: Progression
    owner: T


def meetings(spans: Sequence[ProgressionSpan[T]]) -> Iterator[tuple[ProgressionSpan[T], ProgressionSpan[T], int]]:
    """Every two that have a number in common, with the first one, in order of their starts."""
    open_: list[tuple[int, int, ProgressionSpan[T]]] = []
    for serial, span in enumerate(sorted(spans, key=lambda s: s.numbers.start)):
        while open_ and open_[0][0] < span.numbers.start:
            heappop(open_)
        for _, _, other in open_:
            number = span.numbers.common(other.numbers)
            if number is not None:
                yield other, span, number
        heappush(open_, (span.numbers.last, serial, span))
