"""Seconds of a launch by its program's work on a chip: rounds of workgroups, each as long as its chain, or as what it takes of the
processor's busiest unit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilefw.simt.description import LaneMachine
from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.estimate.machine_work import MachineWork, WavesOfChip, work_on
from tilefw.timing.estimate.program_work import ProgramWork
from tilefw.timing.launch_time import Residency

_BASE_REGISTERS = 24
"""Of a lane, beside its tiles: addresses, counters, masks."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds of a launch, how its workgroups spread, and the unit that takes longest."""

    seconds: float
    residency: Residency
    limit: str


def estimated_time(chip: ChipTiming, lanes: LaneMachine, work: ProgramWork, stages: int) -> Estimate:
    """The time of a launch of `work` by workgroups of `lanes`."""
    found = work_on(WavesOfChip(chip, lanes, stages), work.whole)
    spread = _residency(chip, lanes, work, found)
    units = dict(_units(chip, lanes, work, found, spread))
    limit = max(units, key=units.__getitem__)
    together = _together(units.values())
    cycles = together * spread.most / spread.resident + chip.workgroup_cycles
    return Estimate(cycles / chip.clock_hz + chip.launch_seconds, spread, limit)


def _residency(chip: ChipTiming, lanes: LaneMachine, work: ProgramWork, found: MachineWork) -> Residency:
    active = min(chip.processors, work.programs)
    most = -(-work.programs // active)
    fits = [chip.resident_waves // lanes.waves, most]
    described = lanes.chip
    registers = min(described.registers or 255, _BASE_REGISTERS + work.live / 4 / lanes.threads)
    if described.processor_registers:
        fits.append(int(described.processor_registers // (registers * lanes.threads)))
    room = described.processor_shared_bytes or described.shared_bytes
    if found.shared and room:
        fits.append(int(room // (found.shared + described.system_shared_bytes)))
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
    yield chip.levels[0].name, (found.near + found.written) * count / chip.levels[0].bytes_per_cycle
    beyond = dict(_beyond(chip, work, found, spread))
    yield from beyond.items()
    asked = sum(found.moved.values()) + found.written
    yield "chain", found.chain + max(beyond.values(), default=0.0) * (found.waited / asked if asked else 0.0)


def _beyond(chip: ChipTiming, work: ProgramWork, found: MachineWork, spread: Residency) -> Iterable[tuple[str, float]]:
    """Cycles of the levels behind the first: the second moves what all ask for, others what no two workgroups share."""
    count = spread.resident
    asked = sum(found.moved.values()) + found.written
    once = found.written * count * spread.active
    for argument, nbytes in found.moved.items():
        all_of_it = nbytes * count * spread.active
        once += min(all_of_it, work.extents.get(argument, all_of_it))
    for place, level in enumerate(chip.levels[1:]):
        sharing = {"processor": 1.0, "die": spread.active / chip.dies, "chip": spread.active}[level.shared_by]
        yield level.name, (once if place else asked * count * max(1.0, sharing)) / level.bytes_per_cycle


def _together(times: Iterable[float]) -> float:
    """Units that work side by side, and get in each other's way where several are busy."""
    return sum(time**6 for time in times) ** (1 / 6)
