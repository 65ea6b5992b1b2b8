"""Triton's own tests: 500 fixed cases, from the checkout of Triton that TILEFW_TRITON_CHECKOUT names.

Each case passes, is skipped by its own code, or fails for a reason that bench/upstream_known.py holds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench"
CASES = BENCH / "upstream_cases.txt"
CHECKOUT = os.environ.get("TILEFW_TRITON_CHECKOUT", "")

pytestmark = pytest.mark.skipif(not CHECKOUT, reason="no checkout of Triton: TILEFW_TRITON_CHECKOUT is not set")


@pytest.mark.parametrize("target", os.environ.get("TILEFW_TRITON_TARGETS", "reference nvidia-sm80 amd-cdna3").split())
def test_fixed_cases_pass_or_fail_for_a_known_reason(target: str, tmp_path: Path) -> None:
    cases = CASES.read_text("utf-8").splitlines()
    results = tmp_path / "results.jsonl"
    command = [
        sys.executable, str(BENCH / "upstream.py"), CHECKOUT, "--target", target, "--listed", str(CASES), "--keep", str(results),
        "--tests", *dict.fromkeys(case.partition("::")[0] for case in cases),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr  # 1: a failure without a known reason
    ran = {json.loads(line)["test"] for line in results.read_text("utf-8").splitlines()}
    assert len(ran) == len(cases), f"the checkout does not have every case of {CASES.name}"
