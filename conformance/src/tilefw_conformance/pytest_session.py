"""The run behind the tests of one pytest session: workers go on with the next cases while pytest reports the last one."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tilefw.api.errors import KernelError, UsageError
from tilefw.cli.arguments import assignment, literals
from tilefw.kernels.stages import STAGES
from tilefw_conformance import EDITION, edition, quantities
from tilefw_conformance.campaign import Campaign, refuse_lone_resume
from tilefw_conformance.case import Case
from tilefw_conformance.report.records import Record
from tilefw_conformance.running import Plan, TargetRun, targets
from tilefw_conformance.workers.supervisor import WorkerLimits

Pair = tuple[str, Case]


class SuiteSession:
    """Every target's campaign. `pairs` are target and case of each test that may run; `begin` says which do."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        # A worker of pytest-xdist gets some of the tests, and does not know which: it runs each when it comes.
        self._ahead = not hasattr(config, "workerinput")
        plan = self._plan()
        self._campaigns: dict[str, Campaign] = {}
        self._results: dict[tuple[str, str], Record] = {}
        self._left: dict[str, int] = {}
        refuse_lone_resume(bool(self._said("resume")), self._said("report"))
        names = targets(self._said("target"))
        cases = plan.cases()
        try:
            for name in names:
                self._open(plan, name, cases, alone=len(names) == 1)
        except BaseException:
            self.close()
            raise

    @property
    def pairs(self) -> list[Pair]:
        return [(name, case) for name, campaign in self._campaigns.items() for case in campaign.selected]

    def begin(self, pairs: Iterable[Pair]) -> None:
        """Open the reports and hand these tests to the workers."""
        chosen: dict[str, list[Case]] = {name: [] for name in self._campaigns}
        for name, case in pairs:
            chosen[name].append(case)
        for name, campaign in self._campaigns.items():
            campaign.selected = tuple(chosen[name])
            cases = campaign.begin(self._config.invocation_params.args, resume=bool(self._said("resume")))
            self._results |= {(name, one["case"]): one for one in campaign.results}
            self._left[name] = len(cases)
            if self._ahead:
                campaign.target.submit(cases)

    def result(self, target: str, case: Case) -> Record:
        """The result of one test, waited for."""
        if not self._ahead and (target, case.id) not in self._results:
            self._campaigns[target].target.submit([case])
        while (target, case.id) not in self._results:
            record = self._campaigns[target].target.next()
            assert record is not None, f"{case.id} was not submitted"
            self._campaigns[target].take(record)
            self._results[target, record["case"]] = record
            self._left[target] -= 1
        return self._results[target, case.id]

    def close(self) -> None:
        """End the workers; a report all of whose cases are done is made whole, any other can be resumed."""
        for name, campaign in self._campaigns.items():
            if self._left.get(name) == 0 and self._ahead:
                campaign.finish()
            campaign.leave()
            campaign.target.close()

    def _open(self, plan: Plan, name: str, cases: tuple[Case, ...], *, alone: bool) -> None:
        run = TargetRun(plan, name)
        try:
            folder = self._said("report") if self._ahead else None
            campaign = Campaign(run, cases, folder if alone or folder is None else os.path.join(folder, run.target))
        except BaseException:
            run.close()
            raise
        for fault in campaign.faults:
            raise fault
        self._campaigns[run.target] = campaign

    def _said(self, name: str) -> Any:
        return self._config.getoption(f"tilefw_{name}", None)

    def _plan(self) -> Plan:
        usual, stage = WorkerLimits(), self._said("stage") or STAGES[-1]
        if stage not in STAGES:
            raise UsageError(f"there is no stage {stage!r}", code="TFW0955", help=f"stages: {', '.join(STAGES)}")
        execution = {name: value for name in ("executor", "checks", "numerics") if (value := self._said(name)) is not None}
        execution |= {name: value for name in ("budget", "seed") if (value := self._number(name, int)) is not None}
        return Plan(
            level=self._said("level"), edition=edition.checked(self._said("edition") or EDITION), pack=self._said("pack"),
            stage=stage, execution=execution, keywords=self._keywords(), artifacts=bool(self._said("artifacts")),
            audit=bool(self._said("audit_capabilities")),
            jobs=(self._number("jobs", quantities.count) or quantities.processors()) if self._ahead else 1,
            limits=WorkerLimits(
                case=self._number("time_limit", quantities.seconds) or usual.case,
                memory=self._number("memory_limit", quantities.size) or usual.memory,
            ),
        )

    def _keywords(self) -> dict[str, Any]:
        try:
            return literals(map(assignment, self._said("option") or ()))
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--option: {error}", code="TFW0911") from None

    def _number(self, name: str, read: Callable[[str], Any]) -> Any:
        said = self._said(name)
        try:
            return None if said is None else read(said)
        except (ValueError, argparse.ArgumentTypeError) as error:
            raise UsageError(f"--{name.replace('_', '-')}: {error}", code="TFW0911") from None


_SESSION = pytest.StashKey[SuiteSession]()


def session_of(config: pytest.Config) -> SuiteSession:
    """The run behind the tests; made once, as it starts processes. Raises pytest.UsageError for a mistake in the options."""
    if _SESSION not in config.stash:
        os.environ.setdefault("TILEFW_VERIFY", "1")  # machine passes check what they did; the workers inherit it
        try:
            config.stash[_SESSION] = SuiteSession(config)
        except KernelError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_SESSION]


def begin(config: pytest.Config, pairs: Iterable[Pair]) -> None:
    """See `SuiteSession.begin`; raises pytest.UsageError where the report cannot be written or gone on with."""
    try:
        config.stash[_SESSION].begin(pairs)
    except KernelError as error:
        raise pytest.UsageError(str(error)) from None


def close(config: pytest.Config) -> None:
    """See `SuiteSession.close`."""
    if _SESSION in config.stash:
        config.stash[_SESSION].close()
