"""What comparisons of models with published points share: why a row has no prediction, the table of that, files of predictions."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tilefw.api.errors import CodeError


class CannotModelError(Exception):
    """Why a row has no prediction, as one sentence of the page."""


def sentence(error: CodeError) -> str:
    """What an error of a model's figures says, without its code."""
    return str(error).partition("\n")[0].partition("]: ")[2] or str(error)


def reasons_table(of_what: str, unmodelled: Iterable[tuple[str, str]]) -> str:
    """A line for each reason, with how many rows of what kind it concerns; `unmodelled` has the reason and the kind of each row."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for (reason, kind), count in sorted(Counter(unmodelled).items()):
        by_reason[reason].append(f"{kind} {count}")
    lines = [f"| reason | rows by {of_what} |", "|---|---|"]
    return "\n".join(lines + [f"| {reason} | {', '.join(kinds)} |" for reason, kinds in by_reason.items()]) + "\n"


def write_predictions(path: Path, predictions: Iterable[tuple[str, float | None]]) -> None:
    """A CSV of `id,predicted`, without the rows that have no prediction."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "predicted"))
        writer.writerows((row, f"{predicted:.6g}") for row, predicted in predictions if predicted is not None)
