"""The last lines of a run, for a person: how many of each outcome, how near the bounds, which claims are too few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilefw_conformance.outcomes import OUTCOMES
from tilefw_conformance.report.headroom import is_rounding

_LAST = "compare"


def summary(header: Mapping[str, Any], results: Sequence[Mapping[str, Any]], seconds: float) -> str:
    """Two lines or more."""
    target = header["targets"][0]
    counts: Counter[str] = Counter(one["outcome"] for one in results)
    counted = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
    claimed = len(results) - counts["unsupported"]
    stage = "" if header["stage"] == _LAST else f", up to {header['stage']}"
    lines = [
        f"{target['name']} ({target['executor']}{stage}): {counted}; {counts['pass']} of {claimed} claimed pass, "
        f"{claimed} of {len(results)} cases claimed; {seconds:.1f} s"
    ]
    if ratios := [(float(one["error_over_bound"]), one["case"]) for one in results if _compared(one)]:
        lines.append(f"largest error over bound of a pass: {max(ratios)[0]:.3f} ({max(ratios)[1]})")
    if too_few := underclaimed(results):
        lines.append(f"served, but not claimed: {', '.join(too_few)}")
    return "\n".join(lines)


def underclaimed(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Capabilities that passing cases need and the target does not claim; only an audit runs such cases."""
    return sorted({name for one in results if one["outcome"] == "pass" for name in one["missing"]})


def _compared(one: Mapping[str, Any]) -> bool:
    """Whether it says how near the target comes to a bound: rounding alone reaches one, and says nothing."""
    return one["outcome"] in ("pass", "xpass") and one["error_over_bound"] is not None and not is_rounding(one)
