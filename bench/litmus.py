"""The memory model on the public suite of litmus tests for PTX, from a checkout of github.com/hernanponcedeleon/Dat3M.

    python bench/litmus.py CHECKOUT [WORD ...] [--schedules 10000] [--out bench/litmus.md]

Each test runs twice: by seeded schedules, as simulators run, and systematically, until there is nothing left to see. Its verdict is
the suite's (`PTXv7_5-expected.csv`): whether the condition of the test, as it is written, holds.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

from tilefw.sim.memory.litmus import LitmusDialect, LitmusTest, Tally, explore, read, sample
from tilefw.sim.memory.views.agents import MemoryRules
from tilefw.sim.memory.views.events import GENERIC, SyncScope

VERDICTS = Path("dartagnan/src/test/resources/PTXv7_5-expected.csv")
SCOPES = {"cta": SyncScope.WORKGROUP, "gpu": SyncScope.DEVICE, "sys": SyncScope.SYSTEM}
WAYS = {"generic": GENERIC, "texture": "texture", "surface": "surface", "constant": "constant"}
ACCESSES = {
    "ld": ("load", GENERIC), "st": ("store", GENERIC), "atom": ("update", GENERIC), "red": ("reduce", GENERIC),
    "suld": ("load", "surface"), "sust": ("store", "surface"), "suatom": ("update", "surface"), "sured": ("reduce", "surface"),
    "tld": ("load", "texture"), "cold": ("load", "constant"),
}
PTX = LitmusDialect(SCOPES, WAYS, ACCESSES)
CLASSES = ("no barriers, no proxies", "barriers", "proxies or aliases")
TEXT = """# Litmus tests

The view machine (`core/src/tilefw/sim/memory/views`) on the public litmus tests for PTX with verdicts, by
`python bench/litmus.py CHECKOUT --out bench/litmus.md`; {tests} tests of {commit}. *Seeded*: up to {schedules} schedules of a fair
adversary, one seed. *Systematic*: every order of steps, every message and every place of a store; complete where nothing was left.
An outcome is *allowed* if the verdict says that it can be seen. Goals: every test without proxies agrees and 95 % of the others, no
forbidden outcome is shown, 90 % of the allowed ones are shown within 10,000 schedules, 1,000 schedules a second.
"""


@dataclass(frozen=True)
class Judged:
    """A test with its verdict, and what each way of running it showed."""

    path: str
    kind: str
    test: LitmusTest
    allowed: bool
    seeded: Tally
    systematic: Tally
    seconds: float

    def agrees(self, tally: Tally) -> bool:
        """Whether a run showed what the verdict says."""
        return (tally.witnesses > 0) == self.allowed


def rows(checkout: Path, words: list[str]) -> Iterator[tuple[str, str, LitmusTest, bool]]:
    """Each test of the suite: its path, its class, the test, whether its witness is allowed."""
    with (checkout / VERDICTS).open(encoding="utf-8") as verdicts:
        for path, verdict in csv.reader(verdicts):
            if not all(word in path for word in words):
                continue
            text = (checkout / path).read_text(encoding="utf-8")
            barriers = re.search(r"\bbar\.cta\.(sync|arrive)", text) is not None
            kind = CLASSES[2] if "aliases" in text or ".proxy." in text else CLASSES[barriers]
            test = read(text, PTX)
            # The verdict is of the condition; a witness is what makes `exists` true, and what makes the other two false.
            yield path, kind, test, (verdict == "1") == (test.condition.quantifier == "exists")


def judge(path: str, kind: str, test: LitmusTest, allowed: bool, schedules: int) -> Judged:
    """Run a test both ways."""
    started = time.process_time()
    seeded = sample(test, schedules, seed=1, until_seen=True)
    seconds = time.process_time() - started
    return Judged(path, kind, test, allowed, seeded, explore(test), seconds)


def share(of: list[Judged], holds: Callable[[Judged], bool]) -> str:
    """How many of some tests."""
    return f"{sum(map(holds, of))} of {len(of)}"


def summary(judged: list[Judged]) -> list[str]:
    """The table of classes."""
    lines = [
        "| class | seeded agrees | systematic agrees | allowed shown, seeded | systematic | forbidden shown | explored whole |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in (*CLASSES, "all"):
        of = [j for j in judged if kind in (j.kind, "all")]
        allowed, forbidden = [j for j in of if j.allowed], [j for j in of if not j.allowed]
        lines.append(
            f"| {kind} | {share(of, lambda j: j.agrees(j.seeded))} | {share(of, lambda j: j.agrees(j.systematic))} "
            f"| {share(allowed, lambda j: j.seeded.witnesses > 0)} | {share(allowed, lambda j: j.systematic.witnesses > 0)} "
            f"| {share(forbidden, lambda j: j.seeded.witnesses + j.systematic.witnesses > 0)} "
            f"| {share(of, lambda j: j.systematic.complete)} |"
        )
    runs, seconds = sum(j.seeded.runs for j in judged), sum(j.seconds for j in judged)
    states = sum(j.systematic.runs for j in judged)
    slowest = max((j.seconds / j.seeded.runs, j.path) for j in judged if j.seeded.runs > 100)
    latest = max(j.seeded.first for j in judged)
    lines += [
        "",
        f"- {runs} schedules in {seconds:.1f} processor seconds: {runs / seconds:,.0f} a second; the slowest test "
        f"({Path(slowest[1]).stem}) {1 / slowest[0]:,.0f}.",
        f"- The last allowed outcome to be shown was seen in schedule {latest}. Exploring all tests took {states} states.",
    ]
    for j in judged:
        if not (j.agrees(j.seeded) and j.agrees(j.systematic)):
            said, shown = "allowed" if j.allowed else "forbidden", f"seeded {_shown(j.seeded)}, systematic {_shown(j.systematic)}"
            lines.append(f"- Disagrees: {Path(j.path).stem}: {said} by the suite, {shown}.")
    return lines


def _shown(tally: Tally) -> str:
    return "shown" if tally.witnesses else "not shown"


def controls(judged: list[Judged]) -> list[str]:
    """The table of the model with one rule taken away: the tests that tell."""
    lines = ["", "## The model with a rule taken away", "", "| without | tests that change | some of them |", "|---|---|---|"]
    for rule in fields(MemoryRules):
        rules = replace(MemoryRules(), **{rule.name: False})
        shown = {j.path: explore(j.test, rules=rules, until_seen=True).witnesses > 0 for j in judged}
        changed = [Path(j.path).stem for j in judged if shown[j.path] != (j.systematic.witnesses > 0)]
        lines.append(f"| `{rule.name}` | {len(changed)} | {', '.join(changed[:4])} |")
    return lines


def main() -> int:
    """Run the suite; the exit code says whether a forbidden outcome was shown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    judged = [judge(*row, given.schedules) for row in rows(given.checkout, given.words)]
    if not judged:
        parser.error(f"no test of {given.checkout / VERDICTS} has the words {given.words}")
    lines = [*summary(judged), *controls(judged)]
    commit = subprocess.run(["git", "-C", given.checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    source = f"commit {commit.stdout.strip()[:8]}" if commit.returncode == 0 else "a copy without its history"
    page = TEXT.format(tests=len(judged), schedules=f"{given.schedules:,}", commit=source) + "\n" + "\n".join(lines) + "\n"
    print(page)
    if given.out:
        given.out.write_text(page, encoding="utf-8")
    return int(any(j.seeded.witnesses + j.systematic.witnesses > 0 for j in judged if not j.allowed))


if __name__ == "__main__":
    sys.exit(main())
