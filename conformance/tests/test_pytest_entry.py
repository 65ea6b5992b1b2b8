"""`pytest --pyargs tilefw_conformance --target T`, as a third party's CI calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "tilefw_conformance", *arguments]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)


def test_cases_are_tests_with_their_target_and_id(tmp_path: Path) -> None:
    done = run(tmp_path, "--target", "reference", "-v", "-k", "swiglu/trips")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_case[reference-swiglu/trips/columns=65] PASSED" in done.stdout
    assert "7 passed" in done.stdout


def test_another_plugin_may_own_the_short_option(tmp_path: Path) -> None:
    (tmp_path / "taken.py").write_text('def pytest_addoption(parser):\n    parser.addoption("--target")\n')
    done = run(tmp_path, "-p", "taken", "--tilefw-target", "reference", "-k", "vector_add and ragged and 257")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
