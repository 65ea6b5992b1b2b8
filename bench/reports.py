"""What pages that count reports of the suite share: the targets, a run of one, its refusals, how near its bounds it comes."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tilefw_conformance.report.headroom import is_tight
from tilefw_conformance.report.records import Record

TARGETS = ("reference", "nvidia-sm80", "amd-cdna3", "amd-cdna4", "spatial-sdm1")
REFUSED = ("unsupported", "over-capacity")


def run(target: str, folder: Path, *arguments: str) -> str:
    """Run the suite on one target; the folder of its report."""
    command = [sys.executable, "-m", "tilefw", "conformance", *arguments, "--target", target, "--report", str(folder)]
    subprocess.run(command, check=False)  # what fails stands in the report
    return str(folder)


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [names, ["---"] * len(names), *rows]]


def reason(one: Record) -> str:
    """Why a result is no pass, in a line."""
    return one["reason"] or ", ".join(one["missing"]) or (one["error"] or {}).get("message", "").partition("\n")[0]


def refused(results: Mapping[str, Sequence[Record]]) -> list[str]:
    """Refusals by target and reason, most first: a capability that the target does not claim (a case may lack several), or what the
    chip has not enough of."""
    counted = Counter(
        (target, one["outcome"], said)
        for target, of in results.items() for one in of if one["outcome"] in REFUSED for said in one["missing"] or [reason(one)]
    )
    if not counted:
        return ["Nothing: every target runs every case."]
    rows = sorted(counted.items(), key=lambda row: (row[0][:2], -row[1], row[0]))
    return table(["target", "outcome", "reason", "cases"], [[*key, str(number)] for key, number in rows])


def nearest(results: Mapping[str, Sequence[Record]]) -> list[str]:
    """How near to its bound the worst element of a pass comes, besides those whose last rounding alone explains it."""
    names = ["target", "median error over bound", "largest", "passes near the bound by more than rounding the output"]
    return table(names, [[target, *_headroom(of)] for target, of in results.items()])


def _headroom(results: Sequence[Record]) -> list[str]:
    ratios = sorted(one["error_over_bound"] or 0.0 for one in results if one["outcome"] == "pass") or [0.0]
    return [f"{ratios[len(ratios) // 2]:.3f}", f"{ratios[-1]:.3f}", str(sum(map(is_tight, results)))]
