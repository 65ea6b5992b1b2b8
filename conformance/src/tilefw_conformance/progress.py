"""What a person sees while the suite runs: failures as they come and, on a terminal, how far it is."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tilefw_conformance.outcomes import OUTCOMES


class Progress:
    """`done` of `total` cases on `target`, on stderr; a bar only where that is a terminal."""

    def __init__(self, target: str, done: int, total: int) -> None:
        self._counts: Counter[str] = Counter()
        self._bar = _bar(target, done, total) if sys.stderr.isatty() else None

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, record: Mapping[str, Any]) -> None:
        """One case more is done."""
        if self._bar is not None:
            self._counts[record["outcome"]] += 1
            counted = ", ".join(f"{self._counts[name]} {name}" for name in OUTCOMES if self._counts[name])
            self._bar.update(self._bar.task_ids[0], advance=1, counted=counted)

    def tell(self, text: str) -> None:
        """A message that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)


def _bar(target: str, done: int, total: int) -> Any:
    from rich.console import Console  # only where something is drawn
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    what, outcomes = TextColumn("{task.description}"), TextColumn("{task.fields[counted]}")
    bar = Bar(
        what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), outcomes, console=Console(stderr=True), transient=True
    )
    bar.add_task(target, total=total, completed=done, counted="")
    return bar
