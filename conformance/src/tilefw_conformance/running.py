"""One target's run of the suite: which cases, by which workers, judged by what the target's plugin expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import TracebackType
from typing import Any

from tilefw.api.errors import KernelError, UsageError
from tilefw.runtime.plugins.loader import registry
from tilefw_conformance import EDITION
from tilefw_conformance.case import LEVELS, Case
from tilefw_conformance.case_files import bundled
from tilefw_conformance.expectations import expected, faults
from tilefw_conformance.nodes.cases import cases as on_nodes
from tilefw_conformance.packs import PACKS, pack
from tilefw_conformance.report import records
from tilefw_conformance.report.records import Record
from tilefw_conformance.selection import Part, select
from tilefw_conformance.workers.protocol import OpenSession, Ready
from tilefw_conformance.workers.supervisor import Supervisor, WorkerLimits


@dataclass(frozen=True, slots=True)
class Plan:
    """What a user asked for, of each target. `execution` holds executor, checks, budget, numerics and seed where they were said,
    `keywords` launch keywords for every case; `pack` names the body of cases that runs instead of the suite's own; `scheduler` is
    the address of a Dask scheduler."""

    level: str = "core"
    expression: str | None = None
    part: Part | None = None
    edition: str = EDITION
    pack: str | None = None
    stage: str = "compare"
    execution: Mapping[str, Any] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)
    artifacts: bool = False
    audit: bool = False
    jobs: int = 1
    limits: WorkerLimits = field(default_factory=WorkerLimits)
    scheduler: str | None = None

    def cases(self) -> tuple[Case, ...]:
        """The whole body of cases that the run takes some of."""
        return (*bundled(), *on_nodes()) if self.pack is None else pack(self.pack).cases()


def targets(said: Sequence[str]) -> list[str]:
    """The names of the targets that the user said, each once; `all` is every usable one that executes.

    Raises what a launch would for a name that does not exist: before any of several runs. One name alone is left to its worker.
    """
    if len(said) == 1 and said[0] != "all":
        return list(said)
    known = registry().infos()
    own = {word: info.name for info in known for word in (info.name, *info.aliases)}
    executing = [info.name for info in known if "simulate" in info.provides]
    names = [name for word in said for name in (executing if word == "all" else [own.get(word) or registry().find(word).name])]
    return list(dict.fromkeys(names))


class TargetRun:
    """The run on one target; `cases` is the plan's body of cases, which several targets share. Leave it to end its workers.

    Raises what the first worker does: UsageError for an unknown target, PluginError for a plugin that is not usable.
    """

    def __init__(self, plan: Plan, target: str) -> None:
        self.plan = plan
        opening = OpenSession(target, plan.stage, plan.execution, plan.keywords, plan.artifacts, plan.audit)
        self._supervisor = Supervisor(opening, plan.jobs, plan.limits)
        self._supervisor.start()

    def __enter__(self) -> TargetRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._supervisor.close()

    @property
    def ready(self) -> Ready:
        return self._supervisor.ready()

    @property
    def target(self) -> str:
        """The target's name, where the user may have said an alias."""
        return self.ready.target["name"]

    @property
    def executor(self) -> str:
        return self.ready.target["executor"]

    def all(self, cases: Sequence[Case]) -> tuple[Case, ...]:
        """`cases` and those that the target's plugin brings."""
        return (*cases, *self.ready.cases) if self.plan.pack is None else tuple(cases)

    def selected(self, cases: Sequence[Case]) -> tuple[Case, ...]:
        return select(self.all(cases), self.plan.level, self.plan.expression, self.plan.edition, self.plan.part)

    def of_other_parts(self, cases: Sequence[Case]) -> int:
        """How many cases all parts have together, where the plan's own part has none of them."""
        if self.plan.part is None or self.selected(cases):
            return 0
        return len(select(self.all(cases), self.plan.level, self.plan.expression, self.plan.edition))

    def elsewhere(self, cases: Sequence[Case]) -> str:
        """Where nothing is selected: other parts that have it, or the first level at which something would be, in words."""
        if others := self.of_other_parts(cases):
            return f"; of other parts there are {others}"
        for level in LEVELS:
            if found := select(self.all(cases), level, self.plan.expression, self.plan.edition, self.plan.part):
                return f"; of --level {level} there are {len(found)}"
        return ""

    def faults(self, cases: Sequence[Case]) -> tuple[KernelError, ...]:
        """What is wrong with the plugin's expectations; those about a pack's cases are looked at when it runs."""
        known = [one for one in self.ready.expectations if (one.case.partition("/")[0] in PACKS) == (self.plan.pack is not None)]
        return faults(known, (case.id for case in self.all(cases)), self.target)

    def header(self, argv: Sequence[str]) -> Record:
        plan = self.plan
        options = {name: value for name, value in plan.execution.items() if name in ("checks", "budget", "numerics")}
        keywords = [f"{name}={value}" for name, value in plan.keywords.items()]
        part = "{}/{}".format(*plan.part) if plan.part else None
        said = (("pack", plan.pack), ("part", part), ("audit", plan.audit), ("keywords", keywords))
        options |= {name: value for name, value in said if value}
        return records.header(
            [self.ready.target], level=plan.level, stage=self.ready.stage, seed=plan.execution.get("seed"),
            expression=plan.expression, options=options, argv=argv, edition=plan.edition,
        )

    def results(self, cases: Sequence[Case]) -> Iterator[Record]:
        """The result of each of `cases`, as they come."""
        for record in self._raw(cases):
            yield expected(record, self.ready.expectations)

    def submit(self, cases: Sequence[Case]) -> None:
        """Cases that `next` gives the results of, when there is no loop over `results`."""
        self._supervisor.submit(cases)

    def next(self) -> Record | None:
        """One more result of those that were submitted."""
        record = self._supervisor.next()
        return None if record is None else expected(record, self.ready.expectations)

    def _raw(self, cases: Sequence[Case]) -> Iterator[Record]:
        if self.plan.scheduler is None:
            self._supervisor.submit(cases)
            yield from self._supervisor.results()
        else:
            opening = replace(self._supervisor.opening, target=self.target)
            yield from _cluster().results(self.plan.scheduler, opening, cases, self.plan.limits)


def _cluster() -> Any:
    try:
        return import_module("tilefw_conformance.workers.cluster")
    except ImportError as error:
        raise UsageError(
            f"--scheduler needs Dask distributed: {error}", code="TFW0973", help="pip install 'tilefw-conformance[cluster]'"
        ) from None
