"""badge.json: a target's score in the form that shields.io shows by its endpoint (https://shields.io/badges/endpoint-badge).

The score is of `core`, whatever else ran: that is the level which a badge stands for. It says how the cases were executed, since a
simulated result is not one of hardware, and how much of the level ran, since a part of it proves little.
"""

from __future__ import annotations

from typing import Any

from tilefw_conformance.outcomes import GOOD, UNFINISHED
from tilefw_conformance.report.reading import Report
from tilefw_conformance.report.wording import EXECUTORS, profiles


def badges(report: Report) -> dict[str, dict[str, Any]]:
    """File name -> badge: `badge.json` for a report of one target, `badge-TARGET.json` for each of several."""
    single = len(report.targets) == 1
    return {"badge.json" if single else f"badge-{one['name']}.json": _badge(report, one) for one in report.header["targets"]}


def _badge(report: Report, target: dict[str, Any]) -> dict[str, Any]:
    counted = report.footer["targets"].get(target["name"], {}).get("core", {})
    every, passed = sum(counted.values()), counted.get("pass", 0)
    unfinished = sum(counted.get(outcome, 0) for outcome in UNFINISHED)
    wrong = sum(n for outcome, n in counted.items() if outcome not in GOOD | UNFINISHED)
    bad = wrong + unfinished
    partial = report.header["expression"] is not None or "part" in report.header["options"]
    words = [f"{passed}/{every}"]
    if wrong:
        words.append(f"{wrong} wrong")
    if unfinished:
        words.append(f"{unfinished} timed out")
    if report.header["stage"] != "compare":
        words.append(f"to {report.header['stage']} only")
    if partial:
        words.append("a part")
    words += profiles(target["profiles"])
    words.append(EXECUTORS[target["executor"]])
    badge = {
        "schemaVersion": 1, "label": f"tilefw core {report.header['edition']} {target['name']}",
        "message": " · ".join(words), "color": _color(bad, passed, every, partial or report.header["stage"] != "compare"),
    }
    return {**badge, "isError": True} if bad else badge


def _color(bad: int, passed: int, every: int, partial: bool) -> str:
    if bad:
        return "red"
    if partial or not passed:
        return "lightgrey"
    return "brightgreen" if passed == every else "green"
