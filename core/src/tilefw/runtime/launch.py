"""A launch of a jit function: settings and options, the artifact from a cache or the compiler, execution, and the result."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tilefw.api.artifact import Artifact, Entry
from tilefw.api.device import DEFAULT_BUDGET, Completion, Finding, LaunchReport
from tilefw.api.errors import LaunchError, UnsupportedError
from tilefw.api.remark import Remark
from tilefw.api.target import UNDER_2_GIB, TargetInfo
from tilefw.api.timeline import Timeline, Utilisation
from tilefw.runtime import config
from tilefw.runtime.arguments.arrays import array_argument, disjoint, is_array
from tilefw.runtime.arguments.binding import Bound, bind, grid_of
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.runtime.checks.program_checks import check_program
from tilefw.runtime.compilation import compiler
from tilefw.runtime.compiled_kernel import CompiledKernel, WarmKernel
from tilefw.runtime.device_times import EXECUTE, DeviceTimes
from tilefw.runtime.diagnostics import render_counters, render_findings, render_remarks, render_utilisation
from tilefw.runtime.executor import run
from tilefw.runtime.known_launches import KnownLaunch, known_launch
from tilefw.runtime.launch_site import LaunchSite, keep, site, site_of
from tilefw.runtime.plugins.loader import Target
from tilefw.runtime.prints import printing
from tilefw.runtime.stage_clock import StageClock

_FOUND = {"": "compiled now", "memory": "from the memory cache", "disk": "from the disk cache", "file": "machine code from a file"}


@dataclass(frozen=True, slots=True)
class LaunchResult(CompiledKernel):
    """What one launch did. `times` holds seconds by stage; `found` says where the artifact came from: the `memory` or `disk` cache,
    a `file` of machine code, or `` when it was compiled now.

    `completion` is there where the launch may still run: on a card, with no array of the host among its arguments. `wait` waits for
    its end, as does whoever looks up the seconds of `execute` in `times`, which are the device's own.

    `diagnostics` are the findings that are warnings: an error raises CheckError instead. `checks` are those that the device made;
    a launch without any is unchecked.
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

    def wait(self) -> LaunchResult:
        """This result, when the launch has ended. Raises LaunchError TFW0349 where the kernel failed on the card."""
        if self.completion is not None:
            self.completion.wait()
        return self

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


def launch(
    fn: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    values: Mapping[str, Any],
    grid: Any,
    keywords: Mapping[str, Any],
) -> LaunchResult:
    """Run `fn` over `grid` programs, writing the arrays in place.

    `values` holds the run-time arguments by name, in order, ready for a launch. Raises LaunchError for arguments or keywords
    that do not fit, CompileError for the kernel, CheckError when a check found a fault (then nothing is copied back).
    """
    site = site_of(keywords, fn.launch_sites)
    extents = grid_of(grid)
    known = _known(fn, site, signature, constexprs, values, extents)
    compiled = _compiled(site, known)
    _kept(fn, compiled.artifact, keywords)
    entry = compiled.artifact.entry()
    passed = _passed(signature, values)
    args = bind(entry, list(passed.values()))
    warnings: tuple[Finding, ...] = ()
    if site.of_program:
        budget = max(site.resolved.budget, DEFAULT_BUDGET)
        fusion = known.request.enable_fp_fusion
        warnings = check_program(known.source.build, extents, passed, site.of_program, fusion=fusion, budget=budget)
    return _executed(site, compiled, entry, extents, args, known.source.name, warnings)


def warm_up(
    fn: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    values: Mapping[str, Any],
    grid: Any,
    keywords: Mapping[str, Any],
) -> WarmKernel:
    """Compile what `launch` would run. An argument that is no array in memory (Triton's MockTensor) has its type in `signature`."""
    site = site_of(keywords, fn.launch_sites)
    return _kept(fn, _compiled(site, _known(fn, site, signature, constexprs, values, grid_of(grid))).artifact, keywords)


def _kept(fn: Any, artifact: Artifact, keywords: Mapping[str, Any]) -> WarmKernel:
    """The compiled kernel, which `fn.device_caches` has from now on: under device 0, the only one, and there first, as Triton."""
    kernels = fn.device_caches[0][0]
    found = kernels.get(id(artifact))  # the entry keeps the artifact, and so its identity
    if found is None:
        found = WarmKernel(artifact, functools.partial(fn.run, **keywords))
        keep(kernels, id(artifact), found)
    return found


def _known(
    fn: Any, site: LaunchSite, signature: Mapping[str, str], constexprs: Mapping[str, Any], values: Mapping[str, Any],
    grid: tuple[int, int, int],
) -> KnownLaunch:
    """What is compiled, for a target that compiles for one launch of this one."""
    info = site.target.info
    known = known_launch(fn, site, signature, constexprs, facts_of(info, values), fn.known_launches)
    bound = launch_of(info, values, grid)
    return known if bound is None else KnownLaunch(known.source, replace(known.request, launch=bound), known.watched)


def _compiled(site: LaunchSite, known: KnownLaunch) -> compiler.CompiledArtifact:
    assemble = site.device.assembled
    key = known.key(site.target, assemble)
    return compiler.compile_source(known.source, site.target, known.request, assemble=assemble, key=key)


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
    result = _executed(where, compiled, entry, grid, args, kernel, checked or ())
    if timeline and result.timeline is None:
        reason = f"its {result.executor} executor gives none" if all(grid) else "its grid is empty, and nothing runs"
        raise LaunchError(f"{kernel} on {target.name} has no timeline: {reason}", code="TFW0646")
    return result


def _executed(
    site: LaunchSite, compiled: compiler.CompiledArtifact, entry: Entry, grid: tuple[int, int, int], args: list[Bound], kernel: str,
    warnings: tuple[Finding, ...],
) -> LaunchResult:
    target, artifact = site.target, compiled.artifact
    clock = StageClock(compiled.times)
    report = LaunchReport()
    if all(grid):
        with printing(artifact, entry, args):
            report = run(target, site.resolved.executor, artifact, entry, grid, args, site.options, clock, site.unwritten)
    times = clock.seconds if report.completion is None else DeviceTimes(clock.seconds, report.completion)
    return LaunchResult(
        kernel, target.name, site.device.executor, artifact, grid, (*warnings, *report.findings), report.counters, times,
        compiled.found, report.utilisation, report.timeline, site.checks | site.of_program, report.completion,
    )


def require_timeline(info: TargetInfo) -> None:
    """Raise UnsupportedError TFW0645 for a target whose simulator does not say what happens when."""
    if "timeline" not in info.provides:
        raise UnsupportedError(
            f"{info.name} makes no timeline", code="TFW0645", note=f"it provides {', '.join(sorted(info.provides))}",
            help="`tilefw targets` shows what each target provides",
        )


def _passed(signature: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the compiled kernel takes, in order: what the signature folds (`:1`, None) is not a parameter of it."""
    return {name: values[name] for name, kind in signature.items() if not kind.endswith(":1") and values[name] is not None}


def facts_of(info: TargetInfo, values: Mapping[str, Any]) -> frozenset[str]:
    """The facts about arguments that the target wants and that hold here, beyond those in the signature."""
    wanted = info.wants & {"disjoint", "under_2_gib"}
    if not wanted:
        return frozenset()
    arrays = [array_argument(value) for value in values.values() if is_array(value)]
    holds = {"disjoint"} if disjoint(arrays) else set()
    if all(array.nbytes <= UNDER_2_GIB for array in arrays):
        holds.add("under_2_gib")
    return wanted & holds
