"""The execution of a launch whose code and arguments are ready, and its result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilefw.api.artifact import Artifact, Entry
from tilefw.api.device import Completion, Finding, LaunchReport
from tilefw.api.errors import LaunchError, UnsupportedError
from tilefw.api.remark import Remark
from tilefw.api.target import TargetInfo
from tilefw.api.timeline import Timeline, Utilisation
from tilefw.runtime import config
from tilefw.runtime.arguments.binding import Bound
from tilefw.runtime.compilation import compiler
from tilefw.runtime.compiled_kernel import CompiledKernel, WarmKernel
from tilefw.runtime.device_times import EXECUTE, DeviceTimes
from tilefw.runtime.diagnostics import render_counters, render_findings, render_remarks, render_utilisation
from tilefw.runtime.executor import run
from tilefw.runtime.launch_site import LaunchSite, site
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.plugins.loader import Target
from tilefw.runtime.prints import printing
from tilefw.runtime.stage_clock import StageClock

if TYPE_CHECKING:
    from tilefw.timing.launch_profile import LaunchProfile

_FOUND = {"": "compiled now", "memory": "from the memory cache", "disk": "from the disk cache", "file": "machine code from a file"}
_NOTHING_RUN = LaunchReport()
_SILENT = contextlib.nullcontext()


@dataclass(slots=True)  # frozen, it takes four times as long to make, and every launch makes one
class LaunchResult(CompiledKernel):
    """What one launch did. `times` holds seconds by stage; `found` says where the artifact came from: the `memory` or `disk` cache,
    a `file` of machine code, or `` when it was compiled now.

    `completion` is there where the launch may still run: on a card, with no array of the host among its arguments. `wait` waits for
    its end, as does whoever looks up the seconds of `execute` in `times`, which are the device's own.

    `diagnostics` are the findings that are warnings: an error raises CheckError instead. `checks` are those that the device made;
    a launch without any is unchecked. `launched` is the compiled kernel of a jit function, which can be launched again. `made` is
    the launch itself, for `profile`; None where it went straight to a card or processor.
    """

    kernel: str
    target: str
    executor: str
    artifact: Artifact
    grid: tuple[int, int, int]
    diagnostics: tuple[Finding, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, float] = field(default_factory=dict)
    found: str = ""
    utilisation: tuple[Utilisation, ...] = ()
    timeline: Timeline | None = None
    checks: frozenset[str] = frozenset()
    completion: Completion | None = None
    launched: WarmKernel | None = None
    made: Launchable | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """As `WarmKernel`'s: programs keep what a launch gave, to launch the kernel again without looking for it."""
        if self.launched is None:
            raise LaunchError(f"{self.kernel} was not launched as `kernel[grid](…)`: its result launches nothing", "TFW0306")
        return self.launched[grid]

    def wait(self) -> LaunchResult:
        """This result, when the launch has ended. Raises LaunchError TFW0349 where the kernel failed on the card."""
        if self.completion is not None:
            self.completion.wait()
        return self

    def profile(self, *, workgroups: int | None = None, warm: bool = False) -> LaunchProfile:
        """How long this launch takes on the target's chip by the model of time, and what limits it: docs/profiling.md.

        A part of the launch runs once more on the simulator, on copies of its arrays as they are now; how at most so many
        `workgroups` begin is recorded. `warm`: an earlier launch has left the arrays in caches that hold them. Raises
        UnsupportedError TFW0666 for a target without a model of time, LaunchError TFW0667 where nothing ran or nothing is known of
        it, TFW0333 for arrays in a card's memory."""
        from tilefw.runtime.plugins.loader import find_target
        from tilefw.runtime.recording import BESIDE, profile_again

        find_target(self.target).backend.timing()  # says what the target lacks
        if self.made is None:
            raise LaunchError(
                f"nothing is kept of this launch of {self.kernel}, which went straight to the {self.executor} executor",
                code="TFW0667", help="launch with executor='sim' and profile that",
            )
        return profile_again(self.made, self.diagnostics, BESIDE if workgroups is None else workgroups, warm)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What a user should learn of code that is right (`Artifact.remarks`): a dot that no matrix instruction serves, …"""
        return self.artifact.remarks

    def __str__(self) -> str:
        source = _FOUND.get(self.found, self.found)
        shown = [(name, value, ".4g" if self.executor == "hw" and name == EXECUTE else ".1f") for name, value in self.times.items()]
        seconds = ", ".join(f"{name} {1000 * value:{form}}" for name, value, form in shown if value >= 0.00005 or form == ".4g")
        lines = [
            f"{self.kernel} on {self.target} ({self.executor}), grid {'x'.join(map(str, self.grid))}, {source}",
            f"  milliseconds: {seconds}" if seconds else "",
            "  " + render_counters(self.counters) if self.counters else "",
            "  " + render_utilisation(self.utilisation) if self.utilisation else "",
            "" if self.checks else "  unchecked: no check was made",
            render_findings(self.diagnostics),
            render_remarks(self.remarks),
        ]
        return "\n".join(line for line in lines if line)


def execute(
    target: Target, resolved: config.Resolved, compiled: compiler.CompiledArtifact, entry: Entry, grid: tuple[int, int, int],
    args: list[Bound], kernel: str, block: tuple[int, int, int] | None = None, dynamic_shared: int | None = None,
    timeline: bool = False, checked: tuple[Finding, ...] | None = None,
) -> LaunchResult:
    """Run bound arguments on the executor that the settings name; a grid with an extent of 0 runs nothing, as in Triton.

    With `timeline` the result has one: raises UnsupportedError TFW0645 for a target that makes none, LaunchError TFW0646 where this
    launch has none. Raises UsageError TFW0903 for a check that the device does not make. `checked` are the warnings of the
    program's checks, which the caller has made; None where it cannot make them: then a device that can forget makes the one of
    them that is about memory."""
    if timeline:
        require_timeline(target.info)
    where = site(
        target, resolved, program=checked is not None, block=block, dynamic_shared=dynamic_shared, timeline=timeline
    )
    result = run_at(where, compiled, entry, grid, args, kernel, checked or (), "prints" in compiled.artifact.metadata)
    if timeline and result.timeline is None:
        reason = f"its {result.executor} executor gives none" if all(grid) else "its grid is empty, and nothing runs"
        raise LaunchError(f"{kernel} on {target.name} has no timeline: {reason}", code="TFW0646")
    return result


def with_timeline(made: Launchable) -> LaunchResult:
    """Make a launch that is ready for its timeline alone: its result is not judged. Raises as `execute`."""
    return execute(
        made.target, made.resolved, made.compiled, made.entry, made.grid, made.args, made.name, made.block, made.dynamic_shared,
        timeline=True,
    )


def run_at(
    site: LaunchSite, compiled: compiler.CompiledArtifact, entry: Entry, grid: tuple[int, int, int], args: list[Bound], kernel: str,
    warnings: tuple[Finding, ...], prints: bool,
) -> LaunchResult:
    """Run bound arguments at a site; `prints` says whether the code prints."""
    artifact = compiled.artifact
    clock = StageClock(compiled.times)
    report = _NOTHING_RUN
    if all(grid):
        with printing(artifact, entry, args) if prints else _SILENT:
            report = run(site.target, site.executor, artifact, entry, grid, args, site.options, clock, site.unwritten)
    times = clock.seconds if report.completion is None else DeviceTimes(clock.seconds, report.completion)
    given = site.options
    made = Launchable(kernel, site.target, site.resolved, compiled, entry, grid, args, given.block, given.dynamic_shared)
    return LaunchResult(
        kernel, site.target.name, site.executor.device.executor, artifact, grid, (*warnings, *report.findings), report.counters,
        times, compiled.found, report.utilisation, report.timeline, site.checks | site.of_program, report.completion, made=made,
    )


def require_timeline(info: TargetInfo) -> None:
    """Raise UnsupportedError TFW0645 for a target whose simulator does not say what happens when."""
    if "timeline" not in info.provides:
        raise UnsupportedError(
            f"{info.name} makes no timeline", code="TFW0645", note=f"it provides {', '.join(sorted(info.provides))}",
            help="`tilefw targets` shows what each target provides",
        )
