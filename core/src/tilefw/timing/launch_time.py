"""A whole launch from a part of it: how many workgroups a processor holds, the rounds that they come in, the tail, the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilefw.api.execution_trace import ExecutionTrace
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.memory_levels import MemoryLevels
from tilefw.timing.periods import extended, periods
from tilefw.timing.phases import settled
from tilefw.timing.processor import REAL, SPILLS, Outcome, ProcessorModel
from tilefw.timing.sharing import Sharing, contention
from tilefw.timing.streams import WaveStream, streams

if TYPE_CHECKING:
    from tilefw.timing.without import Without


@dataclass(frozen=True, slots=True)
class Residency:
    """`workgroups` of a launch on a chip: `resident` on one processor at once, on `active` processors, the busiest of which has
    `most` of them in all."""

    workgroups: int
    resident: int
    active: int
    most: int


@dataclass(frozen=True, slots=True)
class PredictedTime:
    """`cycles` of the processors' clock without the `seconds` of the start; `outcome` is that of one processor, whose workgroups'
    numbers are `sampled`, and `scale` what all of the processor's work is to what was simulated. `turns`: of the loop of each wave,
    where only some of them were timed (`periods.py`), or 0. `each`: what one more workgroup of a processor adds."""

    cycles: float
    seconds: float
    residency: Residency
    outcome: Outcome
    sampled: tuple[int, ...]
    scale: float
    each: float = 0.0
    turns: int = 0


def residency(chip: ChipTiming, workgroups: int, waves: int, occupancy: float | None) -> Residency:
    """How a grid spreads over the chip; an unknown `occupancy` counts as the most that waves leave room for."""
    fits = chip.resident_waves // waves if occupancy is None else round(occupancy * chip.resident_waves) // waves
    active = min(chip.processors, workgroups)
    most = -(-workgroups // active)
    return Residency(workgroups, max(1, min(fits, most)), active, most)


def own_workgroups(spread: Residency, processor: int = 0) -> tuple[int, ...]:
    """The workgroups that one processor holds at first: the hardware deals them out in turn."""
    dealt = (processor + place * spread.active for place in range(spread.resident))
    return tuple(number for number in dealt if number < spread.workgroups)


def dealt(spread: Residency, own: int) -> int:
    """Workgroups that the processor of a recorded launch has in all, `own` of them at first. Where all run at once it need not be
    the busiest."""
    return spread.most if spread.most > spread.resident else own


def samples(spread: Residency) -> tuple[int, ...]:
    """Workgroups that tell whether those of a launch are alike, where all run at once: then the slowest decides. Two by the golden
    section, which no period of a grid's meets, and the last; none where processors take one after the other, or one has all."""
    if spread.most > spread.resident or spread.active == 1:
        return ()
    last = spread.workgroups - 1
    return tuple(sorted({round(last * 0.382), round(last * 0.618), last} - {0}))


def beside(spread: Residency, most: int) -> tuple[int, ...]:
    """The workgroups that run at once on all processors, or the first `most` of them."""
    return tuple(range(min(spread.workgroups, spread.active * spread.resident, most)))


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """What is known of a launch: `own`, the executions of the workgroups of one processor, whole; `beginnings`, how all those begin
    that run at the same time; how they spread, and the bytes of the launch's arrays. `spilled`: bytes a thread that an
    assembler's code stores and loads besides, as often as it says so. `processor`: which one's they are."""

    own: ExecutionTrace
    beginnings: ExecutionTrace
    spread: Residency
    nbytes: int
    spilled: int = 0
    processor: int = 0


def prepared(chip: ChipTiming, launch: RecordedLaunch) -> list[WaveStream]:
    """The streams of the workgroups that a processor holds at once, each wait of them once."""
    roles = [chip.cost(instruction).role for instruction in launch.own.instructions]
    return settled(streams(launch.own, own_workgroups(launch.spread, launch.processor)), roles)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What workgroups have of one another: what they share of memory, and the part of them that each atomic instruction meets."""

    sharing: Sharing
    together: Mapping[int, float]


def neighbours(chip: ChipTiming, launch: RecordedLaunch) -> Neighbours:
    """As the launch was recorded: the same however fast the chip is."""
    return Neighbours(Sharing(chip, launch.beginnings), contention((launch.beginnings, launch.own)))


def launch_time(
    chip: ChipTiming, launch: RecordedLaunch, warm: bool = False, without: Without | None = None, known: Neighbours | None = None,
    tells: bool = True,
) -> PredictedTime:
    """The time of a launch. `warm`: a launch of before has left its arrays in the caches that hold so much. `without`: other
    streams, and what processors are spared; `known`: its neighbours, where somebody has found them. `tells`: as of a
    `ProcessorModel`; without it `cycles` and `seconds` are all that is found."""
    spread, found = launch.spread, neighbours(chip, launch) if known is None else known
    waves = prepared(chip, launch) if without is None else without.waves
    ideal = REAL if without is None else without.ideal
    own = tuple(dict.fromkeys(stream.workgroup for stream in waves))
    repeated = periods(waves)

    def timed(which: Sequence[WaveStream], rounds: int) -> Outcome:
        memory = MemoryLevels(chip, found.sharing, spread.active, launch.nbytes if warm else None)
        model = ProcessorModel(chip, launch.own.instructions, memory, spread.active, found.together, ideal, tells, launch.own.lanes)
        return model.run(which, rounds)

    def simulated(rounds: int) -> Outcome:
        if repeated is None:
            return timed(waves, rounds)
        return extended(timed(repeated.short, rounds), timed(repeated.long, rounds), repeated)

    once, mine = simulated(1), dealt(spread, len(own))
    cycles = once.cycles + chip.workgroup_cycles
    outcome, scale, each = once, 1.0, once.cycles / len(own)
    if mine > len(own):
        again = simulated(2)
        each = max(again.cycles - once.cycles, 0.0) / len(own)
        cycles += each * (mine - len(own))
        outcome, scale = again, mine / (2 * len(own))
    if launch.spilled and chip.spills_later and not ideal.spills:
        added = _spilling(chip, launch, waves) * mine
        cycles += added
        outcome.limits[SPILLS] = outcome.limits.get(SPILLS, 0.0) + added / scale
        outcome.cycles += added / scale
    turns = 0 if repeated is None else repeated.turns
    return PredictedTime(cycles, cycles / chip.clock_hz + chip.launch_seconds, spread, outcome, own, scale, each, turns)


def _spilling(chip: ChipTiming, launch: RecordedLaunch, waves: Sequence[WaveStream]) -> float:
    """Cycles of a workgroup's spills, on the way to the processor's own cache: of an assembler's code only their number is known,
    and each counts as often as the code's instructions are executed on average."""
    of_one = [stream for stream in waves if stream.workgroup == waves[0].workgroup]
    turns = sum(len(stream.instructions) / max(1, len(set(stream.instructions))) for stream in of_one)
    return launch.spilled * launch.own.lanes * turns / chip.levels[0].bytes_per_cycle
