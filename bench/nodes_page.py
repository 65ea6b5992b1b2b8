"""The page of the campaign of seeds: by kernel and form what came of the seeds on each node, and every run that was not right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from page_cells import cell as page_cell


class NodePlace(Protocol):
    """A cell: a kernel in a form on a node."""

    @property
    def kernel(self) -> str: ...
    @property
    def form(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    @property
    def target(self) -> str: ...


class NodeRun(NodePlace, Protocol):
    """What came of a seed."""

    @property
    def seed(self) -> int: ...
    @property
    def outcome(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def commit(self) -> str: ...


Key = tuple[str, str, int, str]
TEXT = """# The kernels of nodes under adversarial seeds

Made by `tox -e nodes` (`bench/nodes.py`), of the commits {commits}. Each run is of one seed, which draws the data, the
schedule of launches, waves and turns, and which loads find stale values, with the checks `{checks}`: a result beyond the
bounds is wrong, a finding or an error on this code, which is right, is a report. Most seeds run a few tiles, of
one launch for all; one in twenty runs the usual launch of a size that no block divides. A run takes {seconds:.2f} s of processor
time on average. The goal: {seeds} seeds of each cell, all right, without a report.

A cell says how many seeds were run; all of them were right and without a report unless it says more.
"""


def told(runs: Sequence[NodeRun], every: Sequence[NodePlace], seeds: int, checks: str) -> str:
    """The page of all runs; `every` are the cells that there are."""
    found: dict[Key, Counter[str]] = {_key(place): Counter() for place in every}
    for run in runs:
        if _key(run) in found:
            found[_key(run)][run.outcome] += 1
    nodes = list(dict.fromkeys((place.target, place.ranks) for place in sorted(every, key=lambda p: (p.target, p.ranks))))
    forms = list(dict.fromkeys((place.kernel, place.form) for place in every))
    rows = [[*form, *(_shown(found[*form, ranks, target]) for target, ranks in nodes)] for form in forms]
    commits = ", ".join(f"`{commit}`" for commit in dict.fromkeys(run.commit for run in runs)) or "none"
    mean = sum(run.seconds for run in runs) / max(len(runs), 1)
    names = ["kernel", "form", *(f"{target}, {ranks} ranks" for target, ranks in nodes)]
    return "\n".join([
        TEXT.format(commits=commits, checks=checks, seconds=mean, seeds=seeds), *_table(names, rows), "",
        *_whole(list(found.values()), seeds), "", *_others(runs), "",
    ])


def _key(place: NodePlace) -> Key:
    return place.kernel, place.form, place.ranks, place.target


def _shown(outcomes: Counter[str]) -> str:
    others = [f"{count} {outcome}" for outcome, count in sorted(outcomes.items()) if outcome != "right"]
    return ", ".join([str(outcomes.total()), *others])


def _whole(cells: Sequence[Counter[str]], seeds: int) -> Iterable[str]:
    total = Counter[str]()
    for one in cells:
        total += one
    full, fewest = sum(one.total() >= seeds for one in cells), min((one.total() for one in cells), default=0)
    counts = ", ".join(f"{total[outcome]} {outcome}" for outcome in ("right", "wrong", "reported", "failed"))
    yield f"{total.total()} runs in {len(cells)} cells: {counts}."
    yield f"{full} cells have all {seeds} seeds; every cell has {fewest} at least."


def _others(runs: Sequence[NodeRun]) -> Iterable[str]:
    bad = [run for run in runs if run.outcome != "right"]
    if not bad:
        return ["No run was wrong, reported or failed."]
    rows = [
        [run.kernel, run.form, f"{run.target}, {run.ranks}", str(run.seed), run.outcome, page_cell(" ".join(run.detail.split()))]
        for run in bad
    ]
    return _table(["kernel", "form", "node", "seed", "outcome", "what was said"], rows)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [names, ["---"] * len(names), *rows]]
