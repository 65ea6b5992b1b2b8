"""What each queue did when, for timelines: one activity a burst."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilefw.api import Span, Timeline, Track
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import Queue
from tilefw_spatial.program import QueueInst
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.engine import Simulation, last_event
from tilefw_spatial.simulate.utilisation import occupied
from tilefw_spatial.text.statement import statement

KINDS: Mapping[str, str] = {
    "RD": "read", "GTH": "read", "WR": "write", "SCT": "write", "LW": "load weights", "IW": "load weights", "MAC": "multiply",
    "DRN": "drain", "SND": "send", "RCV": "receive",
}
"""What a burst is about, by the row of its instruction; all others by their unit."""
_UNITS = {"VXM": "vector", "SXM": "switch"}
_CONTROL = "control"  # NTFY, CFG
ALL_KINDS = tuple(dict.fromkeys((*KINDS.values(), *_UNITS.values(), _CONTROL)))


@dataclass(frozen=True, slots=True)
class Activity:
    """A burst in its queue: `count` vectors from cycle `begin` on, `period` cycles apart; its last effect is at `effect`."""

    chip: int
    queue: str
    text: str
    kind: str
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
    texts: dict[QueueInst, str] = {}
    for burst in simulation.bursts:
        text = texts.get(burst.inst)
        if text is None:
            text = texts[burst.inst] = statement(machine, burst.inst)
        yield Activity(
            burst.chip, burst.queue.name, text, _kind(burst), burst.time, burst.count, burst.period, last_event(machine, burst)
        )


def _kind(burst: Burst) -> str:
    row = OPS[burst.inst.op][0]
    return KINDS.get(row.name) or _UNITS.get(row.unit, _CONTROL)


def timeline(simulation: Simulation) -> Timeline:
    """Every queue that issued something, west to east, with its bursts; a chip's queues by the units that they steer."""
    machine, program = simulation.machine, simulation.program
    spans: dict[tuple[int, str], list[Span]] = {}
    for act in activities(simulation):
        facts = {"vectors": act.count, "last effect": act.effect, **({"cycles apart": act.period} if act.period > 1 else {})}
        spans.setdefault((act.chip, act.queue), []).append(
            Span(act.text, act.begin, act.end - act.begin, act.count, act.kind, facts)
        )
    filled = occupied(simulation)
    from_the_west = sorted(machine.queues.values(), key=lambda queue: queue.position)
    rows: list[Track] = []
    for chip in range(len(program.chips)):
        for queue in from_the_west:
            if (chip, queue.name) in spans:
                facts = {"rows filled": int(filled[chip, queue.name].sum())} if queue.kind == "MEM" else {}
                group = _group(queue) if len(program.chips) == 1 else f"chip {chip} {_group(queue)}"
                rows.append(Track(queue.name, group, tuple(spans[chip, queue.name]), facts))
    facts = {"machine": machine.name, "cycles predicted": program.cycles, "clock in Hz": machine.clock_hz}
    return Timeline(simulation.cycles, tuple(rows), ALL_KINDS, facts)


def _group(queue: Queue) -> str:
    """The unit that a queue steers; all slices of a side are one."""
    return {"MEM": queue.unit[: len("MEM.W")], "C2C": "C2C"}.get(queue.kind, queue.unit)
