"""Triton's own unit tests, from a checkout of Triton, with tilefw behind `import triton`: how many pass, and why the others do not.

    python bench/upstream.py CHECKOUT --target reference --tests test_core.py --sample 400 --seed 1
    python bench/upstream.py CHECKOUT --target nvidia-sm80 --tests test_core.py::test_bin_op --report FILE.json
    python bench/upstream.py CHECKOUT --target amd-cdna3 --keep cdna3.jsonl --seconds 300     # again and again, until all have run
    python bench/upstream_page.py reference.jsonl cdna3.jsonl                                 # writes upstream.md of them

The checkout is read, never written. What a test's own code skips is counted apart; failures are grouped by the first line of their
message; the exit status is 1 where one has no reason in upstream_known.py. The tests see the target as what `--as` says, by default
as a device that is neither CUDA nor HIP: so they neither read the text of other compilers' code nor skip for one vendor's hardware.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import upstream_known

FOLDER = Path("python/test/unit/language")
OUTCOMES = ("passed", "failed", "skipped", "error")


def main(said: Sequence[str]) -> int:
    options = _options(said)
    with tempfile.TemporaryDirectory() as folder:
        if options.list:
            return _list(options, Path(folder) / "cases.txt")
        results = options.keep.resolve() if options.keep else Path(folder) / "results.jsonl"
        status = _run(options, results)
        records = read(results)
    if options.report:
        options.report.write_text(json.dumps(records, indent=1) + "\n", "utf-8")
    print("\n".join(told(records, options.groups)))
    if status not in (0, 1) or not records:  # 1: some tests failed, which is what is counted here
        print(f"pytest ended with status {status} after {len(records)} results", file=sys.stderr)
        return 2
    failed = [record for record in records if record["outcome"] in ("failed", "error")]
    return int(any(upstream_known.reason(record["test"], record["reason"]) is None for record in failed))


def _options(said: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="folder of Triton's own tree")
    parser.add_argument("--target", required=True, help="a target of tilefw")
    parser.add_argument("--as", dest="seen_as", default="cpu:90", metavar="BACKEND:ARCH",
                        help="what the target is to the tests: cpu:90 (the default), cuda:80, hip:gfx942 and the like")
    parser.add_argument("--tests", nargs="+", default=["test_core.py"], metavar="FILE", help=f"in {FOLDER}; FILE::TEST too")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="run N of the cases, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shuffle", action="store_true", help="in an order drawn by --seed, so that a slice is a sample")
    parser.add_argument("--last", nargs="+", default=[], metavar="TEST", help="run the cases of these functions after all others")
    parser.add_argument("--each", type=int, default=0, metavar="N", help="run at most N cases of each function, drawn by --seed")
    parser.add_argument("--list", action="store_true", help="print the cases that would run, as --listed reads them")
    parser.add_argument("--listed", type=Path, metavar="FILE", help="run the cases that FILE lists, one a line")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the results to FILE; cases that are there are not run again")
    parser.add_argument("--seconds", type=float, default=0, metavar="SECONDS", help="start no case after this time")
    parser.add_argument("--time-limit", type=float, default=60, metavar="SECONDS", help="of a processor, for each test")
    parser.add_argument("--groups", type=int, default=40, metavar="N", help="print the N commonest reasons")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write each test's outcome, reason and processor time as JSON")
    return parser.parse_args(said)


def _list(options: argparse.Namespace, results: Path) -> int:
    _run(options, results)
    print(results.read_text("utf-8"), end="")
    return 0


def _run(options: argparse.Namespace, results: Path) -> int:
    """Run pytest in a process of its own; its exit status. A case that ends the process gets a result that says so."""
    folder = options.checkout.resolve() / FOLDER
    settings = {
        "checkout": str(options.checkout.resolve()), "results": str(results), "seen_as": options.seen_as, "sample": options.sample,
        "each": options.each, "listed": str(options.listed.resolve()) if options.listed else "", "seed": options.seed,
        "list": options.list, "seconds": options.seconds, "time_limit": options.time_limit, "target": options.target,
        "shuffle": options.shuffle, "last": options.last,
    }
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ, "UPSTREAM": json.dumps(settings), "PYTHONPATH": os.pathsep.join(paths), "TILEFW_TARGET": options.target,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        sys.executable, "-m", "pytest", "-p", "upstream_session", "-p", "no:cacheprovider", "-q", "--no-header", "--no-summary",
        "--tb=short", "--continue-on-collection-errors", *(str(folder / test) for test in options.tests),
    ]
    with tempfile.TemporaryDirectory() as elsewhere:
        run = subprocess.run(command, env=environment, cwd=elsewhere, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return ended(run, results, options.target, (0, 1))


def gathered(run: Callable[[Path], int], keep: Path | None, groups: int) -> int:
    """Run tests that add their results to the file that they are given, and print what became of them. The exit status: 0 where
    none fails, 1 where some do, 2 where pytest itself did not end well."""
    with tempfile.TemporaryDirectory() as folder:
        results = keep.resolve() if keep else Path(folder) / "results.jsonl"
        status = run(results)
        records = read(results)
    print("\n".join(told(records, groups)))
    if status not in (0, 1, 5) or not records:  # 1: some tests failed, 5: none was left to run
        print(f"pytest ended with status {status} after {len(records)} results", file=sys.stderr)
        return 2
    return int(any(record["outcome"] in ("failed", "error") for record in records))


def ended(run: subprocess.CompletedProcess[bytes], results: Path, target: str, well: Sequence[int], **more: Any) -> int:
    """The exit status of a run of pytest; a case that ended its process gets a result that says so, with `more`. What pytest said
    is printed where the status is none of `well`."""
    if run.returncode < 0 and (begun := begun_file(results)).exists():
        reason = f"ended the process: {run.returncode}"
        add(results, test=begun.read_text("utf-8"), outcome="error", reason=reason, seconds=0.0, target=target, **more)
    if run.returncode not in well and run.stdout:
        print(run.stdout.decode(errors="replace")[-4000:], file=sys.stderr)
    return run.returncode


def begun_file(results: Path) -> Path:
    """Where the session notes the case that it runs, beside its results."""
    return results.with_name(f"{results.name}.begun")


def read(results: Path) -> list[dict[str, Any]]:
    """The results of a file, the last one of each case."""
    lines = results.read_text("utf-8").splitlines() if results.exists() else []
    return list({record["test"]: record for record in map(json.loads, lines)}.values())


def by_target(files: Iterable[Path]) -> dict[str, list[dict[str, Any]]]:
    """The results of several files, by target."""
    targets: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in files:
        for record in read(file):
            targets[record["target"]].append(record)
    return targets


def add(results: Path, **record: Any) -> None:
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def told(records: Sequence[dict[str, Any]], groups: int) -> Iterable[str]:
    """The counts by file, the failures by reason with one test each, and the reasons of what was skipped."""
    files: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        files[record["test"].partition("::")[0].rpartition("/")[2]][record["outcome"]] += 1
    for name, counted in sorted(files.items()):
        ran = counted.total() - counted["skipped"]
        share = f", {counted['passed'] / ran:.1%} of what ran" if ran else ""
        yield f"{name}: " + ", ".join(f"{counted[outcome]} {outcome}" for outcome in OUTCOMES) + share
    yield from _reasons("not passed", [r for r in records if r["outcome"] in ("failed", "error")], groups)
    yield from _reasons("skipped", [r for r in records if r["outcome"] == "skipped"], groups)


def _reasons(title: str, records: Sequence[dict[str, Any]], groups: int) -> Iterable[str]:
    grouped: dict[str, list[str]] = defaultdict(list)
    for record in records:
        first = next((line.strip() for line in record["reason"].splitlines() if line.strip()), "")
        grouped[first[:160]].append(record["test"].partition("::")[2])
    if grouped:
        yield f"\n{title}, by reason:"
    for reason, tests in sorted(grouped.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:groups]:
        yield f"{len(tests):5}  {reason}\n       {tests[0]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
