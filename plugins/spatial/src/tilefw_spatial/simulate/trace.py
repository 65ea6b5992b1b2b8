"""What each queue did when, for timelines: one activity a burst."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefw_spatial.simulate.engine import Simulation, last_event
from tilefw_spatial.text.statement import statement


@dataclass(frozen=True, slots=True)
class Activity:
    """A burst in its queue: `count` vectors from cycle `begin` on, `period` cycles apart; its last effect is at `effect`."""

    chip: int
    queue: str
    text: str
    begin: int
    count: int
    period: int
    effect: int

    @property
    def end(self) -> int:
        """The first cycle after the last issue."""
        return self.begin + (self.count - 1) * self.period + 1


def activities(simulation: Simulation) -> Iterator[Activity]:
    """Every burst, queue by queue."""
    machine = simulation.machine
    for burst in simulation.bursts:
        yield Activity(
            burst.chip, burst.queue.name, statement(machine, burst.inst), burst.time, burst.count, burst.period,
            last_event(machine, burst),
        )
