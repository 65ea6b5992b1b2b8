"""Whatever a plugin does to the process that runs a case: that case says so, every other one is complete."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilefw.cli.main import main
from tilefw_conformance.report.records import Record
from tilefw_conformance.running import Plan, TargetRun
from tilefw_conformance.workers.supervisor import ATTEMPTS, WorkerLimits

LIMITS = WorkerLimits(start=60.0, case=8.0, memory=400 << 20)

# What each case ends with: the outcome, the error's code, and what the error says.
ENDS = {
    "good": ("pass", None, ""),
    "hang": ("timeout", "TFW0965", "not done after 8 s"),
    "segfault": ("error", "TFW0957", "SIGSEGV"),
    "fill": ("error", "TFW0967", "MiB of memory"),
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
    assert "in hang" in ran["unruly/hang"]["error"]["message"], "and where it hung"
    for name in ("hang", "segfault", "fill", "leave", "lie", "killed"):
        stages = [(stage["name"], stage["outcome"]) for stage in ran[f"unruly/{name}"]["stages"]]
        assert stages == [("verify", "pass"), ("lower", "pass"), ("emit", ENDS[name][0])], "the stage that lost the process is told"
    assert "unruly" not in sys.modules, "the suite itself never runs a plugin's code"


def run(*options: str) -> int:
    return main(["conformance", "--target", "unruly-x1", "-k", "unruly/good or unruly/leave or unruly/raise", *options])


def test_failures_are_expected_once_they_are_written_down(unruly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fails; is updated; is refused for want of an issue; passes; and fails again when a case passes that should not."""
    file = unruly / "conformance.yaml"
    assert run("--update-expectations") == 1
    assert "2 new, 0 gone" in capsys.readouterr().err and file.read_text().startswith("# Kept by hand.\n")
    assert run() != 0 and "TODO" in capsys.readouterr().err
    file.write_text(file.read_text().replace("TODO", "https://example.org/7"))
    assert run() == 0 and "1 pass, 2 xfail" in capsys.readouterr().out
    file.write_text(file.read_text().replace("unruly/leave", "unruly/*"))
    assert run() == 1 and "xpass" in capsys.readouterr().err


def test_a_run_in_which_nothing_passes_is_no_good_run(unruly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (unruly / "conformance.yaml").write_text(
        "expectations:\n  - {case: unruly/leave, reason: it leaves, issue: 'https://example.org/7', until: '9.9'}\n"
    )
    assert main(["conformance", "--target", "unruly-x1", "-k", "unruly/leave"]) == 5
    assert "1 xfail" in capsys.readouterr().out


@pytest.mark.parametrize(("deed", "said"), [
    ("time.sleep(99)", "not done after 1 s"), ("os._exit(7)", "status 7"), ("1 / 0", "ZeroDivisionError"),
])
def test_a_plugin_that_does_not_load_is_told(
    deed: str, said: str, unruly: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = unruly.parent / "unruly.py"
    plugin.write_text(plugin.read_text().replace("def hang():", f"{deed}\n\n\ndef hang():"))
    monkeypatch.setattr("tilefw_conformance.cli.WorkerLimits", lambda **_: WorkerLimits(start=1.0 if "sleep" in deed else 60.0))
    assert main(["conformance", "--target", "unruly-x1"]) == 4
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err.partition("it printed")[0]
