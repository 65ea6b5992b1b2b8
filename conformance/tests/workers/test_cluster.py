"""The suite on Dask: workers of several processes, one of which is killed, give what one process gives."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask distributed is not installed")

from tilefw.cli.main import main
from tilefw_conformance.report.totals import results_digest
from tilefw_conformance.running import Plan, TargetRun
from tilefw_conformance.workers import cluster

CASES = "swiglu/trips or vector_add/ragged"


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler of the test's own."""
    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen([*command, "--scheduler-file", str(file)], stderr=log)
    try:
        while (address := _address(file)) is None:
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def _address(file: Path) -> str | None:
    """What the scheduler wrote; None while the file is not there or not whole, since it is not renamed into place."""
    try:
        return json.loads(file.read_text())["address"]
    except (FileNotFoundError, json.JSONDecodeError):
        return None


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1:9"])
def test_without_a_scheduler_nothing_runs(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    assert main(["conformance", "--target", "reference", "-k", "vector_add/ragged", "--scheduler", address]) == 2
    err = capsys.readouterr().err
    assert "TFW0973" in err and address in err and "Traceback" not in err


def worker(address: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
    return subprocess.Popen([*command, "--local-directory", str(folder)], stderr=subprocess.DEVNULL)


def test_two_workers_one_of_which_is_killed(scheduler: str, tmp_path: Path) -> None:
    workers = [worker(scheduler, tmp_path / str(number)) for number in range(2)]
    try:
        results = []
        with TargetRun(Plan(expression=CASES, scheduler=scheduler), "reference") as run:
            cases = run.selected(run.plan.cases())
            for record in run.results(cases):
                results.append(record)
                if len(results) == 4:
                    workers[0].send_signal(signal.SIGKILL)
    finally:
        for process in workers:
            process.kill()
            process.wait()
    assert sorted(one["case"] for one in results) == sorted(case.id for case in cases)
    with TargetRun(Plan(expression=CASES), "reference") as run:
        assert results_digest(results) == results_digest(list(run.results(cases)))
