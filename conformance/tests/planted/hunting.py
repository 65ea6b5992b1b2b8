"""The hunt: each planted bug in each kernel whose IR it changes, with that kernel's core cases, until one of them fails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilefw.api.device import DEFAULT_CHECKS
from tilefw.runtime.plugins.loader import find_target
from tilefw.testing import distribution
from tilefw_conformance.case import Case
from tilefw_conformance.case_files import bundled
from tilefw_conformance.runner import CaseResult, run

PLUGIN = Path(__file__).parent / "plugin"
FOUND = ("fail", "timeout")  # an `error` would say that the rewrite made no valid IR


@dataclass(frozen=True, slots=True)
class Clean:
    """A core case without a bug: the bugs that change its IR, and its error over its bound."""

    case: Case
    sites: frozenset[str]
    error_over_bound: float


@dataclass(frozen=True, slots=True)
class Hunt:
    """One bug in one kernel. `case` is the first that failed, with its outcome and its error over its bound (None where a check
    stopped it); None where all `tried` passed.
    """

    bug: str
    kernel: str
    tried: int
    case: str | None = None
    outcome: str | None = None
    error_over_bound: float | None = None


def install(folder: Path) -> tuple[str, str]:
    """Make the plugin one that is installed: gives what has to stand on sys.path."""
    distribution.write(folder, "planted", "tilefw_planted")
    return str(folder), str(PLUGIN)


def core_cases(kernels: Iterable[str] = ()) -> Mapping[str, Sequence[Case]]:
    """The core cases by kernel; of all kernels, or of some."""
    wanted = set(kernels)
    cases: dict[str, list[Case]] = defaultdict(list)
    for case in bundled():
        if case.level == "core" and (not wanted or case.kernel in wanted):
            cases[case.kernel].append(case)
    return cases


def clean(case: Case) -> Clean:
    """Run a case without a bug; raises AssertionError where it does not pass, as then it shows nothing."""
    result = run(case, find_target("planted-nothing"))
    assert result.outcome == "pass" and result.verdict is not None and result.verdict.artifact is not None, result.message()
    sites = frozenset(result.verdict.artifact.metadata["sites"])
    return Clean(case, sites, result.verdict.error_over_bound or 0.0)


def hunt(bug: str, kernel: str, cases: Iterable[Case]) -> Hunt:
    """Run the cases on the target with the bug until one fails."""
    from tilefw_planted.table import BUGS  # once the plugin is installed

    target, tried = find_target(f"planted-{bug}"), 0
    checks = DEFAULT_CHECKS | BUGS[bug].checks
    for case in cases:
        result = run(case, target, checks=checks)
        tried += 1
        assert result.outcome in ("pass", *FOUND), f"{bug}: the rewrite is wrong\n{result.message()}"
        if result.outcome != "pass":
            return Hunt(bug, kernel, tried, case.id, result.outcome, _distance(result))
    return Hunt(bug, kernel, tried)


def _distance(result: CaseResult) -> float | None:
    return None if result.verdict is None else result.verdict.error_over_bound


def hunts(cleaned: Sequence[Clean], bugs: Iterable[str]) -> Iterator[Hunt]:
    """Every bug in one kernel, of which these are the cases."""
    for bug in bugs:
        changed = [one.case for one in cleaned if bug in one.sites]
        if changed:
            yield hunt(bug, changed[0].kernel, changed)


def as_json(one: Hunt) -> dict[str, Any]:
    return asdict(one)
