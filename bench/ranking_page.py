"""`ranking.md`: each problem's best configuration by exhaustion beside the search's choice, and what both cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranking_problems import Problem

NEAR, CHEAP = 0.05, 0.05
_HEAD = (
    "| target | problems | choice within 5% | worst | estimates' first within 5% | ranking within 5% of the cost | whole within |",
    "|---|---|---|---|---|---|---|",
)
_TABLE = (
    "| problem | target | configurations | slowest / best | choice | estimates' first | timed | ranking | whole |",
    "|---|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A problem on a target: how far behind the best by exhaustion the choice is, and the one that estimates alone make; the
    slowest over the best; parts of what exhaustion cost."""

    problem: str
    target: str
    configurations: int
    choice: float
    estimated: float
    spread: float
    timed: int
    ranking: float
    cost: float


def compared(rows: Sequence[Mapping[str, Any]], problem: Problem, target: str) -> Compared | None:
    """None where the exhaustion or the search is not complete."""
    own = [row for row in rows if row["problem"] == problem.name and row["target"] == target]
    wanted = {json.dumps(one) for one in problem.configurations}
    found = {json.dumps(row["configuration"]): row for row in own if "cost" in row and json.dumps(row["configuration"]) in wanted}
    search = next((row["search"] for row in own if "search" in row), None)
    times = {name: row["seconds"] for name, row in found.items() if row["seconds"] is not None}
    if search is None or search["choice"] is None or found.keys() != wanted or not times:
        return None
    best, whole = min(times.values()), sum(row["cost"] for row in found.values())
    choice, first = (times.get(json.dumps(search[name]), float("inf")) / best - 1 for name in ("choice", "first"))
    parts = (search[name] / whole for name in ("ranking", "cost"))
    return Compared(problem.name, target, len(wanted), choice, first, max(times.values()) / best, search["timed"], *parts)


def page(kept: Sequence[Mapping[str, Any]], problems: Sequence[Problem], held_out: Sequence[Problem]) -> str:
    """The page of a file's rows. A row that has a `note` alone says what was done to the others, and is said on the page."""
    rows, notes = [row for row in kept if "note" not in row], [str(row["note"]) for row in kept if "note" in row]
    targets = list(dict.fromkeys(row["target"] for row in rows))
    found, apart = (
        [one for target in targets for problem in some if (one := compared(rows, problem, target)) is not None]
        for some in (problems, held_out)
    )
    return "\n".join([
        "# The search's choice beside the best by exhaustion", "",
        "Written by `python bench/ranking.py`. Both are by the model of time: exhaustion compiles, records and times every",
        "configuration; the search estimates all from tile IR and times few (docs/profiling.md). Costs are processor seconds.",
        "4% of the configurations are timed, one at least: where there are fewer than fifty, that one is timed for its own sake,",
        "and the choice is the estimates'. *Ranking* is the cost without it, *whole* with it. Goals: within 5% of the best,",
        "at 5% of the cost.", *(f"\n{note}" for note in notes), "",
        *_HEAD, *(_summary(target, [one for one in found if one.target == target]) for target in targets), "",
        f"Of {len(problems)} problems a target, those are missing that were not exhausted in the time given. The estimates were",
        "written with these in view, so that others may fare worse:", "",
        "## Problems that were held out", "",
        "Kernels and shapes that nobody looked at while the estimates were written: of a list, those with an odd `crc32` of their",
        f"name (`HELD_OUT` of `ranking_problems.py`, {len(held_out)}); the last of the list are missing where they were not",
        "exhausted in the time given.", "",
        *_HEAD, *(_summary(target, [one for one in apart if one.target == target]) for target in targets), "",
        *_TABLE, *_lines(apart), "",
        "## The others", "",
        *_TABLE, *_lines(found), "",
    ])


def _summary(target: str, found: Sequence[Compared]) -> str:
    counts = (
        sum(one.choice <= NEAR for one in found), f"+{max((one.choice for one in found), default=0.0):.1%}",
        sum(one.estimated <= NEAR for one in found),
        sum(one.ranking <= CHEAP for one in found), sum(one.cost <= CHEAP for one in found),
    )
    return f"| {target} | {len(found)} | {' | '.join(map(str, counts))} |"


def _lines(found: Sequence[Compared]) -> Iterator[str]:
    for one in found:
        cells = (
            one.problem, one.target, str(one.configurations), f"{one.spread:.2f}", f"+{one.choice:.1%}", f"+{one.estimated:.1%}",
            str(one.timed), f"{one.ranking:.1%}", f"{one.cost:.1%}",
        )
        yield f"| {' | '.join(cells)} |"
