"""One launch of one rank as its processors do it alone: when each workgroup issues what it says to other ranks, and when it ends.

Workgroups that are on a processor at once are timed together by the chip's model, as if nothing of other ranks had to be waited for
but an answer that nothing else delays. Processors that execute the same, and ask memory for as much, are timed once.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tilefw.api.errors import LaunchError
from tilefw.api.execution_trace import ExecutionTrace
from tilefw.distributed.node_time.communication import CommunicationEvent, RankAddresses, communication
from tilefw.distributed.node_time.polls import without_failed_polls
from tilefw.sim.program import Barrier, Instruction
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.launch_time import Residency, residency
from tilefw.timing.memory_levels import MemoryLevels
from tilefw.timing.phases import settled
from tilefw.timing.processor import ProcessorModel
from tilefw.timing.sharing import Sharing, contention
from tilefw.timing.streams import WaveStream, streams


@dataclass(frozen=True, slots=True)
class WorkgroupExecution:
    """A workgroup on its own: its events by cycle from the beginning on, and the `cycles` until its end. `after`: the workgroup
    whose place it takes."""

    number: int
    events: tuple[CommunicationEvent, ...]
    cycles: float
    after: int | None


@dataclass(frozen=True, slots=True)
class ExecutedLaunch:
    """A launch of a rank, what it executed, how many `threads` a workgroup of it has (0: nobody knows), and the code's occupancy
    where a tool has told it."""

    rank: int
    name: str
    threads: int
    occupancy: float | None
    trace: ExecutionTrace


_Timed = tuple[dict[tuple[int, int], float], dict[int, float], float]


class RankExecutions:
    """Launches on the ranks of a node of one chip; what they have in common is timed once."""

    def __init__(self, chip: ChipTiming) -> None:
        self.chip = chip
        self._timed: dict[Hashable, _Timed] = {}
        self._codes: dict[int, Sequence[Instruction]] = {}  # kept, since times are found by their identity

    def of(self, launch: ExecutedLaunch, addresses: RankAddresses) -> list[WorkgroupExecution]:
        """The workgroups of a launch, in order. Raises LaunchError TFW0342."""
        trace = launch.trace
        if not launch.threads:
            unknown = f"how many threads a workgroup of {launch.name} has is not known"
            raise LaunchError(unknown, code="TFW0342", help="give `block`")
        self._codes[id(trace.instructions)] = trace.instructions
        waves = math.ceil(launch.threads / trace.lanes)
        spread = residency(self.chip, math.prod(trace.grid), waves, launch.occupancy)
        model = _LaunchModel(self.chip, trace, spread, self._timed)
        found = [one for group in _together(spread) for one in model.of(group, addresses)]
        return sorted(found, key=lambda one: one.number)


def _together(spread: Residency) -> list[list[int]]:
    """The workgroups that a processor has at once: all are dealt out in turn, and more than fit come in rounds."""
    by_processor = [range(first, spread.workgroups, spread.active) for first in range(spread.active)]
    return [list(mine[at : at + spread.resident]) for mine in by_processor for at in range(0, len(mine), spread.resident)]


class _LaunchModel:
    def __init__(self, chip: ChipTiming, trace: ExecutionTrace, spread: Residency, timed: dict[Hashable, _Timed]) -> None:
        self._chip, self._trace, self._spread, self._timed = chip, trace, spread, timed
        self._sharing, self._contention = Sharing(chip, trace), contention([trace])
        self._roles = [chip.cost(instruction).role for instruction in trace.instructions]
        self._barriers = frozenset(
            number for number, one in enumerate(trace.instructions)
            if isinstance(one.flow, Barrier) and one.flow.scope == "workgroup" and one.flow.action == "sync"
        )
        by_workgroup = defaultdict[int, list[WaveStream]](list)
        for stream in settled(streams(trace, range(spread.workgroups)), self._roles):
            by_workgroup[stream.workgroup].append(stream)
        self._waves = {number: without_failed_polls(waves, self._barriers) for number, waves in by_workgroup.items()}

    def of(self, group: Sequence[int], addresses: RankAddresses) -> list[WorkgroupExecution]:
        """The workgroups of a group that a processor has at once."""
        waves = [wave for number in group for wave in self._waves[number]]
        events = communication(waves, self._trace.instructions, addresses)
        marks, ends, cycles = self._times(waves, events)
        drain = cycles - max(ends.values())  # what the workgroups have left to their processor's memory
        found = []
        for number in group:
            mine = [place for place, wave in enumerate(waves) if wave.workgroup == number]
            end = max(ends[place] for place in mine) + drain
            own = [event for event in events if mine[0] <= event.wave <= mine[-1]]
            for event in own:
                event.cycle = marks[event.wave, event.place]
            before = number - self._spread.active * self._spread.resident
            found.append(WorkgroupExecution(number, tuple(_in_order(own)), end, before if before >= 0 else None))
        return found

    def _times(self, waves: Sequence[WaveStream], events: Sequence[CommunicationEvent]) -> _Timed:
        marked = tuple((event.wave, event.place, event.remote_latency, bool(event.writes)) for event in events)
        first = waves[0].workgroup
        code = tuple((wave.workgroup == first, array("i", wave.instructions).tobytes(), _asked(wave)) for wave in waves)
        key = (id(self._trace.instructions), self._spread, code, marked)
        if key not in self._timed:
            memory = MemoryLevels(self._chip, self._sharing, self._spread.active)
            model = ProcessorModel(
                self._chip, self._trace.instructions, memory, self._spread.active, self._contention, tells=False,
                lanes=self._trace.lanes,
            )
            outcome = model.run(waves)
            self._timed[key] = outcome.marks, outcome.ends, outcome.cycles
        return self._timed[key]


def _asked(wave: WaveStream) -> bytes:
    """How much each access of a wave asks for, wherever it lies."""
    found = array("q")
    for accesses in wave.accesses.values():
        for access in accesses:
            found.extend((len(access.chunks), access.passes, access.repeats))
    return found.tobytes()


def _in_order(events: Sequence[CommunicationEvent]) -> list[CommunicationEvent]:
    """By cycle; those with words are in the order of the simulator as well, so that no wait comes before what it has led to."""
    latest = 0.0
    for event in sorted((event for event in events if event.words), key=lambda event: event.moment):
        latest = event.cycle = max(event.cycle, latest)
    return sorted(events, key=lambda event: (event.cycle, event.moment if event.words else 0))
