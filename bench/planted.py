"""The campaign of planted bugs: every bug in every kernel that it changes; writes `planted.md` and `planted.json`.

    python bench/planted.py                  # all of it, some minutes
    python bench/planted.py --kernel softmax # of one kernel, to look at; writes nothing
    python bench/planted.py --again          # the last record once more: judge it, write its page

Exit code 1 where the core level misses a bug that `conformance/tests/planted/unseen.py` does not list, or finds one that it does.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance" / "tests" / "planted"))

import hunting
from unseen import UNSEEN

HERE = Path(__file__).parent
Rows = Sequence[Mapping[str, Any]]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", action="append", default=[])
    parser.add_argument("--bug", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    said = parser.parse_args(argv)
    os.environ["TILEFW_CACHE"] = "0"
    began = time.perf_counter()
    whole = not (said.kernel or said.bug)
    if said.again:
        record = json.loads((HERE / "planted.json").read_text("utf-8"))
    else:
        with tempfile.TemporaryDirectory() as site:
            sys.path[:0] = hunting.install(Path(site))
            record = _hunted(said.kernel, said.bug, said.jobs)
    faults = list(wrong(record["hunts"], whole))
    print("\n".join(faults))
    if whole:
        (HERE / "planted.json").write_text(_lines(record), "utf-8")
        (HERE / "planted.md").write_text(told(record), "utf-8")
    print(f"{len(record['hunts'])} hunts, {len(faults)} faults, {time.perf_counter() - began:.0f} s")
    return 1 if faults else 0


def _hunted(kernels: Sequence[str], bugs: Sequence[str], jobs: int) -> dict[str, Any]:
    from tilefw_planted.table import BUGS

    named = sorted(hunting.core_cases(kernels))
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:  # children know where the plugin is
        parts = list(pool.map(_of_one, named, [bugs or list(BUGS)] * len(named)))
    return {
        "bugs": {bug.name: [bug.mistake, bug.shows] for bug in BUGS.values()},
        "correct": {kernel: correct for kernel, (correct, _) in zip(named, parts, strict=True)},
        "hunts": [hunt for _, hunts in parts for hunt in hunts],
    }


def _of_one(kernel: str, bugs: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What is said of the kernel without a bug, and its hunts."""
    cases = hunting.core_cases([kernel])[kernel]
    cleaned = [hunting.clean(case) for case in cases]
    correct = {"cases": len(cases), "error_over_bound": _rounded(max(one.error_over_bound for one in cleaned))}
    hunts = [_told(hunting.as_json(one)) for one in hunting.hunts(cleaned, bugs)]
    print(kernel, len(hunts), *(f"{hunt['bug']}?" for hunt in hunts if hunt["case"] is None), flush=True)
    return correct, hunts


def _told(hunt: dict[str, Any]) -> dict[str, Any]:
    return {**hunt, "error_over_bound": _rounded(hunt["error_over_bound"])}


def _rounded(ratio: float | None) -> float | str | None:
    """Three digits; infinities as a word, which JSON has no number for."""
    if ratio is None:
        return None
    return float(f"{ratio:.3g}") if abs(ratio) != float("inf") else "inf"


def wrong(hunts: Rows, whole: bool = True) -> Iterable[str]:
    """What the campaign must not show, a line each."""
    seen = {(one["bug"], one["kernel"]) for one in hunts}
    for one in hunts:
        listed = UNSEEN.get((one["bug"], one["kernel"]))
        if one["case"] is None and listed is None:
            yield f"missed: {one['bug']} in {one['kernel']}, {one['tried']} cases"
        if one["case"] is not None and listed is not None:
            yield f"listed as unseen, but {one['case']} finds it: {one['bug']} in {one['kernel']}"
    if whole:
        yield from (f"listed, but changes no core case: {bug} in {kernel}" for bug, kernel in UNSEEN if (bug, kernel) not in seen)


def _lines(record: Mapping[str, Any]) -> str:
    """JSON with a line for each hunt, so that a difference can be read."""
    hunts = ",\n".join(f"  {json.dumps(one)}" for one in record["hunts"])
    head = {name: value for name, value in record.items() if name != "hunts"}
    return f"{json.dumps(head, indent=1)[:-2]},\n \"hunts\": [\n{hunts}\n ]\n}}\n"


def told(record: Mapping[str, Any]) -> str:
    """The page."""
    hunts, bugs, correct = record["hunts"], record["bugs"], record["correct"]
    found = _found(hunts)
    cases, tried = sum(row["cases"] for row in correct.values()), sum(one["tried"] for one in found) / max(1, len(found))
    return "\n".join([
        "# Planted bugs", "",
        f"Made by `tox -e planted`: {len(bugs)} mistakes of a backend's author, each a rewrite of tile IR in front of the",
        f"reference interpreter (`conformance/tests/planted`), in {len(correct)} kernels with {cases} core cases. A bug counts in",
        f"a kernel where it changes the IR of a core case: {len(hunts)} times, of which core cases find {len(found)}, after",
        f"{tried:.1f} cases on average. The other {len(hunts) - len(found)} cannot be seen, for the reasons at the end.", "",
        "Errors are over their bounds: above 1 a result is wrong, and `inf` where it must be exact. `check` is where a check",
        "stopped the run before any comparison.", "",
        "## By bug", "",
        *_table(
            ["bug", "what was done wrong", "shows", "kernels", "found", "smallest error"],
            [_of_bug(name, words, [one for one in hunts if one["bug"] == name]) for name, words in bugs.items()],
        ),
        "", "## By kernel: how tight the bounds are", "",
        *_table(
            ["kernel", "core cases", "largest error without a bug", "bugs", "found", "smallest error with one"],
            [_of_kernel(name, row, [one for one in hunts if one["kernel"] == name]) for name, row in correct.items()],
        ),
        "", "## Not to be seen", "",
        *_table(["bug", "kernel", "reason"], [[bug, kernel, reason] for (bug, kernel), reason in sorted(UNSEEN.items())]), "",
    ])


def _of_bug(name: str, words: Sequence[str], hunts: Rows) -> list[str]:
    return [f"`{name}`", *words, str(len(hunts)), str(len(_found(hunts))), _smallest(hunts)]


def _of_kernel(name: str, row: Mapping[str, Any], hunts: Rows) -> list[str]:
    return [name, str(row["cases"]), str(row["error_over_bound"]), str(len(hunts)), str(len(_found(hunts))), _smallest(hunts)]


def _found(hunts: Rows) -> Rows:
    return [one for one in hunts if one["case"] is not None]


def _smallest(hunts: Rows) -> str:
    """The least error over its bound of those that were found."""
    found = _found(hunts)
    ratios = [float(one["error_over_bound"]) for one in found if one["error_over_bound"] is not None]
    return f"{min(ratios):.3g}" if ratios else "check" if found else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
