"""However a run is cut up or interrupted, its results are the same: none lost, none twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilefw.cli.main import main
from tilefw_conformance.report.reading import read
from tilefw_conformance.report.totals import results_digest
from tilefw_conformance.running import Plan, TargetRun
from tilefw_conformance.workers import supervisor

CASES = "swiglu/trips or vector_add/ragged or column_sum"


@pytest.fixture(autouse=True)
def _two_workers_for_few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "CASES_A_PROCESS", 4)


def digest(jobs: int, kill: tuple[int, ...] = ()) -> str:
    """Of a run in which a busy worker is killed at each of the results numbered in `kill`."""
    results = []
    with TargetRun(Plan(expression=CASES, jobs=jobs), "reference") as run:
        cases = run.selected(run.plan.cases())
        for record in run.results(cases):
            if len(results) in kill:
                seats = run._supervisor._seats
                assert len(seats) == jobs
                os.kill(next(seat for seat in seats if seat.task is not None).worker.pid, signal.SIGKILL)
            results.append(record)
    assert sorted(one["case"] for one in results) == sorted(case.id for case in cases) and len(cases) > 20
    assert all(one["outcome"] == "pass" for one in results)
    assert (max(one["attempts"] for one in results) > 1) == bool(kill)
    return results_digest(results)


@pytest.fixture(scope="module")
def whole() -> str:
    """The digest of a run by one process that nobody disturbs."""
    return digest(1)


def test_one_process_two_and_two_that_are_killed_give_one_digest(whole: str) -> None:
    assert digest(2) == digest(2, kill=(6, 13)) == whole


HELD = 5  # results in the report when the signal comes


def lines(folder: Path) -> int:
    report = folder / "report.jsonl"
    return report.read_text().count('"kind":"result"') if report.exists() else 0


def interrupted(folder: Path, how: signal.Signals) -> tuple[int, str]:
    """A run that gets a signal after HELD results: its status and what it printed. It is held there, however fast it is."""
    held = str(Path(__file__).with_name("held.py"))
    argv = ["conformance", "--target", "reference", "-k", CASES, "--jobs", "2", "--report", str(folder)]
    process = subprocess.Popen([sys.executable, held, str(HELD), *argv], stderr=subprocess.PIPE, text=True)
    while lines(folder) < HELD:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on_where_it_stopped(
    how: signal.Signals, whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "report"
    status, err = interrupted(folder, how)
    assert status == (130 if how is signal.SIGINT else -9)
    assert how is not signal.SIGINT or ("--resume goes on" in err and "Traceback" not in err)
    before = lines(folder)
    assert main(["conformance", "verify", str(folder)]) != 0
    with open(folder / "report.jsonl", "ab") as file:
        file.write(b'{"kind":"result","case":"torn')
    assert main(["conformance", "--target", "reference", "-k", CASES, "--report", str(folder), "--resume"]) == 0
    resumed = read(str(folder))
    assert HELD == before < len(resumed.results) and resumed.footer["digest"] == whole
    assert main(["conformance", "verify", str(folder)]) == 0
    capsys.readouterr()


def test_workers_end_with_the_suite(tmp_path: Path, unruly: Path) -> None:
    """Also one that hangs in a case, when the suite itself is killed."""
    command = [sys.executable, "-m", "tilefw", "conformance", "--target", "unruly-x1", "-k", "hang", "--report", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(unruly.parent)}
    mark = Path(environment["UNRULY_MARK"] + ".hangs")  # the case leaves it when it begins to hang
    process = subprocess.Popen(command, env=environment)
    while not mark.exists():
        assert process.poll() is None
        time.sleep(0.02)
    started = children(process.pid)
    assert started
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while running(started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(started)


def running(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_resumed_report_is_of_the_same_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["conformance", "--target", "reference", "--report", str(tmp_path), "-k", "vector_add/ragged/n=31"]
    assert main(argv) == 0
    assert main([*argv, "--resume"]) == 0, "a whole report has nothing left to do"
    assert main([*argv, "--resume", "--stage", "emit"]) == 2
    assert "TFW0975" in capsys.readouterr().err
    header = json.loads((tmp_path / "report.jsonl").read_text().splitlines()[0])
    assert header["stage"] == "compare"
