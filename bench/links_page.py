"""The page of the model of links: errors by system, size and operation, the order of variants, every point."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from links_rows import Row
from published_points import reasons_table

_MIB = 1 << 20
_HEAD = """# The model of links against published figures

Written by `python bench/links.py links.csv`. The points are other people's measurements, which are not part of this repository; the
figures below compare with them. The parameters are the systems' files (`plugins/*/src/*/systems/*.yaml`): every number with its
source, `manual` or `measurement` where it is documented, `fitted` with the points that it was fitted to, or an `assumption`.

A ratio is that of times, predicted by published, whatever the row's unit. *Error* is the geometric mean of how far ratios are from
1, up or down. *Seen* are rows whose crc32(id) is even, and four more from documents whose few numbers are figures: L2383, L2388,
L2411 and L2426. The figures were fitted with them in sight, to the points that they name.
The first run on all others, of which nothing had been seen, had errors of 10.1 % below 1 MiB and 9.4 % from there (systems with ten
points or more and above 10 % there: 8xB200 14.6 %, GB200 12.5 %, 8xMI300X 13.6 %). Half of those, *seen later* (crc32(id) is 1
modulo 4), then showed what was wrong: which kernels vLLM takes for large arrays, a ramp counted by whole steps, copies to itself
in NVLinkTwoSided, first bytes over EFA, LL128 on B200. Pairs in the wrong order then
showed which kernel NCCL takes for registered windows (L2259, L2265), and that PyTorch's calls take the host longer than a small
array takes the devices. *Held out* are the rest: no row of them was looked at for any figure, but the errors of their systems
were, in the tables of the runs between. How: the algorithm and protocol that
the library chooses by its own table, or the kernel's, played as flows on the system's ports.
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """A row, its prediction in the row's unit and how it was made, or the reason why there is none."""

    row: Row
    predicted: float | None
    how: str

    @property
    def ratio(self) -> float:
        """Predicted by published time; infinite where the published figure is rounded to nothing."""
        assert self.predicted is not None
        if not self.row.value:
            return math.inf
        ratio = self.predicted / self.row.value
        return 1 / ratio if self.row.is_rate else ratio

    @property
    def counts(self) -> bool:
        """Published figures of one significant digit compare with nothing."""
        return self.predicted is not None and not (self.row.is_rate and self.row.value < 1)

    def line(self) -> str:
        row = self.row
        what = f"{row.id} {row.system[:22]} {row.library[:22]} {row.op[:30]} {row.ranks} {row.size:.0f}"
        what += f": {row.value:g} {row.unit[:10]}"
        return f"{what}, {self.how}" if self.predicted is None else f"{what}, {self.predicted:.4g} ({self.ratio:.2f}) {self.how}"


def page(found: Sequence[Judged], rates: Sequence[str] = ()) -> str:
    """The whole page; `rates` are lines about the speed of the model itself."""
    known = [one for one in found if one.counts]
    small = sum(one.predicted is not None for one in found) - len(known)
    parts = [
        _HEAD,
        f"{len(known) + small} of {len(found)} points have a prediction; {small} are rates below 1 GB/s, rounded to a digit or "
        "two, and count in no table but the last.\n",
        "## By size and part\n",
        _table(("size", "part"), known, lambda one: (_class(one), _part(one))),
        "## By system\n",
        _table(("system", "size", "part"), known, lambda one: (one.row.system, _class(one), _part(one))),
        "## By library and operation\n",
        _table(("library", "operation", "size"), known, lambda one: (one.row.library, one.row.operation, _class(one))),
        "## Order of variants\n",
        _order(known),
        "## Speed of the model\n",
        "\n".join(rates) + "\n",
        "## What has no prediction\n",
        _reasons(found),
        "## All points\n",
        _points(found),
    ]
    return "\n".join(parts) + "\n"


def _class(one: Judged) -> str:
    if not one.row.size:
        return "no size given"
    return ">= 1 MiB" if one.row.size >= _MIB else "< 1 MiB"


def _part(one: Judged) -> str:
    return one.row.part


def _table(heads: Sequence[str], found: Iterable[Judged], key: Callable[[Judged], tuple[str, ...]]) -> str:
    groups: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for one in found:
        groups[key(one)].append(one)
    lines = [f"| {' | '.join(heads)} | points | error | worst | mean ratio |", "|---" * (len(heads) + 4) + "|"]
    for names, ones in sorted(groups.items()):
        logs = [math.log(one.ratio) for one in ones]
        error = math.exp(sum(map(abs, logs)) / len(logs)) - 1
        worst, mean = math.exp(max(map(abs, logs))) - 1, math.exp(sum(logs) / len(logs))
        lines.append(f"| {' | '.join(names)} | {len(ones)} | {error:.1%} | {worst:.0%} | {mean:.2f} |")
    return "\n".join(lines) + "\n"


def _order(known: Iterable[Judged]) -> str:
    """Pairs of rows of one system, operation, number of ranks and size in one source, of different libraries or kernels, whose
    published values differ by more than 10%."""
    groups: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for one in known:
        row = one.row
        groups[row.system, row.op, str(row.ranks), f"{row.size:.0f}", row.unit, row.source].append(one)
    told: dict[str, Counter[str]] = defaultdict(Counter)
    for key, ones in groups.items():
        for one, other in combinations(ones, 2):
            apart = math.log(one.row.value / other.row.value)
            if one.row.library == other.row.library or abs(apart) < math.log(1.1):
                continue
            assert one.predicted and other.predicted
            said = math.log(one.predicted / other.predicted)
            told[key[0]]["right" if said * apart > 0 else "wrong"] += 1
    if not told:
        return "No two rows of one problem differ by more than 10%.\n"
    lines = ["| system | pairs that differ by more than 10% | in the right order |", "|---|---|---|"]
    for name, counts in [*sorted(told.items()), ("all", sum(told.values(), Counter[str]()))]:
        lines.append(f"| {name} | {counts.total()} | {counts['right']} |")
    return "\n".join(lines) + "\n"


def _reasons(found: Iterable[Judged]) -> str:
    return reasons_table("system", ((one.how, one.row.system) for one in found if one.predicted is None))


def _points(found: Iterable[Judged]) -> str:
    lines = ["| id | part | published | predicted | ratio of times | how, or why not |", "|---|---|---|---|---|---|"]
    for one in found:
        published = f"{one.row.value:g} {one.row.unit}"
        said = f"| | {one.how}" if one.predicted is None else f"{one.predicted:.4g} | {one.ratio:.2f} | {one.how}"
        lines.append(f"| {one.row.id} | {_part(one)} | {published} | {said} |")
    return "\n".join(lines) + "\n"
