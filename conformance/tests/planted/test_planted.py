"""The core level finds every planted bug: each in one kernel here, in every kernel in `bench/planted.py` (`tox -e planted`)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hunting import PLUGIN, clean, core_cases, hunt, install

sys.path.insert(0, str(PLUGIN))
from tilefw_planted.table import BUGS

RECORD = json.loads((Path(__file__).parents[3] / "bench" / "planted.json").read_text("utf-8"))
FOUND = [one for one in RECORD["hunts"] if one["case"] is not None]
SEED = 1


def chosen(bug: str) -> Mapping[str, Any]:
    """One of the last campaign's finds of the bug, by a fixed seed."""
    return random.Random(f"{SEED} {bug}").choice([one for one in FOUND if one["bug"] == bug])


@pytest.fixture(scope="module")
def cases():
    return core_cases()


@pytest.mark.parametrize("bug", BUGS)
def test_a_core_case_finds_the_bug(bug: str, cases: Any, planted: None) -> None:
    one = chosen(bug)
    last_time_first = sorted(cases[one["kernel"]], key=lambda case: case.id != one["case"])
    assert hunt(bug, one["kernel"], last_time_first).case is not None, f"no core case of {one['kernel']} finds {bug}"


@pytest.mark.parametrize("case", ["attention/lengths/queries=1,causal=false", "elementwise/poles/operation=div"])
def test_nothing_planted_passes(case: str, cases: Any, planted: None) -> None:
    """Casts on the way round, and what underflows keeps its sign."""
    (one,) = [one for one in cases[case.partition("/")[0]] if one.id == case]
    assert clean(one).sites


def test_the_last_campaign_was_of_these_bugs() -> None:
    assert {one["bug"] for one in FOUND} == set(BUGS), "run tox -e planted"


def test_the_command_line_judges_a_planted_target_like_any(tmp_path: Path) -> None:
    places = os.pathsep.join(install(tmp_path / "site"))
    command = [
        sys.executable, "-m", "tilefw", "conformance", "--target", "planted-store-one-less", "-k", "vector_add/ragged/*",
        "--report", str(tmp_path / "report"),
    ]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": places}, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "report" / "report.jsonl").read_text("utf-8").splitlines()]
    outcomes = {line["case"]: line["outcome"] for line in lines if line["kind"] == "result"}
    assert outcomes["vector_add/ragged/n=0"] == "pass" and "fail" in outcomes.values()
