"""Attempts at damaged programs: each ends in a result, an error of ours or a failure, and a table tells what came of all of them.

A plugin says how whole programs are damaged and what is done with one (`Campaign.damages`); attempt `number` of a kind is made of
(seed, kind, number) alone, so that each can be repeated.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tilefw.api.errors import KernelError

HANG_SECONDS = 20
FAILURES = ("traceback", "hang", "memory")
Damage = Callable[[random.Random], Callable[[], str]]
"""Makes a damaged program of random numbers; what it returns puts that through all that reads it, and says in a word what came."""


class HangError(BaseException):
    """An attempt took longer than HANG_SECONDS."""


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What became of a program, in a word; `trace` is that of a failure."""

    word: str
    trace: str = ""


@contextmanager
def bounded(seconds: float = HANG_SECONDS) -> Iterator[None]:
    """Raise HangError inside the block after so many seconds; warnings that a user would see are errors."""

    def expired(*_: object) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(attempt: Callable[[], str], seconds: float = HANG_SECONDS) -> AttemptOutcome:
    """The word that `attempt` gives, or the code of the error of ours that it raises."""
    try:
        with bounded(seconds):
            return AttemptOutcome(attempt())
    except KernelError as error:
        assert error.code != "TFW0000" and str(error)
        return AttemptOutcome(error.code)
    except HangError:
        return AttemptOutcome("hang", traceback.format_exc())
    except Exception:
        return AttemptOutcome("traceback", traceback.format_exc())


@dataclass
class SeenEndings:
    """What was seen of one kind of damage; seconds, kilobytes."""

    words: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest: float = 0.0
    grown: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class DamageCampaign:
    """Kinds of damage, each with its part of all attempts; `prepare` makes what is damaged, before anything is timed.

    An attempt fails that raises the peak of the process's memory by more than `most_memory` kilobytes; None: no bound."""

    damages: Mapping[str, tuple[float, Damage]]
    prepare: Callable[[], object]
    most_memory: int | None = None

    def attempt(self, kind: str, seed: int, number: int) -> AttemptOutcome:
        """Attempt `number` of a kind."""
        return outcome(self.damages[kind][1](random.Random(f"{seed} {kind} {number}")))

    def run(self, count: int, seed: int) -> dict[str, SeenEndings]:
        """About `count` attempts, each kind its part of them."""
        self.prepare()
        return {kind: self._of_kind(kind, round(count * part), seed) for kind, (part, _) in self.damages.items()}

    def _of_kind(self, kind: str, count: int, seed: int) -> SeenEndings:
        seen = SeenEndings()
        for number in range(count):
            before, start = peak(), time.perf_counter()
            found = self.attempt(kind, seed, number)
            seconds, grown = time.perf_counter() - start, peak() - before
            word = "memory" if self.most_memory is not None and grown > self.most_memory else found.word
            seen.words[word] += 1
            seen.seconds += seconds
            seen.slowest = max(seen.slowest, seconds)
            seen.grown = max(seen.grown, grown)
            if word in FAILURES:
                seen.failures.append(f"{kind}:{number} {word} {seconds:.1f} s {grown >> 10} MB\n{found.trace}")
        return seen


def peak() -> int:
    """The most memory that the process has had, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def failures(found: Mapping[str, SeenEndings]) -> list[str]:
    """Every attempt that ended in neither a result nor an error of ours."""
    return [failure for seen in found.values() for failure in seen.failures]


def summary(found: Mapping[str, SeenEndings], seed: int) -> str:
    """How many attempts, and how long they took."""
    total = sum(seen.words.total() for seen in found.values())
    return f"{total:,} attempts (seed {seed}) in {sum(seen.seconds for seen in found.values()):.0f} s"


def tables(found: Mapping[str, SeenEndings], well: Sequence[str], memory: bool = False) -> list[str]:
    """Lines of Markdown: a row a kind with its outcomes, and refusals by code. `well` are the words of what is whole enough."""
    names = ["attempts", " or ".join(well), "findings", "refused", "failed", "ms each", "slowest, s"]
    names += ["memory of one, MB"] if memory else []
    codes = sorted({word for seen in found.values() for word in seen.words if word.startswith("TFW")})
    return [
        *_table(names, {kind: _row(seen, well)[: len(names)] for kind, seen in found.items()}), "", "## Refused, by code", "",
        *_table(codes, {kind: [f"{seen.words[code]:,}" for code in codes] for kind, seen in found.items()}),
    ]


def _row(seen: SeenEndings, well: Sequence[str]) -> list[str]:
    words, count = seen.words, seen.words.total()
    refused = sum(number for word, number in words.items() if word.startswith("TFW"))
    counted = (count, sum(words[word] for word in well), words["findings"], refused)
    each = f"{1000 * seen.seconds / max(1, count):.1f}"
    return [*(f"{number:,}" for number in counted), str(len(seen.failures)), each, f"{seen.slowest:.1f}", str(seen.grown >> 10)]


def _table(names: Sequence[str], rows: Mapping[str, Sequence[str]]) -> list[str]:
    head = ["| " + " | ".join(["", *names]).lstrip() + " |", "|" + "---|" * (1 + len(names))]
    return [*head, *(f"| {' | '.join([kind, *cells])} |" for kind, cells in rows.items())]


def main(campaign: DamageCampaign, page: Callable[[Mapping[str, SeenEndings], int], str], about: str) -> int:
    """The command line of a campaign: `page` makes the report of what was seen and the seed. 1 where anything failed."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="KIND:NUMBER", help="repeat one attempt and show its trace")
    parser.add_argument("--report", type=Path, help="where the result goes (default: shown)")
    options = parser.parse_args()
    if options.only:
        kind, _, number = options.only.rpartition(":")
        one = campaign.attempt(kind, options.seed, int(number))
        print(one.word, one.trace, sep="\n")
        return 0
    found = campaign.run(options.count, options.seed)
    shown = page(found, options.seed)
    if options.report:
        options.report.write_text(shown, encoding="utf-8")
    else:
        print(shown)
    print(*failures(found), sep="\n", file=sys.stderr)
    return 1 if failures(found) else 0
