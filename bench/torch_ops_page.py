"""Writes torch_ops.md of what `torch_ops.py --keep` has gathered: kernels by what became of them, and what does not pass.

    python bench/torch_ops_page.py reference.jsonl sm80.jsonl cdna3.jsonl --tree "release 2.9" [--note WORDS] [--out FILE.md]
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch_ops_known
import upstream
from page_cells import cell, first_lines

PARAGRAPHS = (
    "Made by `bench/torch_ops_page.py` of what `bench/torch_ops.py --keep` has gathered: the tests of PyTorch's own compiler,"
    " `test/inductor/test_torchinductor.py` of {tree}, for tensors of the host, unmodified, with the backend `tilefw` in the"
    " compiler's place.",
    "A kernel is right when it was launched in a test whose numbers agree with eager PyTorch's within the test's own bounds, and"
    " wrong when a number of its test does not. One is refused that did not compile, or that the target's simulator stopped; one is"
    " late whose test ran longer than its limit. Tests without kernels ask for views, for operators that PyTorch runs, or for what"
    " its tracer does. Seconds are processor time.",
    "{note}",
)
Records = Sequence[dict[str, Any]]
WRONG = re.compile("Tensor-likes are not (close|equal)|Booleans mismatch|Scalars are not close")
STATES = ("right", "wrong", "refused", "late", "written")


def main(said: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--tree", required=True, help="the file's release in words")
    parser.add_argument("--note", default="", help="a paragraph on what has run")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("torch_ops.md"))
    options = parser.parse_args(said)
    targets = upstream.by_target(options.results)
    filled = [_filled(text.format(tree=options.tree, note=options.note)) for text in PARAGRAPHS]
    lines = ["\n\n".join(["# PyTorch's tests of its compiler", *filter(None, filled)]), "", *_counts(targets), *_refused(targets)]
    lines += [*_grouped("Tests that do not pass", targets, ("failed", "error")), *_grouped("Skipped tests", targets, ("skipped",))]
    options.out.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


def _filled(text: str) -> str:
    return textwrap.fill(text, 132, break_long_words=False, break_on_hyphens=False)


def states(record: dict[str, Any]) -> Counter[str]:
    """How many kernels of a test have come to what end."""
    wrong = bool(WRONG.search(record["reason"])) and known(record) is None
    launched = "wrong" if wrong else "right"
    return Counter(launched if kernel["state"] == "launched" else str(kernel["state"]) for kernel in record["kernels"])


def known(record: dict[str, Any]) -> str | None:
    return torch_ops_known.reason(record["test"], record["reason"])


def _counts(targets: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    columns = ("target", "tests", "passed", "not passed", "skipped", "with kernels", "kernels", *STATES[:-1], "not launched")
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for target, records in targets.items():
        outcomes, ends = Counter(record["outcome"] for record in records), Counter[str]()
        for record in records:
            ends += states(record)
        share = f" ({ends['right'] / ends.total():.1%})" if ends else ""
        cells = [
            len(records), outcomes["passed"], outcomes["failed"] + outcomes["error"], outcomes["skipped"],
            sum(bool(record["kernels"]) for record in records), ends.total(), f"{ends['right']}{share}",
            *(ends[state] for state in STATES[1:]),
        ]
        yield f"| {target} | {' | '.join(map(str, cells))} |"


def _refused(targets: dict[str, list[dict[str, Any]]]) -> Iterable[str]:
    yield from ("", "## Kernels refused", "", "| target | kernels | tests | reason |", "|---|---|---|---|")
    for target, records in targets.items():
        groups: dict[str, list[str]] = defaultdict(list)
        for record in records:
            for kernel in record["kernels"]:
                if kernel["state"] == "refused":
                    groups[kernel["said"]].append(_name(record))
        yield from _rows(target, groups)


def _grouped(title: str, targets: dict[str, list[dict[str, Any]]], outcomes: tuple[str, ...]) -> Iterable[str]:
    yield from ("", f"## {title}", "", "| target | tests | names | reason |", "|---|---|---|---|")
    for target, records in targets.items():
        groups: dict[str, list[str]] = defaultdict(list)
        for record in records:
            if record["outcome"] in outcomes:
                groups[known(record) or first_lines(record["reason"])].append(_name(record))
        yield from _rows(target, groups)


def _rows(target: str, groups: dict[str, list[str]]) -> Iterable[str]:
    for reason, tests in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        names = ", ".join(f"`{name}`" for name in sorted(set(tests)))
        yield f"| {target} | {len(tests)} | {names} | {cell(reason)} |"


def _name(record: dict[str, Any]) -> str:
    return record["test"].rpartition("::")[2].removesuffix("_cpu")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
