"""`pytest --pyargs tilefw_conformance --target T`, as a third party calls it: the same workers, outcomes and options."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tilefw_conformance.report.reading import read


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "tilefw_conformance", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, **environment}
    )


def test_a_plugin_that_ruins_its_process_fails_its_own_tests(unruly: Path, tmp_path: Path) -> None:
    done = run(
        tmp_path, "--target", "unruly-x1", "-k", "unruly/good or unruly/leave or unruly/hang or vector_add/ragged", "--jobs", "2",
        "--time-limit", "8", "--report", str(tmp_path / "report"), f"--junit-xml={tmp_path / 'junit.xml'}",
        PYTHONPATH=str(unruly.parent),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED" in done.stdout and "ended by itself with status 0" in done.stdout and "Traceback" not in done.stdout
    assert "2 failed" in done.stdout
    report = read(str(tmp_path / "report"))
    outcomes = {one["case"]: one["outcome"] for one in report.results.values()}
    assert outcomes.pop("unruly/leave") == "error" and outcomes.pop("unruly/hang") == "timeout"
    assert len(outcomes) > 8 and set(outcomes.values()) == {"pass"}
    tests = ElementTree.parse(tmp_path / "junit.xml").getroot().findall(".//testcase")
    assert len(tests) == len(report.results)
    assert sum(test.find("failure") is not None for test in tests) == 2


def test_a_test_that_is_not_reached_is_left_for_later(tmp_path: Path) -> None:
    """With -x nothing is lost: the report goes on with --resume, and has every result once."""
    options = ["--target", "reference", "-k", "vector_add/ragged", "--report", str(tmp_path / "report")]
    (tmp_path / "stop.py").write_text(
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'call' and 'n=32]' in report.nodeid:\n"
        "        raise KeyboardInterrupt\n"
    )
    done = run(tmp_path, *options, "-p", "stop")
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [json.loads(line) for line in (tmp_path / "report" / "report.jsonl").read_text().splitlines()]
    assert lines[-1]["kind"] == "result"
    done = run(tmp_path, *options, "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(read(str(tmp_path / "report")).results) > 8


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "give --target T"),
    (["--target", "referense"], "did you mean"),
    (["--target", "reference", "-k", "vector_add/ragged", "--report", "a_file"], "cannot be written to a_file"),
])
def test_a_mistake_is_told_in_a_line_and_not_as_a_test_that_failed(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "a_file").touch()
    done = run(tmp_path, *arguments)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert said in done.stderr and "error" not in done.stdout.lower() and "Traceback" not in done.stderr


def test_a_run_in_which_nothing_passes_is_no_good_run(unruly: Path, tmp_path: Path) -> None:
    (unruly / "conformance.yaml").write_text(
        "expectations:\n  - {case: unruly/leave, reason: it leaves, issue: 'https://example.org/7', until: '9.9'}\n"
    )
    done = run(tmp_path, "--target", "unruly-x1", "-k", "unruly/leave", PYTHONPATH=str(unruly.parent))
    assert done.returncode == 5 and "1 xfailed" in done.stdout, done.stdout + done.stderr


def test_with_xdist_each_process_has_a_worker_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    done = run(tmp_path, "--target", "reference", "-k", "vector_add/ragged", "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout
