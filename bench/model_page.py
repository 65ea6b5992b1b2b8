"""The page of the model of time: errors by source, chip, kind and size, how often variants are in the right order, every point."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean, median

from model_rows import Row, slower_when_more
from published_points import reasons_table

_HEAD = """# The model of time against published timings

Written by `python bench/model.py POINTS.csv --out bench/model.md`. The points are other people's measurements, which are not
part of this repository; the figures below compare with them.

An error is |predicted / published - 1| of the time, whatever the row's unit. Rows marked *exact* are kernels with a public source,
*class* those of libraries, *micro* microbenchmarks. *Held out* are rows whose crc32(id) is odd: their errors took no part in any
choice. Figures of products come from manuals and from microbenchmarks that are not held out
(`plugins/*/src/*/timing/products/*.yaml`, each with its source). Two were measured for tilefw on an H200, on kernels that are no
points here: the rate of a copy, and by the rate of one product of cuBLAS the clock at which matrix units reach the limit of power,
from which those of other cards of this kind, and a B200's, derive. No figure is fitted to the time of a point. What kernels do is
another matter: where a source could not be read, a few counts of passes over arrays (backward passes of old Liger versions) were
inferred from rows that are not held out; comments name them.

How: *outline* is `tilefw.timing.outline`: what each workgroup computes and moves, step by step, on the product's figures, with the
clock that its power limit leaves (`tilefw.timing.power`). A kernel whose tile is not published takes the fastest of the tiles that
its library or autotuner chooses among. *figures* are formulas of the product's figures alone. Neither executes machine code of the
published kernel.

What the sources' kernels and benchmarks were seen to do, where a first reading had it otherwise:

- Liger's Megatron benchmarks run forward, sum and backward in what they call backward, and its sum with a norm is three kernels;
  autograd copies a gradient that two inputs share and adds it to the one that the benchmark does not clear; the divergence's
  forward pass writes no gradient; llama4_rope has a program for each place and head, whose stores fill half of a sector; backward
  norms of later versions take row after row in one program a processor.
- triton.ops.attention's parallel backward pass clears, writes and sums a copy of the queries' gradient for each block of keys.
- Waves without warpgroups' units read all keys and values of shared memory for their own queries, by instructions that take turns
  with arithmetic: attention on an A100 and Triton's on AMD.
- Triton's tutorial since October 2023 goes backward twice, once for keys and values and once for queries: seven products, not five.
- TLX attention has one tile (128 by 128 on Hopper, 256 by 128 on Blackwell), FlashAttention-3 one for each mask, and both clear,
  add up and convert the queries' gradient as fp32 in kernels of their own. TLX products on gfx942 are the fastest of seven tiles,
  and their harness times the call from Python where that takes longer than the kernel: such rows have no prediction.
- Workgroups that wait for their loads in each step find the L2 and the matrix units busy with their neighbours (Gluon's first
  product, two of them on a processor).
- ROCm's stream-K kernels number their programs anew, so that neighbours share a die's L2; operands that take turns in memory make a
  launch cold.

What is seen and not explained: on an MI300X products of 10 to 60 us take 2 to 8 us longer than their steps, launch and stores,
while those above 0.5 ms are up to 14% faster than their steps; triton.ops.matmul on tf32 and int8 takes up to four times what its
tiles need; an A100 that was left full of cleared lines (do_bench) adds up to 6 us to kernels that stream.
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """A row, its prediction in the row's unit, how it was made and what limits, or the reason why there is none."""

    row: Row
    predicted: float | None
    how: str
    limit: str
    reason: str = ""

    @property
    def ratio(self) -> float:
        """Predicted by published time."""
        assert self.predicted is not None
        ratio = self.predicted / self.row.value
        return ratio if slower_when_more(self.row) else 1 / ratio

    @property
    def error(self) -> float:
        return abs(self.ratio - 1)

    def line(self) -> str:
        said = self.reason if self.predicted is None else f"{self.predicted:.4g} ({self.ratio:.2f} of the time) {self.limit}"
        row = self.row
        what = f"{row.chip[:12]} {row.kind} {row.shape} {row.dtype[:8]} {row.implementation[:40]}"
        return f"{row.id} {what}: {row.value:g} {row.unit}, {said}"


def page(found: Sequence[Judged]) -> str:
    """The whole page."""
    known = [one for one in found if one.predicted is not None]
    exact = [one for one in known if one.row.mark == "exact" and not _doubted(one.row)]
    parts = [
        _HEAD,
        f"{len(known)} of {len(found)} points have a prediction.\n",
        "## By mark\n",
        _table(("mark", "part"), known, lambda one: (one.row.mark, "held out" if one.row.held_out else "seen")),
        "## Exact rows that no source or reader doubts, by source\n",
        _table(("source", "part"), exact, lambda one: (one.row.source, "held out" if one.row.held_out else "seen")),
        "## Order of variants\n",
        _order(known),
        "## By source\n",
        _table(("source", "mark"), known, lambda one: (one.row.source, one.row.mark)),
        "## By chip\n",
        _table(("chip", "mark"), known, lambda one: (one.row.chip, one.row.mark)),
        "## By kind\n",
        _table(("kind", "mark"), known, lambda one: (one.row.kind, one.row.mark)),
        "## By published time\n",
        _table(("time", "mark"), [one for one in known if one.row.unit in _TIMES], _size),
        "## What has no prediction\n",
        _reasons(found),
        "## All points\n",
        _points(found),
    ]
    return "\n".join(parts) + "\n"


_TIMES = {"us": 1.0, "ms": 1000.0}


def _doubted(row: Row) -> bool:
    return row.config.startswith(("SUSPECT", "HOST-BOUND?", "DOUBTFUL", "IMPOSSIBLE"))


def _size(one: Judged) -> tuple[str, str]:
    micros = one.row.value * _TIMES[one.row.unit]
    for most, word in ((5, "up to 5 us"), (20, "5 to 20 us"), (100, "20 to 100 us"), (1000, "0.1 to 1 ms")):
        if micros <= most:
            return word, one.row.mark
    return "above 1 ms", one.row.mark


def _table(heads: Sequence[str], found: Iterable[Judged], key: Callable[[Judged], Sequence[str]]) -> str:
    groups: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for one in found:
        groups[tuple(key(one))].append(one)
    lines = [
        f"| {' | '.join(heads)} | points | median error | mean error | within 10% | median ratio |",
        "|---" * (len(heads) + 5) + "|",
    ]
    for names, ones in sorted(groups.items()):
        errors = [one.error for one in ones]
        close = sum(error <= 0.1 for error in errors) / len(ones)
        figures = f"{median(errors):.0%} | {mean(errors):.0%} | {close:.0%} | {median(one.ratio for one in ones):.2f}"
        lines.append(f"| {' | '.join(names)} | {len(ones)} | {figures} |")
    return "\n".join(lines) + "\n"


def _order(found: Iterable[Judged]) -> str:
    """Pairs of rows of one problem (source, chip, kind, shape, type) whose published values differ by more than 10%: told in the
    right order, in the wrong one, or not told apart."""
    groups: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for one in found:
        row = one.row
        groups[row.source, row.chip, row.kind, row.shape, row.dtype, row.unit].append(one)
    told: dict[str, Counter[str]] = defaultdict(Counter)
    for key, ones in groups.items():
        for one, other in combinations(ones, 2):
            apart = one.row.value / other.row.value
            if _differ(apart, 0.1):
                told[key[0]][_told(apart, one, other)] += 1
    if not told:
        return "No two rows of one problem differ by more than 10%.\n"
    lines = [f"| source | pairs that differ by more than 10% | {' | '.join(_TOLD)} |", "|---" * (2 + len(_TOLD)) + "|"]
    for name, counts in [*sorted(told.items()), ("all", sum(told.values(), Counter()))]:
        shares = " | ".join(f"{counts[word] / counts.total():.0%}" for word in _TOLD)
        lines.append(f"| {name} | {counts.total()} | {shares} |")
    return "\n".join(lines) + "\n"


_TOLD = ("in the right order", "in the wrong order", "within 1% of each other")


def _differ(quotient: float, by: float) -> bool:
    return max(quotient, 1 / quotient) > 1 + by


def _told(apart: float, one: Judged, other: Judged) -> str:
    """What the predictions of two rows say of the order that the quotient `apart` of their published values has."""
    right, wrong, alike = _TOLD
    assert one.predicted and other.predicted
    said = one.predicted / other.predicted
    if not _differ(said, 0.01):
        return alike
    return right if (said > 1) == (apart > 1) else wrong


def _reasons(found: Iterable[Judged]) -> str:
    return reasons_table("source", ((one.reason, one.row.source) for one in found if one.predicted is None))


def _points(found: Iterable[Judged]) -> str:
    lines = ["| id | mark | published | predicted | ratio of times | limit, or why not |", "|---|---|---|---|---|---|"]
    for one in found:
        row = one.row
        if one.predicted is None:
            said = f"| | {one.reason}"
        else:
            said = f"{one.predicted:.4g} | {one.ratio:.2f} | {one.limit or one.how}"
        lines.append(f"| {row.id} | {row.mark} | {row.value:g} {row.unit} | {said} |")
    return "\n".join(lines) + "\n"
