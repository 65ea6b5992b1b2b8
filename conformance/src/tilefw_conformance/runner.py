"""One case on one target: run its stages, name the outcome from the closed set, say how to run it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilefw.api.errors import InternalError, KernelError
from tilefw.kernels.capabilities import missing
from tilefw.kernels.spec import load
from tilefw.kernels.verify import Verdict, verify
from tilefw.runtime.loader import Target
from tilefw_conformance.case import Case
from tilefw_conformance.expectations import Expectation
from tilefw_conformance.outcomes import GOOD

DEFAULT_BUDGET = 200_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """How one case ended on one target, and why."""

    case: Case
    target: str
    outcome: str
    verdict: Verdict | None
    error: KernelError | InternalError | None = None
    missing: frozenset[str] = frozenset()
    reason: str = ""

    @property
    def good(self) -> bool:
        return self.outcome in GOOD

    @property
    def reproduce(self) -> str:
        """The command that runs this case alone, by the command line that every user has."""
        parameters = " ".join(f"--param {name}={value}" for name, value in self.case.parameters.items())
        return f"tilefw run {self.case.kernel} --target {self.target} --seed {self.case.seed} {parameters}"

    def message(self) -> str:
        """Several lines for a person: the outcome, its cause, the command."""
        lines = [f"{self.case.id} on {self.target}: {self.outcome}" + (f" ({self.reason})" if self.reason else "")]
        if self.missing:
            lines.append(f"needs {', '.join(sorted(self.missing))}, which the target does not claim")
        if self.error is not None:
            lines.append(str(self.error))
        lines.append(f"run it again: {self.reproduce}")
        return "\n".join(lines)


def run(case: Case, target: Target, expectations: Iterable[Expectation] = (), **execution: Any) -> Result:
    """Run `case`; nothing that goes wrong in it is raised, but KeyboardInterrupt."""
    execution = {"seed": case.seed, "budget": case.budget or DEFAULT_BUDGET, **_said(execution)}
    try:
        verdict = verify(load(case.kernel), case.parameters, target.name, stop_after=case.stop_after, **execution)
    except (KernelError, InternalError) as error:
        raw = Result(case, target.name, "error", None, error)
    else:
        raw = _judge(case, target, verdict)
    return _expected(raw, expectations)


def _said(execution: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in execution.items() if value is not None}


def _judge(case: Case, target: Target, verdict: Verdict) -> Result:
    """`unsupported` only where a needed capability is not claimed; what is claimed and refused is `overclaimed`."""
    unclaimed = missing(verdict.required | case.requires, target.info.capabilities)
    failed = verdict.failed
    if failed is None:
        # Unclaimed and yet right: a claim too few harms nobody, and the case did pass.
        return Result(case, target.name, "pass", verdict)
    if failed.outcome == "error":
        return Result(case, target.name, "error", verdict, failed.error)  # a crash is no answer, claimed or not
    if unclaimed:
        return Result(case, target.name, "unsupported", verdict, failed.error, unclaimed)
    if failed.outcome == "unsupported":
        return Result(case, target.name, "overclaimed", verdict, failed.error)
    if any(finding.check == "budget" for finding in verdict.findings):
        return Result(case, target.name, "timeout", verdict, failed.error)
    return Result(case, target.name, "fail", verdict, failed.error)


def _expected(raw: Result, expectations: Iterable[Expectation]) -> Result:
    known = next((e for e in expectations if e.covers(raw.case.id, raw.target)), None)
    if known is None or raw.outcome == "unsupported":
        return raw
    outcome = "xpass" if raw.outcome == "pass" else "xfail"
    return Result(raw.case, raw.target, outcome, raw.verdict, raw.error, raw.missing, f"{known.reason}, {known.issue}")
