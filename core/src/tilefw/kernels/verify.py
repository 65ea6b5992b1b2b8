"""One library kernel through one target and back: compile, execute, compare with the reference's bounds; a verdict per stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilefw.api.artifact import Artifact
from tilefw.api.device import DEFAULT_BUDGET, Finding
from tilefw.api.errors import CapacityError, CheckError, InternalError, KernelError, UnsupportedError
from tilefw.api.garbage_collection import paused
from tilefw.api.timeline import Utilisation
from tilefw.kernels.instance import instance
from tilefw.kernels.reference import Reference
from tilefw.kernels.spec import KernelSpec, Launch, Parameters
from tilefw.kernels.stages import STAGE_OF, STAGES
from tilefw.passes.requirements import required
from tilefw.runtime import config
from tilefw.runtime.arguments.array_facts import facts_of, facts_of_checks
from tilefw.runtime.arguments.binding import bind
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.runtime.checks.program_checks import check_program
from tilefw.runtime.compilation import options
from tilefw.runtime.compilation.compiler import Compilation
from tilefw.runtime.executor import unsaid
from tilefw.runtime.launch import execute
from tilefw.runtime.launch_site import site
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw.runtime.stage_clock import StageClock
from tilefw.tile.reference.accuracy import Comparison


@dataclass(frozen=True, slots=True)
class StageVerdict:
    """One stage: `outcome` is pass, fail, unsupported (refused by name), over-capacity (more than the chip has of a resource),
    error (a bug of ours or the plugin's) or skipped.
    """

    name: str
    outcome: str
    seconds: float = 0.0
    error: KernelError | InternalError | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one verification found. `comparisons` are by output; `required` is what the kernel needs of a target."""

    kernel: str
    target: str
    executor: str
    parameters: Parameters
    seed: int
    stages: tuple[StageVerdict, ...]
    required: frozenset[str] = frozenset()
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    artifact: Artifact | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    times: Mapping[str, float] = field(default_factory=dict)
    utilisation: tuple[Utilisation, ...] = ()

    @property
    def ok(self) -> bool:
        return all(stage.outcome in ("pass", "skipped") for stage in self.stages)

    @property
    def failed(self) -> StageVerdict | None:
        """The stage that did not pass, if one did not; none runs after it."""
        return next((stage for stage in self.stages if stage.outcome not in ("pass", "skipped")), None)

    @property
    def error_over_bound(self) -> float | None:
        """The largest error of any output element over its bound; None where nothing was compared."""
        return max((c.worst for c in self.comparisons.values()), default=None)

    @property
    def worst(self) -> tuple[str, tuple[int, ...]] | None:
        """The output and index of that element."""
        named = [(c.worst, name, c.worst_index) for name, c in self.comparisons.items() if c.worst_index is not None]
        return max(named)[1:] if named else None


def verify(
    spec: KernelSpec, parameters: Parameters, target: str | None = None, *, stop_after: str = "compare",
    assemble: bool | None = None, keep_levels: bool = False, keywords: Mapping[str, Any] | None = None,
    admit: Callable[[frozenset[str]], None] | None = None, began: Callable[[str], None] | None = None, **execution: Any,
) -> Verdict:
    """Run `spec` with `parameters` (over its defaults) on `target`, and judge the result.

    Outputs are compared with the reference interpreter's values within their bounds; on `reference` the NumPy expression is
    compared as well. `execution` holds executor, checks, budget, numerics, seed (inputs, and the order of execution above 0).
    `assemble` None assembles where the target can; `keep_levels` keeps the text of each IR level in the artifact. `keywords` are
    launch keywords beside those that are parameters. `admit` is called with what the kernel needs, and may raise UnsupportedError
    before anything of the target's runs; `began` with each stage as it begins or goes on, for whoever must know where a process
    was lost: the reference's run is a part of `compare` that comes within `simulate`. Raises UsageError and PluginError; what fails
    in a stage is in the verdict.
    """
    resolved = config.resolve(config.settings(target, **execution))
    chosen = find_target(resolved.target)
    given = spec.resolve(parameters)
    launch = spec.prepare(given, np.random.default_rng(resolved.seed))
    late = STAGES.index(stop_after) >= STAGES.index("assemble")
    asked = _Asked(
        stop_after, late and ("assemble" in chosen.info.provides if assemble is None else assemble), keep_levels,
        {**launch.keywords, **(keywords or {})}, admit, began,
    )
    return _Run(spec, given, launch, chosen, resolved, asked).verdict()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the caller of `verify` wants of the run."""

    stop_after: str
    assemble: bool
    keep_levels: bool
    keywords: Mapping[str, Any]
    admit: Callable[[frozenset[str]], None] | None
    began: Callable[[str], None] | None


class _Run:
    """The state of one verification while its stages pass."""

    def __init__(
        self, spec: KernelSpec, parameters: dict[str, Any], launch: Launch, target: Target, resolved: config.Resolved, asked: _Asked
    ) -> None:
        self.spec, self.parameters, self.launch, self.target, self.resolved = spec, parameters, launch, target, resolved
        self.asked = asked
        self.current = ""
        self.clock = StageClock(began=lambda step: self._enter(STAGE_OF.get(step, self.current)))
        self.times = self.clock.seconds
        self.fields: dict[str, Any] = {}
        self.instance = instance(spec, launch)
        self.source = self.instance.source

    def verdict(self) -> Verdict:
        stages: list[StageVerdict] = []
        for names, work in (
            (("verify", "lower", "emit", "assemble"), self._compile), (("simulate",), self._execute), (("compare",), self._compare),
        ):
            stages += self._stage(names, work)
            if any(stage.outcome not in ("pass", "skipped") for stage in stages) or self.asked.stop_after in names:
                break
        last = STAGES.index(self.asked.stop_after)  # what failed on the way to it is shown wherever it stands
        shown = [one for one in stages if STAGES.index(one.name) <= last or one.outcome not in ("pass", "skipped")]
        return Verdict(
            self.spec.name, self.target.name, self._executor_name(), self.parameters, self.resolved.seed, tuple(shown),
            times=self.times, **self.fields,
        )

    def _executor_name(self) -> str:
        said = self.resolved.executor
        return "ref" if self.target.name == "reference" else unsaid(self.target.info) if said == "default" else said

    def _enter(self, name: str) -> None:
        """Say that a stage begins, or goes on after another one."""
        if self.asked.began is not None and name != self.current:
            self.asked.began(name)
        self.current = name

    def _stage(self, names: tuple[str, ...], work: Any) -> list[StageVerdict]:
        """The verdicts of the stages that `work` runs; after an error the step that began last tells which one failed."""
        self._enter(names[0])
        start, before = time.perf_counter(), dict(self.times)
        failure: tuple[str, KernelError | InternalError] | None = None
        note = ""
        try:
            note = work() or ""
        except UnsupportedError as error:
            failure = ("unsupported", error)
        except CapacityError as error:
            failure = ("over-capacity", error)
        except KernelError as error:
            failure = ("fail", error)
        except InternalError as error:
            failure = ("error", error)
        whole = time.perf_counter() - start
        spent = {name: 0.0 for name in names}
        for step, seconds in self.times.items():
            owner = STAGE_OF.get(step, names[0])
            if owner in spent:
                spent[owner] += seconds - before.get(step, 0.0)
        if len(names) == 1:
            spent[names[0]] = whole + self._moved(names[0], before)
        if failure is None:
            skipped = {"assemble"} if not self.asked.assemble else set()
            return [StageVerdict(n, "skipped" if n in skipped else "pass", spent[n], note=note) for n in names]
        last = STAGE_OF.get(self.clock.last, names[0])
        failed = last if last in names else names[0]
        passed = [StageVerdict(n, "pass", spent[n]) for n in names[: names.index(failed)]]
        return [*passed, StageVerdict(failed, failure[0], spent[failed], failure[1])]

    def _moved(self, name: str, before: Mapping[str, float]) -> float:
        """Seconds of steps that ran earlier for the stage `name`, less those that just ran for other stages."""
        earlier = sum(seconds for step, seconds in before.items() if STAGE_OF.get(step) == name)
        others = (step for step in self.times if STAGE_OF.get(step) != name)
        return earlier - sum(self.times[step] - before.get(step, 0.0) for step in others)

    def _compile(self) -> None:
        """Always compiled anew: a verdict on a cached artifact would say nothing of the stages."""
        with paused():
            self._compile_anew()

    def _compile_anew(self) -> None:
        info = self.target.info
        work = Compilation(self.source, self.target, clock=self.clock)
        self.module = work.build()  # which stays as it is, for the reference
        bound = launch_of(info, self.instance.values, self.launch.grid)
        request = options.resolve(
            self.asked.keywords, info, facts=facts_of(info, self.instance.values) | self._facts_of_checks(), launch=bound,
            keep_levels=self.asked.keep_levels,
        )
        simple = work.simplify(self.module.clone(), request)
        with self.clock.stage("requirements"):
            self.fields["required"] = required(simple, bound) | self.spec.requires(self.parameters)
        if self.asked.admit is not None:
            self.asked.admit(self.fields["required"])
        if self.asked.stop_after == "lower":
            work.lowered(simple, request)
        if self.asked.stop_after in ("verify", "lower"):
            return
        self.compiled = work.finish(simple, request, self.asked.assemble)
        self.fields["artifact"] = self.compiled.artifact

    def _facts_of_checks(self) -> frozenset[str]:
        """The device is made only for a target that wants to know: elsewhere a compilation needs none."""
        if "checks" not in self.target.info.wants:
            return frozenset()
        return facts_of_checks(self.target.info, site(self.target, self.resolved).checks)

    def _execute(self) -> str:
        """What there is to note of the launch: that no check was made."""
        try:
            return "" if self._launch() else "unchecked: no check was made"
        except CheckError as error:
            self.fields["findings"] = tuple(error.findings)
            raise

    def _launch(self) -> frozenset[str]:
        """Run the kernel; the checks that the device made."""
        # Before the launch, which writes into the very arrays that the reference and the NumPy expression start from;
        # its time is the comparison's.
        passed = self.instance.passed
        fusion = self.asked.keywords.get("enable_fp_fusion", True)
        # The budget is the target's: the reference counts otherwise, and must not be what a small one stops.
        budget = max(self.resolved.budget, DEFAULT_BUDGET)
        with self.clock.stage("reference"):
            self.reference = Reference(self.module, self.launch.grid, passed, fusion=fusion, budget=budget)
        self._enter("simulate")
        warnings = check_program(
            lambda: self.module, self.launch.grid, passed, self.resolved.checks, fusion=bool(fusion), budget=budget
        )
        with np.errstate(all="ignore"):  # infinities and NaN are what many cases are about
            self.expression = self.spec.expected(self.parameters, self.launch) if self.target.name == "reference" else None
        entry = self.compiled.artifact.entry()
        args = bind(entry, list(passed.values()))
        result = execute(
            self.target, self.resolved, self.compiled, entry, self.launch.grid, args, self.spec.name, checked=warnings
        )
        self.times.update(result.times)
        self.fields.update(counters=result.counters, findings=result.diagnostics, utilisation=result.utilisation)
        return result.checks

    def _compare(self) -> str:
        compared: dict[str, Comparison] = {}
        for name in self.launch.outputs:
            compared[name] = self.reference.compare(name)
            if not self.reference.covers_storage(name):
                compared[f"{name} (around)"] = self.reference.compare_around(name)
            if self.expression is not None:
                compared[f"{name} (NumPy)"] = self.reference.compare_values(name, self.expression[name])
        self.fields["comparisons"] = compared
        wrong = [name for name, c in compared.items() if c.wrong]
        if wrong:
            raise KernelError(
                f"{self.spec.name} on {self.target.name}: {', '.join(wrong)} differs from the reference", code="TFW0630",
                note="\n".join(f"{name}: {compared[name]}" for name in wrong),
            )
        free = max((c.free_fraction for c in compared.values()), default=0.0)
        if any(c.bad for c in compared.values()):
            raise KernelError(
                f"{self.spec.name}: {free:.1%} of the result's elements are free", code="TFW0631",
                note="their bounds straddle a discontinuity, so they decide nothing; a case has at most 1 % of them",
            )
        return f"{free:.2%} free" if free else ""
