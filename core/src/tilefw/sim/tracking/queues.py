"""The unfinished events of a wave, in queues: what a past must keep of them.

An event of an ordered kind (queue and order) is known to be finished by a wait that leaves `n` events when at least `n` later
ones of its kind were issued, one of no order only when `n` is 0 (see `program.Wait`). So a past needs of an ordered kind the newest
events, as many as the program's waits leave at most, and of all older ones and those of no order only which they are: any
wait that reaches them finishes them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tilefw.sim.program import Instruction

Kind = tuple[str, str]


class QueuedEvent(NamedTuple):
    """What instruction number `instruction` begins with its issue number `issue`."""

    instruction: int
    issue: int


class Unfinished(NamedTuple):
    """Events of one kind: the newest in order of issue (None for one that writes no register), and all older ones."""

    kind: Kind
    older: frozenset[QueuedEvent]
    newest: tuple[QueuedEvent | None, ...]


Past = tuple[Unfinished, ...]


def most_left(instructions: Iterable[Instruction]) -> dict[str, int]:
    """By queue, the most events that a wait of the program leaves unfinished."""
    most: dict[str, int] = {}
    for instruction in instructions:
        for queue, count in () if instruction.waits is None else instruction.waits.limits:
            most[queue] = max(most.get(queue, 0), count)
    return most


@dataclass(slots=True)
class OutstandingEvents:
    """The events of one kind while a block is gone through."""

    older: set[QueuedEvent] = field(default_factory=set)
    newest: list[QueuedEvent | None] = field(default_factory=list)

    def begin(self, event: QueuedEvent | None, kept: int) -> None:
        self.newest.append(event)
        while len(self.newest) > kept:
            oldest = self.newest.pop(0)
            if oldest is not None:
                self.older.add(oldest)

    def leave(self, count: int, ordered: bool) -> None:
        """A wait leaves at most `count` events of the queue."""
        if ordered or count == 0:
            self.older.clear()
            self.newest = self.newest[-count:] if count else []

    def events(self) -> Iterable[tuple[QueuedEvent, int]]:
        """Each event and how many later ones of its kind are known: a wait that leaves no more than these finishes it."""
        for place, event in enumerate(reversed(self.newest)):
            if event is not None:
                yield event, place
        for event in self.older:
            yield event, len(self.newest)
