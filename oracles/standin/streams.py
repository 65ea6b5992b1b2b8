"""A stand-in's cards and streams: what is put on a stream is done when somebody waits for it, and not before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CardModel:
    """A card of the stand-in; `architecture` is what the library says of its chip."""

    architecture: str
    name: str = "Stand-in"
    memory_bytes: int = 1 << 30
    peers: frozenset[int] = frozenset()


class StatusError(Exception):
    """A function gives this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(eq=False)
class Stream:
    """A queue of work of one card; `done` counts what was taken off it."""

    card: int
    queue: list[Callable[[], None]] = field(default_factory=list)
    done: int = 0

    def put(self, work: Callable[[], None]) -> None:
        self.queue.append(work)

    def run(self, until: int | None = None) -> None:
        """Do the work up to a place in the queue, or all of it."""
        end = len(self.queue) if until is None else until
        while self.done < end:
            work = self.queue[self.done]
            self.done += 1
            work()


@dataclass(eq=False)
class Event:
    """An event: where its last record stands, and the card's time in seconds when that was reached."""

    card: int
    stream: Stream | None = None
    place: int = 0
    time: float | None = None

    def record(self, stream: Stream, now: Callable[[], float]) -> None:
        self.stream, self.time = stream, None
        self.place = len(stream.queue) + 1

        def reach() -> None:
            self.time = now()

        stream.put(reach)

    def wait(self) -> None:
        """Do what comes before the record; an event that was never recorded has happened."""
        if self.stream is not None:
            self.stream.run(self.place)
