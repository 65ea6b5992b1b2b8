"""One case on one target: run its stages, name the outcome from the closed set."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilefw.api.capabilities import missing
from tilefw.api.errors import InternalError, KernelError, UnsupportedError
from tilefw.kernels.stages import STAGES
from tilefw.kernels.verify import Verdict, verify
from tilefw.runtime.plugins.loader import Target
from tilefw_conformance.case import Case
from tilefw_conformance.nodes.verification import NodeVerification, without_node
from tilefw_conformance.outcomes import GOOD
from tilefw_conformance.report import records
from tilefw_conformance.report.records import Record
from tilefw_conformance.reproduction import message, reproduce
from tilefw_conformance.subject import contradiction, program_of, spec_of

# A tenth of what a launch has (`tilefw.api.device`): cases are small, and one that never ends should say so in seconds.
CASE_BUDGET = 200_000_000


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case ended on one target, and why, whatever its plugin expects.

    `missing` are the capabilities that it needs and the target does not claim; of a case that passed, claims too few.
    """

    case: Case
    target: str
    outcome: str
    verdict: Verdict | None
    error: BaseException | None = None
    missing: frozenset[str] = frozenset()
    execution: Mapping[str, Any] = field(default_factory=dict)
    keywords: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return self.outcome in GOOD

    def record(self, *, artifacts: bool = False) -> Record:
        """Its line in a report."""
        return records.result(
            self.case, self.target, self.outcome, verdict=self.verdict, missing=self.missing, error=self.error,
            seconds=self.seconds, reproduce=reproduce(self.case, self.target, self.execution, self.keywords),
            artifacts=artifacts,
        )

    def message(self) -> str:
        """Several lines for a person."""
        return message(self.record())


def run(
    case: Case, target: Target, *, stage: str = "compare", audit: bool = False, began: Callable[[str], None] | None = None,
    keywords: Mapping[str, Any] | None = None, **execution: Any,
) -> CaseResult:
    """Run `case` up to `stage`, or to its own last one where that comes first; nothing that goes wrong in it is raised, but
    KeyboardInterrupt. A case that needs what the target does not claim is not run, unless for an `audit` of the claims.
    `began` is called with each stage as it begins; `keywords` are launch keywords beside the case's own.
    """
    said = {name: value for name, value in execution.items() if value is not None}
    last = min(stage, case.stop_after, key=STAGES.index)
    start = time.perf_counter()

    def ended(
        outcome: str, error: BaseException | None, unclaimed: frozenset[str] = frozenset(), verdict: Verdict | None = None
    ) -> CaseResult:
        return CaseResult(case, target.name, outcome, verdict, error, unclaimed, said, keywords or {}, time.perf_counter() - start)

    admit = None if audit else _admission(target)
    try:
        program = program_of(case)
        if program is not None:
            verdict = NodeVerification(
                program, case.parameters, target, seed=said.get("seed", case.seed), stop_after=last, keywords=keywords or {},
                admit=admit, began=began, execution={"budget": case.budget or CASE_BUDGET, **said},
            ).verdict()
            return ended(*_judge(case, target, verdict), verdict)
        spec = spec_of(case)
    except UnsupportedError as refused:  # the pack knows the case, and does not lower it: no word on the target
        return ended("unsupported", refused)
    except (Exception, SystemExit) as raised:
        return ended("error", _told(raised))
    try:
        verdict = verify(
            spec, case.parameters, target.name, stop_after=last, admit=admit, began=began,
            keywords=keywords, **{"seed": case.seed, "budget": case.budget or CASE_BUDGET, **said},
        )
        return ended(*_judge(case, target, verdict), verdict)
    except (Exception, SystemExit) as raised:
        return ended("error", _told(raised))


def _told(raised: BaseException) -> BaseException:
    """An error that has a code; anything else is a mistake of the code that raised it."""
    return raised if isinstance(raised, KernelError | InternalError) else InternalError(f"{type(raised).__name__}: {raised}")


def _admission(target: Target) -> Callable[[frozenset[str]], None]:
    """Refuses a kernel that needs what the target does not claim, before anything of the target's runs."""
    def admit(required: frozenset[str]) -> None:
        if unclaimed := missing(required, target.info.capabilities):
            raise UnsupportedError(f"{target.name} does not claim {', '.join(sorted(unclaimed))}", code="TFW0971")

    return admit


Judgement = tuple[str, BaseException | None, frozenset[str]]


def _judge(case: Case, target: Target, verdict: Verdict) -> Judgement:
    """`unsupported` only where a needed capability is not claimed; what is claimed and refused is `overclaimed`."""
    unclaimed = missing(verdict.required, target.info.capabilities)
    if verdict.required and (wrong := contradiction(case, verdict.required)) is not None:
        return "error", wrong, unclaimed
    failed = verdict.failed
    if failed is None:
        return "pass", None, unclaimed
    if failed.outcome == "error":
        return "error", failed.error, unclaimed  # a crash is not an answer, claimed or not
    if unclaimed:
        return "unsupported", failed.error, unclaimed
    if failed.outcome == "over-capacity":
        return "over-capacity", failed.error, unclaimed
    if failed.outcome == "unsupported":
        outcome = "unsupported" if without_node(verdict, target.info.capabilities) else "overclaimed"
        return outcome, failed.error, unclaimed
    if any(finding.check == "budget" for finding in verdict.findings):
        return "timeout", failed.error, unclaimed
    return "fail", failed.error, unclaimed
