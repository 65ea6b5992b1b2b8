"""What a processor does when, by the model of time: a row for each wave, for each pipe and for each level of memory.

    processor_timeline(chip, launch)      of a recorded launch (launch_time.py): the workgroups that one processor holds at first

A wave's row has what it executes, by source line, and what it waits for between. Waits below `SHORT` cycles are not drawn:
a dependent instruction's few cycles would cut every line into stretches.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tilefw.api.execution_trace import ExecutionTrace
from tilefw.api.timeline import Span, Timeline, Track, Utilisation
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.launch_time import RecordedLaunch, neighbours, prepared
from tilefw.timing.memory_levels import MemoryLevels
from tilefw.timing.observer import Wait
from tilefw.timing.periods import periods
from tilefw.timing.processor import BARRIER, ISSUE, Outcome, ProcessorModel
from tilefw.timing.source_lines import line_of
from tilefw.timing.streams import WaveStream

SHORT = 16
"""Cycles."""
WHOLE = 50_000
"""The most instructions of all waves that are played without leaving out turns of a loop."""
EXECUTES = "executes"


def processor_timeline(chip: ChipTiming, launch: RecordedLaunch, warm: bool = False) -> tuple[Timeline, tuple[Utilisation, ...]]:
    """The timeline of a processor's first workgroups in cycles of its clock, and how much of the time each pipe and each way to
    memory was taken. Where more than WHOLE instructions are executed, only some turns of a loop whose turns are alike are played;
    the timeline's facts say how many."""
    found, spread = neighbours(chip, launch), launch.spread
    waves = prepared(chip, launch)
    repeated = periods(waves) if sum(len(stream.instructions) for stream in waves) > WHOLE else None
    played = waves if repeated is None else list(repeated.long)
    log = _ProcessorLog(launch.own)
    memory = MemoryLevels(chip, found.sharing, spread.active, launch.nbytes if warm else None)
    model = ProcessorModel(
        chip, launch.own.instructions, memory, spread.active, found.together, lanes=launch.own.lanes, observer=log
    )
    outcome = model.run(played)
    facts: dict[str, int | str] = {"workgroups": f"{len({stream.workgroup for stream in played})} of {spread.workgroups}"}
    if repeated is not None:
        facts["turns of the loop"] = f"{repeated.many} of {repeated.turns}"
    rows = (*_wave_rows(log, played), *_resource_rows(chip, log))
    kinds = tuple(dict.fromkeys((EXECUTES, BARRIER, *(level.name for level in chip.levels), *chip.pipes)))
    return Timeline(max(1, math.ceil(outcome.cycles)), rows, kinds, facts), _utilisation(chip, outcome)


@dataclass(slots=True)
class _Stretch:
    """A stretch of a row, in cycles that need not be whole."""

    name: str
    kind: str
    begin: float
    end: float
    busy: float
    count: int = 1

    def follows(self, before: _Stretch) -> bool:
        """Whether both are drawn as one."""
        return (self.name, self.kind) == (before.name, before.kind) and self.begin - before.end < SHORT


@dataclass(slots=True)
class _ProcessorLog:
    """What a processor's observer keeps: the stretches of each wave, and of each resource of a scheduler."""

    trace: ExecutionTrace
    waves: dict[int, list[_Stretch]] = field(default_factory=lambda: defaultdict(list))
    resources: dict[tuple[str, int], list[_Stretch]] = field(default_factory=lambda: defaultdict(list))
    names: dict[int, str] = field(default_factory=dict)

    def issued(self, wave: int, number: int, ready: Wait, issue: Wait, slots: float) -> None:
        """See ProcessorObserver."""
        stretches = self.waves[wave]
        since = stretches[-1].end if stretches else 0.0
        for until, cause in (ready, issue):
            if until - since >= SHORT and cause != ISSUE:
                stretches.append(_Stretch(f"waits for {cause}", cause, since, until, 0.0))
            since = max(since, until)
        _joined(stretches, _Stretch(self._name(number), EXECUTES, issue[0], issue[0] + slots, slots))

    def taken(self, resource: str, scheduler: int, begin: float, cycles: float) -> None:
        """See ProcessorObserver."""
        if cycles:
            _joined(self.resources[resource, scheduler], _Stretch(resource, resource, begin, begin + cycles, cycles))

    def _name(self, number: int) -> str:
        if number not in self.names:
            place, text = line_of(self.trace.instructions[number])
            self.names[number] = f"{place.rpartition('/')[2]} {text}".rstrip()
        return self.names[number]


def _joined(stretches: list[_Stretch], stretch: _Stretch) -> None:
    if not stretches or not stretch.follows(stretches[-1]):
        stretches.append(stretch)
        return
    last = stretches[-1]
    last.end, last.busy, last.count = max(last.end, stretch.end), last.busy + stretch.busy, last.count + 1


def _wave_rows(log: _ProcessorLog, streams: Sequence[WaveStream]) -> Iterable[Track]:
    for place, stream in enumerate(streams):
        spans = _spans(log.waves[place], "instructions")
        if spans:
            yield Track(f"wave {stream.wave}", f"workgroup {stream.workgroup}", spans)


def _resource_rows(chip: ChipTiming, log: _ProcessorLog) -> Iterable[Track]:
    """Pipes in the chip's order, then what is none, which stands behind them: memory."""
    places: Mapping[str, int] = {name: place for place, name in enumerate((*chip.pipes, *(level.name for level in chip.levels)))}
    for resource, scheduler in sorted(log.resources, key=lambda key: (places.get(key[0], len(places)), key)):
        each = chip.pipes.get(resource) == "scheduler"
        name = f"{resource} {scheduler}" if each else resource
        spans = _spans(log.resources[resource, scheduler], "times")
        yield Track(name, "pipes" if resource in chip.pipes else "memory", spans)


def _spans(stretches: Iterable[_Stretch], counted: str) -> tuple[Span, ...]:
    """The stretches in whole cycles, each of one at least, behind one another."""
    spans: list[Span] = []
    free = 0
    for stretch in stretches:
        begin = max(free, math.floor(stretch.begin))
        free = max(begin + 1, round(stretch.end))
        busy = min(free - begin, round(stretch.busy))
        spans.append(Span(stretch.name, begin, free - begin, busy, stretch.kind, {counted: stretch.count}))
    return tuple(spans)


def _utilisation(chip: ChipTiming, outcome: Outcome) -> tuple[Utilisation, ...]:
    """Of all pipes and ways to memory that were taken, the one that was taken longest first."""
    cycles = max(1, math.ceil(outcome.cycles))
    found = [
        Utilisation(name, round(taken), cycles * (chip.schedulers if chip.pipes.get(name) == "scheduler" else 1))
        for name, taken in outcome.busy.items() if taken
    ]
    return tuple(sorted(found, key=lambda one: -one.share))
