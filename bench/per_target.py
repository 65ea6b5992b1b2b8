"""A script that counts on several targets: a process of its own for each, whose rows are lines of JSON, and one page of all.

Triton, and PyTorch behind it, know one device for a process's whole life.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Counting = Callable[[str, Sequence[str]], Iterator[Row]]
"""The rows of what has all of some words in its name, on one target."""
_END = "end"  # the last line of a process that came through


def main(
    script: str, doc: str | None, targets: Sequence[str], count: Counting, right: Callable[[Row], bool],
    page: Callable[[dict[str, list[Row]]], str],
) -> int:
    """With `--target`: one target's rows to standard output. Without: every target's, and the page beside the script."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--target", choices=targets)
    said = parser.parse_args()
    if said.target is not None:
        return _print(count(said.target, said.words), right)
    if said.words:
        parser.error("words choose among one target's rows: say --target too")
    rows = {target: _of_child(script, target) for target in targets}
    Path(script).with_suffix(".md").write_text(page(rows), "utf-8")
    return 0 if all(right(row) for found in rows.values() for row in found) else 1


def _print(rows: Iterator[Row], right: Callable[[Row], bool]) -> int:
    well = True
    for row in rows:
        print(json.dumps(row), flush=True)
        well = right(row) and well
    print(_END)
    return 0 if well else 1


def _of_child(script: str, target: str) -> list[Row]:
    done = subprocess.run([sys.executable, script, "--target", target], stdout=subprocess.PIPE, text=True)
    *rows, end = done.stdout.splitlines() or [""]
    if end != _END:
        raise SystemExit(f"{script} --target {target} did not come through")
    return [json.loads(row) for row in rows]
