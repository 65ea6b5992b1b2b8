"""The conformance suite with the executor `hw`: the counts of a run, and each case that is no pass."""

from __future__ import annotations

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
