"""What is right on the card: the conformance suite and random programs with the executor `hw`, counted, with each that fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from reports import reason, table

from tilefw_conformance.report.reading import read


def suite(asked: Any) -> tuple[list[str], bool]:
    """The lines of the page, and whether every case that the target claims passes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "tilefw", "conformance", "--target", asked.target, "--executor", "hw", "--level", asked.level,
            "--jobs", str(asked.jobs), "--report", folder, *(["-k", asked.selection] if asked.selection else []),
        ]
        done = subprocess.run(command, check=False)
        report = Path(folder, "report.jsonl")
        if not report.exists():
            return ["The suite made no report."], False
        results = list(read(str(report)).results.values())
    counted = Counter(one["outcome"] for one in results)
    lines = [f"Level {asked.level}" + (f", cases `{asked.selection}`" if asked.selection else "") + ":", ""]
    lines += table(["outcome", "cases"], [[outcome, str(number)] for outcome, number in sorted(counted.items())])
    others = [one for one in results if one["outcome"] in ("fail", "error", "crash", "timeout")]
    if others:
        lines += ["", *table(["case", "outcome", "why"], [[one["case"], one["outcome"], reason(one)] for one in others])]
    return lines, done.returncode == 0 and bool(results)


def programs(asked: Any) -> tuple[list[str], bool]:
    """Random tile programs against the reference: the lines of the page, and whether every one of them passes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "tilefw.testing.programs", "--target", asked.target, "--count", str(asked.programs),
            "--jobs", str(asked.jobs), "--out", folder,
        ]
        done = subprocess.run(command, check=False, env={**os.environ, "TILEFW_EXECUTOR": "hw"})
        report = Path(folder, "result.json")
        if not report.exists():
            return ["The campaign made no report."], False
        result = json.loads(report.read_text())
    outcomes = ", ".join(f"{number} {status}" for status, number in sorted(result["targets"][asked.target]["outcomes"].items()))
    drawn = f"Programs 0 to {asked.programs - 1} of seed {result['seed']}, as `python -m tilefw.testing.programs` draws them"
    lines = [f"{drawn}: {outcomes}."]
    if result["failures"]:
        lines += ["", *table(["program", "outcome"], [[str(one["index"]), one["status"]] for one in result["failures"]])]
    return lines, done.returncode == 0
