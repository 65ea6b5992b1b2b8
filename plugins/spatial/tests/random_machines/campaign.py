"""The campaign: so many machine files, six kernels on each, and what becomes of every launch.

    python -m random_machines.campaign --machines 300 --seed 1000 --report bench/spatial-random-machines.md

with plugins/spatial/tests on PYTHONPATH. `--only SEED` runs one machine and shows the traces of what is wrong on it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from random_machines.machines import LAUNCHES, MEMORY, RIGHT, Outcome, drawn, outcome

Rows = Mapping[tuple[int, str], "Outcome | str"]
"""What became of each machine's launches, by seed and kernel; text is an error that should not be."""

_HEAD = """# Machine files drawn at random for spatial-sdm1, and launches on them

{machines} machines (seeds {first} to {last}) in {seconds:.0f} s. A machine differs from the packaged one in counts (superlanes,
slices, banks, rows, ALUs, accumulator rows) and delays. A launch is right when both simulators store what the packaged machine
stores, without a finding and in exactly the predicted number of cycles. Wrong is everything else that is no refusal.

| kernel | right and exact | cycles | too little memory | refused by stage | wrong |
|---|---|---|---|---|---|"""


def run(seeds: Iterable[int], show: bool = False) -> Rows:
    """Every launch on the machine of each seed."""
    return {(seed, kernel): became for seed in seeds for kernel, became in _machine(seed, show)}


def _machine(seed: int, show: bool) -> Iterator[tuple[str, Outcome | str]]:
    machine = drawn(random.Random(seed))
    for kernel, parameters in LAUNCHES.items():
        try:
            yield kernel, outcome(machine, kernel, parameters)
        except Exception as error:  # the campaign goes on, and tells it
            if show:
                traceback.print_exc()
            yield kernel, f"{type(error).__name__}: {error}".partition("\n")[0]


def report(rows: Rows, machines: int, first: int, seconds: float) -> str:
    """The result as Markdown."""
    refused = [(seed, row.word) for (seed, _), row in rows.items() if isinstance(row, Outcome) and row.word not in (RIGHT, MEMORY)]
    launches = Counter(word for _, word in refused)
    affected = Counter(word for _, word in set(refused))
    return "\n".join([
        _HEAD.format(machines=machines, first=first, last=first + machines - 1, seconds=seconds),
        *(_kernel(kernel, [row for (_, name), row in rows.items() if name == kernel]) for kernel in LAUNCHES), "",
        "## Refused, by the stages that the error names", "", "| stages | machines | launches |", "|---|---|---|",
        *(f"| {word} | {affected[word]} | {count} |" for word, count in launches.most_common()), "",
        "## Wrong", "", *(_wrong(rows) or ["None."]), "",
    ])


def _kernel(kernel: str, rows: list[Outcome | str]) -> str:
    outcomes = [row for row in rows if isinstance(row, Outcome)]
    cycles = [row.cycles for row in outcomes if row.word == RIGHT]
    memory = sum(row.word == MEMORY for row in outcomes)
    span = f"{min(cycles)} to {max(cycles)}" if cycles else "–"
    return (f"| {kernel} | {len(cycles)} | {span} | {memory} | {len(outcomes) - len(cycles) - memory} | "
            f"{len(rows) - len(outcomes)} |")


def _wrong(rows: Rows) -> list[str]:
    return [f"- machine {seed}, {kernel}: {row}" for (seed, kernel), row in rows.items() if isinstance(row, str)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1000, help="the first machine's")
    parser.add_argument("--only", type=int, metavar="SEED", help="run the machine of one seed")
    parser.add_argument("--report", type=Path, help="where the result goes (default: shown)")
    asked = parser.parse_args()
    begun = time.monotonic()
    first, machines = (asked.seed, asked.machines) if asked.only is None else (asked.only, 1)
    rows = run(range(first, first + machines), show=asked.only is not None)
    page = report(rows, machines, first, time.monotonic() - begun)
    if asked.report:
        asked.report.write_text(page, encoding="utf-8")
    else:
        print(page)
    print(*_wrong(rows), sep="\n", file=sys.stderr)
    return 1 if _wrong(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
