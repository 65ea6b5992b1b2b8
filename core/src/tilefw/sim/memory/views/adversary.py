"""Who chooses where the model leaves a choice: an adversary by seed, which is fair, or one who prefers what is new."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol


class Choices(Protocol):
    """Decides what the memory model leaves open."""

    def message(self, agent: int, location: object, options: Sequence[int]) -> int:
        """The message that a read takes: a place in `options`, which are indices of messages in the order of storing."""
        ...

    def placements(self, count: int) -> Sequence[int]:
        """Which sets of `count` unordered messages (as masks) a store may be put before; tried in this order. 0 appends."""
        ...


class Adversary:
    """Stale values as often as the model allows them, by seed. After `patience` stale reads of one location in a row an agent reads
    the newest: a loop that waits for a value ends if anybody stores it."""

    def __init__(self, seed: int = 0, stale: float = 0.6, patience: int = 8, early: float = 0.25):
        self._random = random.Random(seed)
        self._stale, self._patience, self._early = stale, patience, early
        self._waited: dict[tuple[int, object], int] = {}

    def begin(self) -> None:
        """A new schedule: nobody has waited yet."""
        self._waited.clear()

    def message(self, agent: int, location: object, options: Sequence[int]) -> int:
        newest = len(options) - 1
        waited = self._waited.get((agent, location), 0)
        if newest == 0 or waited >= self._patience or self._random.random() >= self._stale:
            self._waited[agent, location] = 0
            return newest
        self._waited[agent, location] = waited + 1
        return int(self._random.random() * newest)

    def placements(self, count: int) -> Sequence[int]:
        if count and self._random.random() < self._early:
            return int(self._random.random() * (1 << count)), 0
        return (0,)

    def pick(self, count: int) -> int:
        """One of `count`, for schedules."""
        return int(self._random.random() * count)

    def happens(self, chance: float) -> bool:
        """Whether something of this chance happens."""
        return self._random.random() < chance
