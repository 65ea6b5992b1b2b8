"""ONNX's node tests on every target, counted by kind of operator: writes `onnx.md`. Not a ratio: a record of what passes.

    python bench/node_tests.py            # runs the pack on each target, some six minutes
    python bench/node_tests.py REPORT …   # counts reports that `tilefw conformance --pack onnx --report` has written
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import onnx
from reports import REFUSED, TARGETS, nearest, reason, refused, run, table

from tilefw_conformance.report.reading import Report, read
from tilefw_conformance.report.records import Record
from tilefw_onnx.lowerings.operators import OPERATORS


def main(said: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        reports = [read(path) for path in (said or [run(target, Path(folder) / target, "--pack", "onnx") for target in TARGETS])]
    (Path(__file__).parent / "onnx.md").write_text(told(reports), "utf-8")
    bad = [one for report in reports for one in report.results.values() if one["outcome"] != "pass"]
    print(f"{len(bad)} of {sum(len(report.results) for report in reports)} results are no pass; bench/onnx.md")
    return 0


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
    return "\n".join([
        "# ONNX's node tests", "",
        f"Made by `tox -e onnx` with onnx {onnx.__version__}: the tests that pass, by kind of operator. A",
        "kind is the module of `tilefw_onnx.lowerings` that lowers it. On `reference` ONNX's expected values are within",
        "the bounds too.",
        "", *table(["kind", "operators", "tests", *targets], [*rows, whole]), "", *_others(results), "", *nearest(results), "",
    ])


def _others(results: dict[str, list[Record]]) -> Iterable[str]:
    """Refusals by reason, and every other result that is no pass."""
    bad = [one for of in results.values() for one in of if one["outcome"] != "pass"]
    if not bad:
        return ["Nothing else: no test is unsupported, expected to fail, or failing."]
    others = [[one["case"], one["target"], one["outcome"], reason(one)] for one in bad if one["outcome"] not in REFUSED]
    if not others:
        return [*refused(results), "", "Nothing else: no test is expected to fail, or failing."]
    return [*refused(results), "", *table(["test", "target", "outcome", "reason"], others)]


def passed(results: Iterable[Record]) -> list[Record]:
    return [one for one in results if one["outcome"] == "pass"]


def _operator(case: str) -> str:
    return case.split("/")[1]


def _kind(operator: str) -> str:
    return OPERATORS[operator].__module__.rpartition(".")[2].replace("_", " ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
