"""Whatever a plugin does to the process that runs a case: that case says so, every other one is complete."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilefw_conformance.report.records import Record
from tilefw_conformance.running import Plan, TargetRun
from tilefw_conformance.workers.supervisor import ATTEMPTS, Limits

LIMITS = Limits(start=60.0, case=6.0, memory=700 << 20)

# What each case ends with: the outcome, the error's code, and what the error says.
ENDS = {
    "good": ("pass", None, ""),
    "hang": ("timeout", "TFW0965", "not done after 6 s"),
    "segfault": ("error", "TFW0957", "SIGSEGV"),
    "fill": ("error", "TFW0967", "GiB of memory"),
    "print": ("pass", None, ""),
    "leave": ("error", "TFW0957", "ended by itself with status 0"),
    "lie": ("error", "TFW0968", "cannot be read"),
    "killed_once": ("pass", None, ""),
    "killed": ("error", "TFW0957", "SIGKILL"),
    "exit": ("error", None, "SystemExit: 3"),
    "raise": ("error", None, "ZeroDivisionError"),
}


@pytest.fixture
def ran(unruly: Path) -> dict[str, Record]:
    plan = Plan(expression="unruly/* or vector_add/ragged", limits=LIMITS, jobs=2)
    with TargetRun(plan, "unruly-x1") as run:
        selected = run.selected(plan.cases())
        results = list(run.results(selected))
    assert sorted(one["case"] for one in results) == sorted(case.id for case in selected)
    return {one["case"]: one for one in results}


def test_each_case_says_how_it_ended_and_the_others_are_complete(ran: dict[str, Record]) -> None:
    for name, (outcome, code, words) in ENDS.items():
        one = ran[f"unruly/{name}"]
        error = one["error"] or {"code": None, "message": ""}
        assert (one["outcome"], error["code"], words in error["message"]) == (outcome, code, True), one
    others = [one for name, one in ran.items() if name.startswith("vector_add/")]
    assert len(others) > 8 and all(one["outcome"] == "pass" for one in others)
    assert ran["unruly/killed_once"]["attempts"] == 2 and ran["unruly/killed"]["attempts"] == ATTEMPTS
    assert "Current thread" in ran["unruly/segfault"]["error"]["message"], "the stack of the crash is shown"
    assert "unruly" not in sys.modules, "the suite itself never runs a plugin's code"
