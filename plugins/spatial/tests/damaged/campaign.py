"""The campaign: so many damaged programs, what became of each kind, and the slowest attempt.

    python -m damaged.campaign --count 100000 --seed 1 --report bench/spatial-damaged-files.md

with plugins/spatial/tests on PYTHONPATH. `--only KIND:NUMBER` repeats one attempt and shows its trace.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from damaged.attempts import FAILURES, KINDS, attempt, subjects


@dataclass
class Kind:
    """What was seen of one kind; seconds."""

    words: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)


def run(count: int, seed: int) -> dict[str, Kind]:
    """About `count` attempts, each kind its part of them."""
    subjects()
    return {kind: _of_kind(kind, round(count * part), seed) for kind, (part, _) in KINDS.items()}


def _of_kind(kind: str, count: int, seed: int) -> Kind:
    seen = Kind()
    for number in range(count):
        start = time.perf_counter()
        found = attempt(kind, seed, number)
        seconds = time.perf_counter() - start
        seen.words[found.word] += 1
        seen.seconds += seconds
        seen.slowest = max(seen.slowest, seconds)
        if found.word in FAILURES:
            seen.failures.append(f"{kind}:{number} {found.word} {seconds:.1f} s\n{found.trace}")
    return seen


def failures(found: Mapping[str, Kind]) -> list[str]:
    """Every attempt that ended in neither a result nor an error of ours."""
    return [failure for kind in found.values() for failure in kind.failures]


def report(found: Mapping[str, Kind], seed: int) -> str:
    """The result as Markdown."""
    total, seconds = sum(sum(kind.words.values()) for kind in found.values()), sum(kind.seconds for kind in found.values())
    codes = sorted({word for kind in found.values() for word in kind.words if word.startswith("TFW")})
    lines = [
        "# Damaged programs for spatial-sdm1, and what comes of them", "",
        f"{total:,} attempts (seed {seed}) in {seconds:.0f} s, made of {len(subjects())} whole programs. Tracebacks and hangs: "
        f"{len(failures(found))}.", "",
        "A file is read, told as text, assembled again to the same bytes and launched; text is assembled and launched.", "",
        "| | attempts | ran | findings | refused | failed | ms each | slowest, s |", "|---|---|---|---|---|---|---|---|",
        *map(_row, found, found.values()), "", "## Refused, by code", "",
        "| | " + " | ".join(codes) + " |", "|---|" + "---|" * len(codes),
        *(f"| {name} | " + " | ".join(f"{kind.words[code]:,}" for code in codes) + " |" for name, kind in found.items()),
    ]
    return "\n".join([*lines, ""])


def _row(name: str, kind: Kind) -> str:
    words, count = kind.words, sum(kind.words.values())
    refused = sum(n for word, n in words.items() if word.startswith("TFW"))
    return (f"| {name} | {count:,} | {words['ran']:,} | {words['findings']:,} | {refused:,} | {len(kind.failures)} "
            f"| {1000 * kind.seconds / max(1, count):.1f} | {kind.slowest:.1f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="KIND:NUMBER")
    parser.add_argument("--report", type=Path, help="where the result goes (default: shown)")
    options = parser.parse_args()
    if options.only:
        kind, _, number = options.only.rpartition(":")
        found = attempt(kind, options.seed, int(number))
        print(found.word, found.trace, sep="\n")
        return 0
    seen = run(options.count, options.seed)
    page = report(seen, options.seed)
    if options.report:
        options.report.write_text(page, encoding="utf-8")
    else:
        print(page)
    print(*failures(seen), sep="\n", file=sys.stderr)
    return 1 if failures(seen) else 0


if __name__ == "__main__":
    sys.exit(main())
