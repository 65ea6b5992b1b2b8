"""One instruction a cycle earlier or later: what the checker says of it, compared with what the simulators do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from cycles.launched import MACHINE, Launched, Ran
from tilefw_spatial.check import ShiftVerdict, movable, shift, shifted

TAKEN, FINDING, OTHER, SAME = "its queue is taken", "a finding", "other results or cycles", "nothing to be seen"


@dataclass
class Shifts:
    """What was seen: by the checker's verdict and what the simulator did; harmless ones by op; where the two contradict."""

    seen: Counter[tuple[bool, str]] = field(default_factory=Counter)
    harmless: Counter[str] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.seen.total()

    def sample(self, launched: Launched, rng: random.Random, count: int, slowly: bool = False) -> None:
        """Shift so many instructions, one at a time. `slowly`: what is harmless is run on the slow simulator as well."""
        sound, before = launched.judged(), launched.fast()
        assert not sound.problems and not before.findings, launched.name
        for chip, queue, index, by in _drawn(launched, rng, count):
            verdict = shift(launched.program, MACHINE, chip, queue, index, by, sound)
            self._one(launched, before, (chip, queue, index, by), verdict, slowly)

    def _one(
        self, launched: Launched, before: Ran, what: tuple[int, str, int, int], verdict: ShiftVerdict, slowly: bool
    ) -> None:
        program = shifted(launched.program, *what)
        if program is None:
            self.seen[False, TAKEN] += 1
            return
        after = launched.moved(program).fast()
        seen = FINDING if after.findings else SAME if after.same(before) else OTHER
        self.seen[verdict.harmless, seen] += 1
        if not verdict.harmless:
            return
        chip, queue, index, _ = what
        self.harmless[launched.program.chips[chip].queues[queue][index].op] += 1
        if seen != SAME or (slowly and not launched.moved(program).slow().same(before)):
            self.contradictions.append(f"{launched.name}: {what} is said to be harmless: {seen}")


def _drawn(launched: Launched, rng: random.Random, count: int) -> Iterator[tuple[int, str, int, int]]:
    places = list(movable(launched.program))
    for _ in range(count):
        yield (*rng.choice(places), rng.choice([-1, 1]))
