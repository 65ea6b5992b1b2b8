"""What a footer says of its results: counts by level and target, and a digest that every way of running them shares."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilefw_conformance.outcomes import OUTCOMES
from tilefw_conformance.report.records import Record, digest

# What may differ between two runs of the same cases by the same code: clocks, how often a worker was lost, and texts that
# carry clocks, paths and addresses. The footer's `content` covers them all the same.
_VARYING = frozenset({"seconds", "attempts", "reproduce", "artifact", "error", "stages"})


def footer(results: Sequence[Mapping[str, Any]], seconds: float, content: str) -> Record:
    """The last line; `content` is the sha256 of every byte before it, so that an edited line shows."""
    return {
        "kind": "footer", "counts": counts(results), "targets": targets(results), "cases": len(results),
        "digest": results_digest(results), "content": content, "seconds": round(seconds, 3),
    }


def counts(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """{level: {outcome: n}}, each outcome that occurred, in one order."""
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in results:
        counted[one["level"]][one["outcome"]] += 1
    return {level: _ordered(counted[level]) for level in sorted(counted)}


def targets(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, int]]]:
    """{target: {level: {outcome: n}}}."""
    by_target: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in results:
        by_target[one["target"]].append(one)
    return {name: counts(by_target[name]) for name in sorted(by_target)}


def results_digest(results: Iterable[Mapping[str, Any]]) -> str:
    """sha256 over the results in the order of targets and cases, without what varies from run to run."""
    return digest([canonical(one) for one in sorted(results, key=lambda one: (one["target"], one["case"]))])


def canonical(one: Mapping[str, Any]) -> Record:
    """The part of a result that every run of it has alike: for each stage its verdict without its time, for an error its code."""
    kept = {name: value for name, value in one.items() if name not in _VARYING}
    kept["stages"] = [{name: stage[name] for name in ("name", "outcome", "note")} for stage in one["stages"]]
    kept["error"] = None if one["error"] is None else one["error"]["code"]
    return kept


def _ordered(counted: Counter[str]) -> dict[str, int]:
    return {name: counted[name] for name in OUTCOMES if counted[name]}
