"""A whole launch from a part of it: how many workgroups a processor holds, the rounds that they come in, the tail, the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.api.execution_trace import ExecutionTrace
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.memory_levels import MemoryLevels
from tilefw.timing.processor import Outcome, ProcessorModel
from tilefw.timing.streams import streams


@dataclass(frozen=True, slots=True)
class Residency:
    """`workgroups` of a launch on a chip: `resident` on one processor at once, on `active` processors; `rounds` is how often the
    busiest processor takes a workgroup in the place of one that has ended, counted in workgroups."""

    workgroups: int
    resident: int
    active: int
    most: int


@dataclass(frozen=True, slots=True)
class PredictedTime:
    """`cycles` of the processors' clock without the `seconds` of the start; `outcome` is that of one processor, whose workgroups'
    numbers are `sampled`, and `scale` what all of the processor's work is to what was simulated."""

    cycles: float
    seconds: float
    residency: Residency
    outcome: Outcome
    sampled: tuple[int, ...]
    scale: float


def residency(chip: ChipTiming, workgroups: int, waves: int, occupancy: float | None) -> Residency:
    """How a grid spreads over the chip; an unknown `occupancy` counts as the most that waves leave room for."""
    fits = chip.resident_waves // waves if occupancy is None else round(occupancy * chip.resident_waves) // waves
    active = min(chip.processors, workgroups)
    most = -(-workgroups // active)
    return Residency(workgroups, max(1, min(fits, most)), active, most)


def wanted(chip: ChipTiming, spread: Residency, budget: int) -> tuple[int, ...]:
    """The workgroups to record, at most `budget`: those that run at once on all processors, or the first of them."""
    together = min(spread.workgroups, spread.active * spread.resident)
    own = [place * spread.active for place in range(spread.resident)]
    beside = [number for number in range(together) if number % spread.active]
    chosen = [*own, *beside][: max(budget, len(own))]
    return tuple(sorted(number for number in chosen if number < spread.workgroups))


def launch_time(chip: ChipTiming, trace: ExecutionTrace, spread: Residency, warm: int | None = None) -> PredictedTime:
    """The time of a launch of which `trace` has a part. `warm`: bytes of its arrays, where a launch of before has left them in the
    caches that hold so much."""
    there = {number for batch in trace.batches for number in batch.workgroups}
    own = tuple(number for number in (place * spread.active for place in range(spread.resident)) if number in there)
    once = _simulated(chip, trace, own, spread, warm)
    cycles = once.cycles + chip.workgroup_cycles
    outcome, scale = once, 1.0
    if spread.most > len(own):
        again = _simulated(chip, trace, own, spread, warm, rounds=2)
        each = max(again.cycles - once.cycles, 0.0) / len(own)
        cycles += each * (spread.most - len(own))
        outcome, scale = again, spread.most / (2 * len(own))
    return PredictedTime(cycles, cycles / chip.clock_hz + chip.launch_seconds, spread, outcome, own, scale)


def _simulated(
    chip: ChipTiming, trace: ExecutionTrace, own: Sequence[int], spread: Residency, warm: int | None, rounds: int = 1
) -> Outcome:
    processor = ProcessorModel(chip, trace.instructions, MemoryLevels(chip, trace, warm), spread.active)
    return processor.run(streams(trace, own), rounds)
