"""An oracle that the run must have is never skipped in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tree import ROOT

from oracles.required import ORACLES, VARIABLE, missed

SKIPPED = '''
import pytest
@pytest.mark.skipif(True, reason="llvm-mca-22 is not installed")
def test_one(): pass
def test_two(): pytest.skip("the library has no such combination")
'''
NOT_COLLECTED = 'import pytest\npytest.importorskip("triton_of_nobody", reason="Triton is not installed")\n'


def ran(folder: Path, text: str, required: str) -> tuple[int, str]:
    (folder / "test_skips.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "oracles.required", str(folder)]
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), VARIABLE: required}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_a_skip_for_want_of_a_required_oracle_fails(tmp_path: Path) -> None:
    status, out = ran(tmp_path, SKIPPED, "llvm")
    assert status == 1 and "1 skipped, 1 error" in out and "this did not run: llvm-mca-22 is not installed" in out
    assert "     1  the library has no such combination" in out


def test_without_the_requirement_it_is_skipped_and_counted(tmp_path: Path) -> None:
    status, out = ran(tmp_path, SKIPPED, "")
    assert status == 0 and "2 skipped" in out and "     1  llvm-mca-22 is not installed" in out


def test_a_module_that_is_not_collected_fails_too(tmp_path: Path) -> None:
    status, out = ran(tmp_path, NOT_COLLECTED, "triton,llvm")
    assert status != 0 and "this did not run: Triton is not installed" in out


def test_a_name_that_is_no_oracle_is_refused(tmp_path: Path) -> None:
    status, out = ran(tmp_path, SKIPPED, "lvm")
    assert status != 0 and "the oracles are triton" in out


@pytest.mark.parametrize(("reason", "name"), [
    ("no llvm-mc-22 (apt-get install llvm-22, or set TILEFW_LLVM_MC)", "llvm"),
    ("no ptxas: pip install tilefw-nvidia[ptxas]", "ptxas"),
    ("matmul: install triton==3.9.0 to compile it", "triton"),
    ("torch is not installed, which Triton's interpreter needs", "torch"),
    ("no browser here: none of chromium is on the path", "browser"),
    ("mmasim is not installed: pip install torch==2.13.0 mmasim", "mmasim"),
    ("cuTile is not installed: pip install cuda-tile==1.7.0", "cutile"),
    ("the library has no such combination", None),
])
def test_a_reason_names_its_oracle(reason: str, name: str | None) -> None:
    assert missed(reason, frozenset(ORACLES)) == name


def test_ci_requires_every_oracle_that_it_installs() -> None:
    assert f"export {VARIABLE}={','.join(ORACLES)}\n" in (ROOT / ".ci" / "run").read_text("utf-8")
