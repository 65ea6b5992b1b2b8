"""A target and the options of a run, in the process that runs its cases: what the target is, and each result as a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilefw.api.errors import InternalError, KernelError, PluginError, UnsupportedError, UsageError
from tilefw.cli.arguments import refuse_unknown
from tilefw.kernels.stages import STAGES
from tilefw.runtime import config
from tilefw.runtime.executor import executor_for, unsaid
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw_conformance.case import Case
from tilefw_conformance.report import records
from tilefw_conformance.report.records import Record
from tilefw_conformance.runner import run
from tilefw_conformance.suite import cases_of, expectations_of, writable
from tilefw_conformance.workers.protocol import OpenSession, Ready, Refused


@dataclass(frozen=True, slots=True)
class WorkerSession:
    opening: OpenSession
    target: Target
    ready: Ready

    def run(self, case: Case, began: Callable[[str], None] | None = None) -> Record:
        """The case's result; nothing that goes wrong in it is raised. `began` is called with each of its stages."""
        said = self.opening
        result = run(
            case, self.target, stage=self.ready.stage, audit=said.audit, began=began, keywords=said.keywords, **said.execution
        )
        return result.record(artifacts=said.artifacts)


def opened(opening: OpenSession) -> WorkerSession | Refused:
    """The session, or why there is none: no such target, or a plugin that does not load."""
    try:
        target = find_target(opening.target)
        target.backend  # noqa: B018 (made now, so that what fails in it is the target's fault and no case's)
        return WorkerSession(opening, target, _ready(opening, target))
    except KernelError as error:
        return Refused(error)
    except (Exception, SystemExit) as error:
        why = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
        return Refused(PluginError(f"target '{opening.target}' cannot be used: {why}", code="TFW0969"))


def _ready(opening: OpenSession, target: Target) -> Ready:
    refuse_unknown(opening.keywords, target.info)
    known = expectations_of(target)
    shown = records.target(target, _executor(opening, target), known)
    return Ready(shown, _last_stage(opening.stage, target), known, writable(target), cases_of(target))


def _executor(opening: OpenSession, target: Target) -> str:
    """What executes the cases. Raises UsageError for an option that no case could run with: better now, and once."""
    asked = config.resolve(config.settings(target.name, **opening.execution)).executor
    asked = unsaid(target.info) if asked == "default" else asked
    if target.name == "reference" and asked != "hw":
        return "ref"
    executes = {"simulate", "device"} & target.info.provides
    try:
        return "sim" if asked == "sim" or (asked == "auto" and not executes) else executor_for(target, asked).device.executor
    except UnsupportedError as error:
        raise UsageError(error.message, code=error.code, help="leave --executor out, or give --executor sim") from None


def _last_stage(asked: str, target: Target) -> str:
    """A target that nothing executes is judged by its compile stages."""
    provides = target.info.provides
    if {"simulate", "device"} & provides:
        return asked
    most = "assemble" if "assemble" in provides else "emit"
    return STAGES[min(STAGES.index(asked), STAGES.index(most))]
