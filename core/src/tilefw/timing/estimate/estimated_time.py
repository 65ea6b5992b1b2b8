"""Seconds of a launch by its program's work on a chip: rounds of workgroups, each as long as its chain, or as what it takes of the
processor's busiest unit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilefw.simt.description import LaneMachine
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.estimate.machine_work import MachineWork, WavesOfChip, work_on
from tilefw.timing.estimate.program_parts import ProgramWork
from tilefw.timing.launch_time import Residency

_BASE_REGISTERS = 24
"""Of a lane, beside its tiles: addresses, counters, masks. An assumption: `bench/estimate_counts.md` has what assemblers give
compiled kernels, which is less by the median, as they keep fewer tiles than tile IR has alive."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds of a launch, how its workgroups spread, and the unit that takes longest."""

    seconds: float
    residency: Residency
    limit: str


def estimated_time(chip: ChipTiming, lanes: LaneMachine, work: ProgramWork, stages: int) -> Estimate:
    """The time of a launch of `work` by workgroups of `lanes`. Of programs that differ, the slowest where all run at once, and
    their mean where processors take one after the other."""
    machine = WavesOfChip(chip, lanes, stages)
    found = [work_on(machine, region) for region in (work.whole, *work.others)]
    spread = _residency(chip, lanes, work, max(one.shared for one in found))
    times = [dict(_units(chip, lanes, work, one, spread)) for one in found]
    cycles = [_together(units.values()) for units in times]
    rounds = spread.most / spread.resident
    units = times[cycles.index(max(cycles))]
    total = max(max(cycles), sum(cycles) / len(cycles) * rounds) + chip.workgroup_cycles
    return Estimate(total / chip.clock_hz + chip.launch_seconds, spread, max(units, key=units.__getitem__))


def _residency(chip: ChipTiming, lanes: LaneMachine, work: ProgramWork, shared: float) -> Residency:
    active = min(chip.processors, work.programs)
    most = -(-work.programs // active)
    fits = [chip.resident_waves // lanes.waves, most]
    described = lanes.chip
    registers = min(described.registers or 255, _BASE_REGISTERS + work.live / 4 / lanes.threads)
    if described.processor_registers:
        fits.append(int(described.processor_registers // (registers * lanes.threads)))
    room = described.processor_shared_bytes or described.shared_bytes
    if shared and room:
        fits.append(int(room // (shared + described.system_shared_bytes)))
    return Residency(work.programs, max(1, min(fits)), active, most)


def _units(
    chip: ChipTiming, lanes: LaneMachine, work: ProgramWork, found: MachineWork, spread: Residency
) -> Iterable[tuple[str, float]]:
    """Cycles of each unit of a processor for the workgroups that it holds at once, and of one workgroup's chain: workgroups that
    begin together wait for memory together."""
    count = spread.resident
    waves = count * lanes.waves / chip.schedulers if count * lanes.waves > chip.schedulers else 1.0
    yield "issue", found.slots * waves
    for pipe, cycles in found.pipes.items():
        yield pipe, cycles * (waves if chip.pipes.get(pipe) == "scheduler" else count * lanes.waves)
    yield chip.shared_pipe, found.passes * chip.shared_pass * count
    yield "atomics", max(found.atomics, found.contended * spread.active) * count * chip.atomic_cycles
    yield chip.levels[0].name, (found.near + found.written) * count / chip.levels[0].bytes_per_cycle
    beyond = dict(_beyond(chip, work, found, spread))
    yield from beyond.items()
    asked = sum(found.moved.values()) + found.written
    yield "chain", found.chain + max(beyond.values(), default=0.0) * (found.waited / asked if asked else 0.0)


def _beyond(chip: ChipTiming, work: ProgramWork, found: MachineWork, spread: Residency) -> Iterable[tuple[str, float]]:
    """Cycles of the levels behind the first: each moves what those who share the level before it ask for, the same bytes once for
    each of them."""
    everywhere = spread.resident * spread.active
    owners = {"processor": spread.active, "die": min(chip.dies, spread.active), "chip": 1}
    for before, level in zip(chip.levels, chip.levels[1:], strict=False):
        nbytes = found.written * everywhere
        for argument, asked in found.moved.items():
            all_of_it = asked * everywhere
            nbytes += min(all_of_it, work.extents.get(argument, all_of_it) * owners[before.shared_by])
        yield level.name, nbytes / owners[level.shared_by] / level.bytes_per_cycle


def _together(times: Iterable[float]) -> float:
    """Units that work side by side, and get in each other's way where several are busy. The power is an assumption."""
    return sum(time**6 for time in times) ** (1 / 6)
