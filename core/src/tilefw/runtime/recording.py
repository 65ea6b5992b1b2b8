"""A launch profiled: some of its workgroups run on the simulator, which records them, and the model of time does the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilefw.api.backend import CompileOptions
from tilefw.api.device import Finding, LaunchReport
from tilefw.api.errors import CheckError, LaunchError, UnsupportedError
from tilefw.api.execution_trace import ExecutionTrace
from tilefw.api.timeline import Timeline, Utilisation
from tilefw.runtime import config
from tilefw.runtime.arguments.arrays import HostArray
from tilefw.runtime.arguments.copied import copied
from tilefw.runtime.executor import run
from tilefw.runtime.launch_site import site
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.stage_clock import StageClock
from tilefw.timing.launch_profile import LaunchProfile
from tilefw.timing.launch_time import RecordedLaunch, Residency, beside, launch_time, own_workgroups, residency, samples
from tilefw.timing.profile import launch_profile
from tilefw.timing.timeline import processor_timeline

BESIDE = 1024
"""Workgroups whose beginnings are recorded at most, unless somebody asks for more: enough to see who shares what in memory."""
FEW = 64
"""As BESIDE, where launches are only compared."""
ALIKE = 1.05
"""Workgroups are alike that execute no more than so many times the instructions of the first."""
BEGINNING = 16
"""Blocks of code of a beginning: the code in front of a loop and some of its iterations."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded of a launch, and what readers of its profile should know."""

    made: Launchable
    launch: RecordedLaunch
    notes: tuple[str, ...]


def record(made: Launchable, workgroups: int = BESIDE) -> Recording:
    """Run the workgroups of one processor, and the beginnings of at most so many, of a launch that is ready to be made.

    Raises UnsupportedError TFW0666 for a target without a model of time, LaunchError TFW0667 where there is nothing to run,
    CheckError where the kernel does something wrong: a profile of that would mean nothing; UsageError TFW0902."""
    chip, workgroups = made.target.backend.timing(), config.positive(workgroups, "workgroups")
    if not all(made.grid):
        raise LaunchError(f"the grid of {made.name} is empty: nothing runs, and there is no time to tell", code="TFW0667")
    where = site(made.target, made.resolved, block=made.block, dynamic_shared=made.dynamic_shared)
    device, resources = where.executor.device, made.compiled.artifact.resources
    if not getattr(device, "traces", False):
        raise UnsupportedError(f"the {device.executor} executor of {made.target.name} records no execution", code="TFW0666")
    total, lanes = math.prod(made.grid), made.target.info.limits["lanes"]
    threads = math.prod(made.block or made.entry.workgroup or (0,))
    if not threads:
        raise LaunchError(f"how many threads a workgroup of {made.name} has is not known", code="TFW0342", help="give `block`")
    spread = residency(chip, total, math.ceil(threads / lanes), resources.occupancy)
    beginnings = beside(spread, workgroups)

    def ran(programs: tuple[int, ...], **asked: Any) -> LaunchReport:
        options = replace(where.options, programs=programs, **asked)
        return run(made.target, where.executor, made.compiled.artifact, made.entry, made.grid, made.args, options, StageClock({}))

    def trace(programs: tuple[int, ...], blocks: int) -> ExecutionTrace:
        report = ran(programs, trace=True, beginning=blocks)
        assert report.trace is not None, "a device that traces gives a trace"
        return report.trace

    processor, notes = _slowest(spread, lambda number: ran((number,)).counters.get("instructions", 0))
    own = own_workgroups(spread, processor)
    if len(own) < total:
        notes.append(f"{len(own)} of {total} workgroups were recorded whole, and how {len(beginnings)} begin")
    if resources.occupancy is None:
        notes.append(f"occupancy is that of waves alone: {resources.unknown or 'registers are not known'}")
    nbytes = sum({argument.start: argument.nbytes for argument in made.args if isinstance(argument, HostArray)}.values())
    launch = RecordedLaunch(trace(own, 0), trace(beginnings, BEGINNING), spread, nbytes, resources.spills or 0, processor)
    return Recording(made, launch, tuple(notes))


def _slowest(spread: Residency, executed: Callable[[int], int]) -> tuple[int, list[str]]:
    """The processor that has the longest workgroup of those that are sampled, by the instructions that a workgroup of a number has
    executed, and what readers should know; the first processor where they are alike."""
    try:
        counts = {number: executed(number) for number in (0, *samples(spread))} if samples(spread) else {0: 1}
    except CheckError as error:
        if error.code != "TFW0811":
            raise
        return 0, ["workgroups wait for others, so that only the first processor's were looked at"]
    longest = max(counts, key=lambda number: (counts[number], -number))
    if counts[longest] <= ALIKE * counts[0]:
        return 0, []
    times = counts[longest] / counts[0]
    text = f"workgroups differ: of {len(counts)} that were sampled number {longest} executes {times:.1f} times what the first does"
    return longest % spread.active, [f"{text}; its processor is timed, bytes and operations are as if all did as much"]


def profile_again(made: Launchable, findings: Sequence[Finding], workgroups: int = BESIDE, warm: bool = False) -> LaunchProfile:
    """The profile of a launch that was made, recorded on the simulator from copies of its arrays as they are now. Raises as
    `record`, and LaunchError TFW0333 for arrays in a card's memory."""
    recording = _again(made, workgroups)
    found = tuple(f"the launch had a finding: {finding.code}: {finding.message}" for finding in findings)
    return profile_of(replace(recording, notes=(*found, *recording.notes)), warm)


def predicted_seconds(made: Launchable) -> float:
    """The time of a launch that was made, by the model and nothing else. Raises as `profile_again`."""
    return launch_time(made.target.backend.timing(), _again(made, FEW).launch, tells=False).seconds


def _again(made: Launchable, workgroups: int) -> Recording:
    made.target.backend.timing()
    artifact = made.compiled.artifact
    if artifact.resources.registers is None:  # a simulator of text needs no assembler, and occupancy does
        artifact = made.target.backend.assemble(artifact, CompileOptions())
    compiled, resolved = replace(made.compiled, artifact=artifact), replace(made.resolved, executor="sim")
    return record(replace(made, compiled=compiled, args=copied(made.args), resolved=resolved), workgroups)


def profile_of(recording: Recording, warm: bool = False) -> LaunchProfile:
    """The profile of a recorded launch, on its target; `warm`: an earlier launch has left its arrays in caches that hold them."""
    made = recording.made
    backend = made.target.backend
    chip = backend.timing()
    bounds = backend.timing(chip.figures.fast()), backend.timing(chip.figures.slow())
    return launch_profile(
        chip, bounds, recording.launch, kernel=made.name, target=made.target.name,
        occupancy=made.compiled.artifact.resources.occupancy, warm=warm, notes=recording.notes,
    )


def timeline_of(recording: Recording, warm: bool = False) -> tuple[Timeline, tuple[Utilisation, ...]]:
    """What one processor does when in a recorded launch, by the model of time, and the share of it that each resource was taken."""
    return processor_timeline(recording.made.target.backend.timing(), recording.launch, warm)
