"""The level `extended`, core with it, on every target: writes `extended.md`. Not a ratio: a record of what passes.

    python bench/extended.py                            # runs the suite on each target, twenty minutes on two cores
    python bench/extended.py --commit HASH REPORT …     # counts reports that `tilefw conformance` has written

Exit code 1 where a case fails, errs, times out or is overclaimed, and where a target refuses more than 3 % of the cases.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tilefw_conformance.outcomes import GOOD
from tilefw_conformance.report.headroom import is_tight
from tilefw_conformance.report.reading import Report, all_of
from tilefw_conformance.report.records import Record

TARGETS = ("reference", "nvidia-sm80", "amd-cdna3")
COMMAND = ("conformance", "--level", "extended", "--time-limit", "900")
MOST_UNSUPPORTED = 0.03
REFUSED = ("unsupported", "over-capacity")
HERE = Path(__file__).parent


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", metavar="REPORT")
    parser.add_argument("--commit", help="which the reports are of; the tree's own when none is named")
    said = parser.parse_args(argv)
    commit = said.commit or _head()
    with tempfile.TemporaryDirectory() as folder:
        reports = all_of(said.reports or [_run(target, Path(folder) / target) for target in TARGETS])
    (HERE / "extended.md").write_text(told(reports, commit), "utf-8")
    faults = [fault for report in reports for fault in wrong(report)]
    print("\n".join([*faults, f"{len(faults)} faults; bench/extended.md"]))
    return 1 if faults else 0


def _run(target: str, folder: Path) -> str:
    command = [sys.executable, "-m", "tilefw", *COMMAND, "--target", target, "--report", str(folder)]
    subprocess.run(command, check=False)  # what fails stands in the report
    return str(folder)


def _head() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def wrong(report: Report) -> Iterable[str]:
    """What the rule does not allow, a line each."""
    for target in report.targets:
        results = report.of(target)
        yield from (f"{target}: {one['case']}: {one['outcome']}" for one in results if one["outcome"] not in GOOD)
        refused = sum(one["outcome"] == "unsupported" for one in results)
        if refused > MOST_UNSUPPORTED * len(results):
            yield f"{target}: {refused} of {len(results)} cases are unsupported"


def told(reports: Sequence[Report], commit: str) -> str:
    """The page: a row for each target, what it refuses and why, and how near its bounds it comes."""
    return "\n".join([
        "# The extended level", "",
        f"Made by `tox -e extended`, or by `bench/extended.py` from reports, of commit {commit}: every case of the levels core and",
        f"extended, by `tilefw {' '.join(COMMAND)} --target T`. The rule: no case may fail, err, time out or be overclaimed,",
        f"and of a target's cases {MOST_UNSUPPORTED:.0%} at most may be unsupported. Each report was read back and verified.",
        "", *_table(
            ["target", "cases", "core", "extended", "pass", *REFUSED, "others", "seconds", "jobs", "digest of the results"],
            [_counted(report, target) for report in reports for target in report.targets],
        ),
        "", "## Refused", "", *_refused(reports),
        "", "## How near the bounds", "", *_table(
            ["target", "median error over bound", "largest", "passes near the bound by more than rounding the output"],
            [_nearest(target, report.of(target)) for report in reports for target in report.targets],
        ), "",
    ])


def _counted(report: Report, target: str) -> list[str]:
    results = report.of(target)
    levels, outcomes = (Counter(one[of] for one in results) for of in ("level", "outcome"))
    shown = [levels["core"], levels["extended"], *(outcomes[name] for name in ("pass", *REFUSED))]
    others = len(results) - sum(outcomes[name] for name in ("pass", *REFUSED))
    footer, argv = report.footer, report.header["argv"]
    jobs = argv[argv.index("--jobs") + 1] if "--jobs" in argv else "one a core"
    seconds = f"{footer['seconds']:,.0f}"
    return [target, *map(str, [len(results), *shown, others]), seconds, jobs, f"`{footer['digest'][:16]}`"]


def _refused(reports: Sequence[Report]) -> Iterable[str]:
    """Counted by reason: a capability that the target does not claim, or what the chip has not enough of."""
    counted = Counter(
        (target, one["outcome"], _reason(one))
        for report in reports for target in report.targets for one in report.of(target) if one["outcome"] in REFUSED
    )
    if not counted:
        return ["Nothing: every target runs every case."]
    return _table(["target", "outcome", "reason", "cases"], [[*key, str(number)] for key, number in sorted(counted.items())])


def _reason(one: Record) -> str:
    return ", ".join(one["missing"]) or one["reason"] or (one["error"] or {}).get("message", "").partition("\n")[0]


def _nearest(target: str, results: Sequence[Record]) -> list[str]:
    ratios = sorted(one["error_over_bound"] or 0.0 for one in results if one["outcome"] == "pass") or [0.0]
    return [target, f"{ratios[len(ratios) // 2]:.3f}", f"{ratios[-1]:.3f}", str(sum(map(is_tight, results)))]


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [names, ["---"] * len(names), *rows]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
