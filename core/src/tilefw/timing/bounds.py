"""The least time that a recorded launch can take: what instructions take of pipes and schedulers, without any wait."""

from __future__ import annotations

from collections import Counter, defaultdict

from tilefw.timing.chip_timing import ChipTiming
from tilefw.timing.launch_time import RecordedLaunch, prepared


def least_seconds(chip: ChipTiming, launch: RecordedLaunch) -> float:
    """No launch is faster by the model: pipes take the cycles of each instruction, schedulers issue one in a cycle, and shared
    memory is passed through as often as accesses ask for."""
    spread = launch.spread
    taken: dict[str, float] = defaultdict(float)
    slots = 0.0
    waves = prepared(chip, launch)
    for stream in waves:
        for number, count in Counter(stream.instructions).items():
            cost = chip.cost(launch.own.instructions[number])
            taken[cost.pipe] += cost.cycles * count
            slots += cost.slots * count
        for found in stream.accesses.values():
            taken[chip.shared_pipe] += sum(access.passes for access in found) * chip.shared_pass
    each = [slots / chip.schedulers]
    each += [cycles / chip.schedulers if chip.pipes[pipe] == "scheduler" else cycles for pipe, cycles in taken.items()]
    workgroups = len({stream.workgroup for stream in waves})
    return max(each) / workgroups * spread.workgroups / spread.active / chip.clock_hz + chip.launch_seconds
