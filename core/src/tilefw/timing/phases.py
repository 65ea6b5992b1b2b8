"""Phases of barriers that count: what waves of a workgroup arrive with, and copies of an engine that complete there.

A phase is a barrier's address and the number of phases that it has ended before. It is over when all has come that the record has
for it: arrivals, and copies that bring their bytes. A phase that the record has nothing for is over from the beginning, as the one
is that a parity names before the first. What other workgroups of a cluster arrive with is taken to have come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilefw.api.errors import UnsupportedError
from tilefw.timing.streams import WaveStream

ARRIVES = ("arrive", "arrive_behind", "bulk")
"""Roles of instructions that a phase waits for."""
_RETRY = 4  # instructions of a wait that is tried again: the wait, a branch, and what is between

Phase = tuple[int, int]


@dataclass(slots=True)
class Phases:
    """Of one workgroup: by phase `left`, what is still to come, and `done`, when the last of what has come is there, and what that
    waited for."""

    left: Counter[Phase]
    done: dict[Phase, tuple[float, str]] = field(default_factory=dict)

    def arrived(self, phase: Phase, done: float, cause: str) -> bool:
        """Something for a phase will be there at `done`; tells whether that was the last."""
        if done > self.end(phase)[0]:
            self.done[phase] = (done, cause)
        self.left[phase] -= 1
        return self.complete(phase)

    def complete(self, phase: Phase) -> bool:
        """Whether it is known when a phase ends."""
        return self.left[phase] <= 0

    def end(self, phase: Phase) -> tuple[float, str]:
        """When a complete phase ends, and what it waited for until then."""
        return self.done.get(phase, (0.0, ""))


def phases_of(streams: Sequence[WaveStream], roles: Sequence[str]) -> Phases | None:
    """The phases of a workgroup, whose waves' streams these are, by the roles of instructions; None where nothing is waited for.

    Raises UnsupportedError TFW0666 where the record has no barriers that waits are for."""
    if not any(roles[number] == "await" for stream in streams for number in set(stream.instructions)):
        return None
    if not any(stream.barriers for stream in streams):
        raise UnsupportedError("a record without its waits' barriers that count has no model of time", code="TFW0666")
    uses = (use for stream in streams for place in stream.barriers for use in begun(stream, place, roles))
    return Phases(Counter(uses))


def begun(stream: WaveStream, place: int, roles: Sequence[str]) -> list[Phase]:
    """The phases of its own workgroup's barriers that what stands at a place of a stream is for."""
    if roles[stream.instructions[place]] not in ARRIVES:
        return []
    return [(use.address, use.ended) for use in stream.barriers.get(place, ()) if use.owner == stream.workgroup]


def awaited(stream: WaveStream, place: int) -> list[Phase]:
    """The phases that the wait at a place of a stream was let go by: the last ones that their barriers had ended."""
    return [(use.address, use.ended - 1) for use in stream.barriers.get(place, ())]


def settled(streams: Sequence[WaveStream], roles: Sequence[str]) -> list[WaveStream]:
    """The streams with each wait once, however often the simulator tried it."""
    return [_settled(stream, roles) for stream in streams]


def _settled(stream: WaveStream, roles: Sequence[str]) -> WaveStream:
    numbers = stream.instructions
    if not any(roles[number] == "await" for number in set(numbers)):
        return stream
    kept: list[int] = []
    place = 0
    while place < len(numbers):
        if roles[numbers[place]] == "await":
            place = _last_try(numbers, place)
        kept.append(place)
        place += 1
    return stream.kept(kept)


def _last_try(numbers: Sequence[int], place: int) -> int:
    """The place of the last try of a wait that is tried again and again from this one on."""
    number, last, at = numbers[place], place, place + 1
    while at < len(numbers) and number <= numbers[at] < number + _RETRY:
        if numbers[at] == number:
            last = at
        at += 1
    return last
