"""Writes upstream.md of results that `upstream.py --keep FILE.jsonl` has gathered: counts by file and target, failures by reason.

    python bench/upstream.py CHECKOUT --target reference --list --tests test_core.py test_tuple.py > cases.txt
    python bench/upstream_page.py reference.jsonl sm80.jsonl cdna3.jsonl --cases cases.txt --tree "COMMIT of …" [--out FILE.md]
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import upstream
import upstream_known
from page_cells import cell, first_lines

PARAGRAPHS = (
    "Made by `bench/upstream_page.py` of what `bench/upstream.py --keep` has gathered of {tree}.",
    "`of` is how many cases the file has. What a test's own code skips is counted apart. A reason in a test's own words, without"
    " one of ours, is a fault that is still open. Seconds are processor time of the tests themselves, not time by the clock.",
    "The tests see a device that is neither CUDA nor HIP. {interpreted} ask after their kernel has run for levels of IR or a"
    " refusal that only Triton's compiler has, unless they see Triton's interpreter: from there on they see it, and"
    " compare the numbers. {itself} ask who made the device, and for a function or an instruction of that vendor's: they see the"
    " target itself, where Triton has a name for it.",
    "{note}",
)
Records = Sequence[dict[str, Any]]


def main(said: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--cases", type=Path, required=True, help="all cases of the files, as upstream.py --list prints them")
    parser.add_argument("--tree", required=True, help="the checkout in words: commit, date, where from")
    parser.add_argument("--note", default="", help="a paragraph on what has run")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("upstream.md"))
    options = parser.parse_args(said)
    targets = upstream.by_target(options.results)
    listed = {"interpreted": upstream_known.INTERPRETED, "itself": upstream_known.AS_ITSELF}
    named = {word: ", ".join(f"`{name}`" for name in names) for word, names in listed.items()}
    words = {"tree": options.tree, "note": options.note, **named}
    filled = [textwrap.fill(text.format(**words), 132, break_long_words=False, break_on_hyphens=False) for text in PARAGRAPHS]
    title = "\n\n".join(["# Triton's own tests", *filter(None, filled)])
    whole = Counter(case.partition("::")[0] for case in options.cases.read_text("utf-8").splitlines())
    lines = [title, "", *_counts(targets, whole), *_failures(targets), *_skipped(targets)]
    options.out.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


def _counts(targets: dict[str, list[dict[str, Any]]], whole: Counter[str]) -> Iterable[str]:
    yield "| target | file | ran | of | passed | failed | skipped | of what ran | seconds |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for target, records in targets.items():
        files: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            files[record["test"].partition("::")[0].rpartition("/")[2]].append(record)
        for name, cases in sorted(files.items()):
            count = Counter(record["outcome"] for record in cases)
            failed = count["failed"] + count["error"]
            share = f"{count['passed'] / (count['passed'] + failed):.1%}" if count["passed"] + failed else ""
            seconds = sum(record["seconds"] for record in cases)
            cells = (len(cases), whole[name], count["passed"], failed, count["skipped"], share, f"{seconds:.0f}")
            yield f"| {target} | `{name}` | {' | '.join(map(str, cells))} |"


def _failures(targets: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    yield from ("", "## What does not pass", "", "| target | cases | tests | reason |", "|---|---|---|---|")
    for target, records in targets.items():
        yield from _grouped(target, [record for record in records if record["outcome"] in ("failed", "error")], _reason)


def _skipped(targets: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    yield from ("", "## What the tests themselves skip", "", "| target | cases | tests | reason |", "|---|---|---|---|")
    for target, records in targets.items():
        yield from _grouped(target, [record for record in records if record["outcome"] == "skipped"], _first_line)


def _grouped(target: str, records: Records, why: Any) -> Iterable[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for record in records:
        groups[why(record)].append(record["test"].partition("::")[2].partition("[")[0])
    for reason, tests in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        names = ", ".join(f"`{name}`" for name in sorted(set(tests)))
        yield f"| {target} | {len(tests)} | {names} | {reason} |"


def _reason(record: dict[str, Any]) -> str:
    return upstream_known.reason(record["test"], record["reason"]) or _first_line(record)


def _first_line(record: dict[str, Any]) -> str:
    return cell(first_lines(record["reason"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
