"""Phases of counting barriers: copies of an engine that waves of a workgroup start, and wait for phase by phase.

A record has no addresses of barriers. Waves of a loop wait for phases in the order in which they were begun, and phases of a kernel
have equally many copies of each wave, but the last ones of a loop, which may have none; where that is not so, there is no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilefw.api.errors import UnsupportedError
from tilefw.timing.streams import WaveAccess, WaveStream

_RETRY = 4  # instructions of a wait that is tried again: the wait, a branch, and what is between


@dataclass(slots=True)
class Phases:
    """Of one workgroup: `each`, copies of a phase by wave, in the first `count` phases; `done`, of the phases that have begun,
    when the last copy that is known of ends, `left`, copies that are still to come."""

    count: int
    each: dict[int, int]
    done: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    made: dict[int, int] = field(default_factory=dict)

    def copied(self, wave: int, done: float, cause: str) -> int | None:
        """A wave's next copy ends at `done`; gives the phase that is complete with it."""
        count = self.made.get(wave, 0)
        self.made[wave] = count + 1
        phase = count // self.each[wave]
        while len(self.done) <= phase:
            self.done.append(0.0)
            self.causes.append("")
            self.left.append(sum(self.each.values()))
        if done > self.done[phase]:
            self.done[phase], self.causes[phase] = done, cause
        self.left[phase] -= 1
        return None if self.left[phase] else phase

    def complete(self, phase: int) -> bool:
        """Whether all copies of a phase have been started."""
        return phase >= self.count or (phase < len(self.left) and not self.left[phase])

    def end(self, phase: int) -> tuple[float, str]:
        """When a complete phase ends, and what it waited for until then."""
        return (self.done[phase], self.causes[phase]) if phase < self.count else (0.0, "")


def phases_of(streams: Sequence[WaveStream], roles: Sequence[str]) -> Phases | None:
    """The phases of a workgroup, whose waves' streams these are, by the roles of instructions; None where nothing is waited for.

    Raises UnsupportedError TFW0666 where copies do not divide evenly into phases."""
    if not any(roles[number] == "await" for stream in streams for number in set(stream.instructions)):
        return None
    begun = sum(_executed(stream, roles, "phase") for stream in streams)
    copies = {stream.wave: _executed(stream, roles, "bulk") for stream in streams}
    waits = max(sum(roles[number] == "await" for number in stream.instructions) for stream in streams)
    count = next((n for n in range(begun, 0, -1) if not any(made % n for made in copies.values())), 0)
    if waits > begun or not any(copies.values()) or 2 * count < begun:
        raise UnsupportedError(
            "waits on counting barriers that are not for an engine's copies have no model of time", code="TFW0666",
            note=f"{begun} phases are begun, {waits} waited for, with {sum(copies.values())} copies",
        )
    return Phases(count, {wave: made // count for wave, made in copies.items() if made})


def settled(streams: Sequence[WaveStream], roles: Sequence[str]) -> list[WaveStream]:
    """The streams with each wait once, however often the simulator tried it."""
    return [_settled(stream, roles) for stream in streams]


def _settled(stream: WaveStream, roles: Sequence[str]) -> WaveStream:
    numbers = stream.instructions
    if not any(roles[number] == "await" for number in set(numbers)):
        return stream
    kept: list[int] = []
    accesses: dict[int, list[WaveAccess]] = {}
    place = 0
    while place < len(numbers):
        number = numbers[place]
        if roles[number] == "await":
            place = _last_try(numbers, place)
        if place in stream.accesses:
            accesses[len(kept)] = stream.accesses[place]
        kept.append(number)
        place += 1
    return WaveStream(stream.workgroup, stream.wave, kept, accesses)


def _last_try(numbers: Sequence[int], place: int) -> int:
    """The place of the last try of a wait that is tried again and again from this one on."""
    number, last, at = numbers[place], place, place + 1
    while at < len(numbers) and number <= numbers[at] < number + _RETRY:
        if numbers[at] == number:
            last = at
        at += 1
    return last


def _executed(stream: WaveStream, roles: Sequence[str], role: str) -> int:
    return sum(role == roles[stream.instructions[place]] for place in stream.accesses)
