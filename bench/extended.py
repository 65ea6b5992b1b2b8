"""The level `extended`, core with it, on every target: writes `extended.md`. Not a ratio: a record of what passes.

    python bench/extended.py                            # runs the suite on each target, an hour on two cores
    python bench/extended.py --commit HASH REPORT …     # counts reports that `tilefw conformance` has written

Exit code 1 where a case fails, errs, times out or is overclaimed, and where a target refuses more of the cases than
the rule allows it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from reports import REFUSED, TARGETS, nearest, refused, run, table

from tilefw_conformance.outcomes import GOOD
from tilefw_conformance.report.reading import Report, all_of

ARGUMENTS = ("--level", "extended", "--time-limit", "900")
MOST_UNSUPPORTED = 0.03
# A target that is no SIMT chip refuses what it cannot schedule ahead of time: of it the rule asks the share that it has reached.
OWN_UNSUPPORTED = {"spatial-sdm1": 0.23}
HERE = Path(__file__).parent


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", metavar="REPORT")
    parser.add_argument("--commit", help="which the reports are of; the tree's own when none is named")
    said = parser.parse_args(argv)
    commit = said.commit or _head()
    with tempfile.TemporaryDirectory() as folder:
        reports = all_of(said.reports or [run(target, Path(folder) / target, *ARGUMENTS) for target in TARGETS])
    (HERE / "extended.md").write_text(told(reports, commit), "utf-8")
    faults = [fault for report in reports for fault in wrong(report)]
    print("\n".join([*faults, f"{len(faults)} faults; bench/extended.md"]))
    return 1 if faults else 0


def _head() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def wrong(report: Report) -> Iterable[str]:
    """What the rule does not allow, a line each."""
    for target in report.targets:
        results = report.of(target)
        yield from (f"{target}: {one['case']}: {one['outcome']}" for one in results if one["outcome"] not in GOOD)
        unsupported = sum(one["outcome"] == "unsupported" for one in results)
        if unsupported > OWN_UNSUPPORTED.get(target, MOST_UNSUPPORTED) * len(results):
            yield f"{target}: {unsupported} of {len(results)} cases are unsupported"


def told(reports: Sequence[Report], commit: str) -> str:
    """The page: a row for each target, what it refuses and why, and how near its bounds it comes."""
    results = {target: report.of(target) for report in reports for target in report.targets}
    own = "".join(f", of {target}'s {share:.0%}" for target, share in OWN_UNSUPPORTED.items() if target in results)
    return "\n".join([
        "# The extended level", "",
        f"Made by `tox -e extended`, or by `bench/extended.py` from reports, of commit {commit}: every case of the levels core and",
        f"extended, by `tilefw conformance {' '.join(ARGUMENTS)} --target T`. The rule: no case may fail, err, time out or be "
        "overclaimed,",
        f"and of a target's cases {MOST_UNSUPPORTED:.0%} at most may be unsupported{own}. Each report was read back and verified.",
        "", *table(
            ["target", "cases", "core", "extended", "pass", *REFUSED, "others", "seconds", "jobs", "digest of the results"],
            [_counted(report, target) for report in reports for target in report.targets],
        ),
        "", "## Refused", "", *refused(results),
        "", "## How near the bounds", "", *nearest(results), "",
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
