"""Writes own_suites.md of what `own_suites.py --keep` has gathered: counts by file and target, failures by reason.

    python bench/own_suites_page.py liger=liger-sm80.jsonl fla=fla-reference.jsonl --tree liger="COMMIT of …" [--out FILE.md]
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import own_suites_known
import upstream
from page_cells import cell, first_lines

PARAGRAPHS = (
    "Made by `bench/own_suites_page.py` of what `bench/own_suites.py --keep` has gathered: a collection's own unit tests,"
    " unmodified, with tilefw behind `import triton` and the host's memory behind `device=\"cuda\"`. {trees}",
    "Small cases are chosen by a rule, the product of a case's whole numbers, and thinned by function (`--each`). `launched` counts"
    " the passed tests that launched a kernel: the others ask for names, errors and patches alone. What a test's own code skips is"
    " counted apart. Seconds are processor time of the tests. Autotuners take their first configuration that compiles.",
    "{note}",
)
Records = Sequence[dict[str, Any]]
Results = dict[tuple[str, str], list[dict[str, Any]]]


def main(said: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", metavar="COLLECTION=FILE")
    parser.add_argument("--tree", nargs="+", default=[], metavar="COLLECTION=WORDS", help="the checkout: commit, date, where from")
    parser.add_argument("--note", default="", help="a paragraph on what has run")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("own_suites.md"))
    options = parser.parse_args(said)
    results: Results = defaultdict(list)
    for collection, _, file in (word.partition("=") for word in options.results):
        for record in upstream.read(Path(file)):
            results[collection, record["target"]].append(record)
    trees = " ".join(f"`{name}`: {words}." for name, _, words in (word.partition("=") for word in options.tree))
    filled = [_filled(text.format(trees=trees, note=options.note)) for text in PARAGRAPHS]
    lines = ["\n\n".join(["# Collections' own tests", *filter(None, filled)]), "", *_totals(results), "", *_counts(results)]
    lines += [*_grouped("What does not pass", results, ("failed", "error")), *_grouped("What tests skip", results, ("skipped",))]
    options.out.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


def _filled(text: str) -> str:
    return textwrap.fill(text, 132, break_long_words=False, break_on_hyphens=False)


def _totals(results: Results) -> Iterable[str]:
    yield "| collection | target | cases | passed | launched | failed | skipped | seconds |"
    yield "|---|---|---|---|---|---|---|---|"
    for (collection, target), records in sorted(results.items()):
        yield f"| {collection} | {target} | {' | '.join(map(str, _cells(records)))} |"


def _counts(results: Results) -> Iterable[str]:
    yield "| collection | target | file | cases | passed | launched | failed | skipped | seconds |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (collection, target), records in sorted(results.items()):
        files: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            files[record["test"].partition("::")[0]].append(record)
        for name, cases in sorted(files.items()):
            yield f"| {collection} | {target} | `{name}` | {' | '.join(map(str, _cells(cases)))} |"


def _cells(records: Records) -> tuple[int, int, int, int, int, str]:
    count = Counter(record["outcome"] for record in records)
    launched = sum(record["outcome"] == "passed" and record.get("launches", 0) > 0 for record in records)
    seconds = f"{sum(record['seconds'] for record in records):.0f}"
    return len(records), count["passed"], launched, count["failed"] + count["error"], count["skipped"], seconds


def _grouped(title: str, results: Results, outcomes: tuple[str, ...]) -> Iterable[str]:
    yield from ("", f"## {title}", "", "| collection | target | cases | tests | reason |", "|---|---|---|---|---|")
    for (collection, target), records in sorted(results.items()):
        groups: dict[str, list[str]] = defaultdict(list)
        for record in records:
            if record["outcome"] in outcomes:
                groups[_reason(record)].append(record["test"].partition("::")[2].partition("[")[0])
        for reason, tests in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
            names = ", ".join(f"`{name}`" for name in sorted(set(tests)))
            yield f"| {collection} | {target} | {len(tests)} | {names} | {reason} |"


def _reason(record: dict[str, Any]) -> str:
    known = own_suites_known.reason(record["test"], record["reason"])
    if known is not None:
        return known
    return cell(first_lines(record["reason"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
