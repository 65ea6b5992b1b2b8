"""Which spilled values share a slot: one takes the slot of another whose life has ended where its own begins."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

Slot = TypeVar("Slot")


class SharedSlots(Generic[Slot]):
    """The slots of values that are asked for in the order in which their lives begin; as few of each kind as live at once."""

    def __init__(self) -> None:
        self._until: dict[Hashable, list[tuple[int, int, Slot]]] = {}  # by kind, a heap: to which point it is taken
        self._count = 0

    def take(self, kind: Hashable, begin: int, end: int, fresh: Callable[[], Slot]) -> Slot:
        """A slot for a value that lives from `begin` to before `end`, a fresh one where none is free."""
        taken = self._until.setdefault(kind, [])
        slot = heappop(taken)[2] if taken and taken[0][0] <= begin else fresh()
        self._count += 1
        heappush(taken, (end, self._count, slot))
        return slot
