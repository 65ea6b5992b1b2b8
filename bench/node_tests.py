"""ONNX's node tests on every target, counted by kind of operator: writes `onnx.md`. Not a ratio: a record of what passes.

    python bench/node_tests.py            # runs the pack on each target, some four minutes
    python bench/node_tests.py REPORT …   # counts reports that `tilefw conformance --pack onnx --report` has written
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import onnx

from tilefw_conformance.packs.onnx.operators import OPERATORS
from tilefw_conformance.report.headroom import is_tight
from tilefw_conformance.report.reading import Report, read
from tilefw_conformance.report.records import Record

TARGETS = ("reference", "nvidia-sm80", "amd-cdna3")


def main(said: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        reports = [read(path) for path in (said or [_run(target, Path(folder) / target) for target in TARGETS])]
    (Path(__file__).parent / "onnx.md").write_text(told(reports), "utf-8")
    bad = [one for report in reports for one in report.results.values() if one["outcome"] != "pass"]
    print(f"{len(bad)} of {sum(len(report.results) for report in reports)} results are no pass; bench/onnx.md")
    return 0


def _run(target: str, folder: Path) -> str:
    command = [sys.executable, "-m", "tilefw", "conformance", "--target", target, "--pack", "onnx", "--report", str(folder)]
    subprocess.run(command, check=False)  # what fails stands in the report
    return str(folder)


def told(reports: Sequence[Report]) -> str:
    """The page: a row for each kind of operator, and every result that is no pass with its reason."""
    targets = [name for report in reports for name in report.targets]
    results = {target: report.of(target) for report in reports for target in report.targets}
    operators: dict[str, set[str]] = defaultdict(set)
    for case in reports[0].cases:
        operators[_kind(_operator(case))].add(_operator(case))
    counted = {target: Counter(_kind(_operator(one["case"])) for one in passed(of)) for target, of in results.items()}
    every = Counter(_kind(_operator(case)) for case in reports[0].cases)
    rows = [
        [kind, str(len(names)), str(every[kind]), *(str(counted[target][kind]) for target in targets)]
        for kind, names in sorted(operators.items())
    ]
    known = set().union(*operators.values())
    whole = ["all", str(len(known)), str(every.total()), *(str(counted[target].total()) for target in targets)]
    table = _table(["kind", "operators", "tests", *targets], [*rows, whole])
    return "\n".join([
        "# ONNX's node tests", "",
        f"Made by `tox -e onnx` with onnx {onnx.__version__}: the tests that pass, by kind of operator. A",
        "kind is the module of `tilefw_conformance.packs.onnx` that lowers it. On `reference` ONNX's expected values are within",
        "the bounds too.",
        "", *table, "", *_others(results), "", *_nearest(results), "",
    ])


def _others(results: dict[str, list[Record]]) -> Iterable[str]:
    bad = [one for of in results.values() for one in of if one["outcome"] != "pass"]
    if not bad:
        return ["Nothing else: no test is unsupported, expected to fail, or failing."]
    return _table(
        ["test", "target", "outcome", "reason"], [[one["case"], one["target"], one["outcome"], _reason(one)] for one in bad]
    )


def _reason(one: Record) -> str:
    return one["reason"] or ", ".join(one["missing"]) or (one["error"] or {}).get("message", "").partition("\n")[0]


def _nearest(results: dict[str, list[Record]]) -> Iterable[str]:
    """How near to its bound the worst element of a pass comes, besides those whose last rounding alone explains it."""
    shown = []
    for target, of in results.items():
        ratios = sorted(one["error_over_bound"] or 0.0 for one in passed(of)) or [0.0]
        tight = sum(1 for one in of if is_tight(one))
        shown.append([target, f"{ratios[len(ratios) // 2]:.3f}", f"{ratios[-1]:.3f}", str(tight)])
    return _table(["target", "median error over bound", "largest", "passes near the bound by more than rounding the output"], shown)


def passed(results: Iterable[Record]) -> list[Record]:
    return [one for one in results if one["outcome"] == "pass"]


def _operator(case: str) -> str:
    return case.split("/")[1]


def _kind(operator: str) -> str:
    return OPERATORS[operator].__module__.rpartition(".")[2].replace("_", " ")


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [names, ["---"] * len(names), *rows]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
