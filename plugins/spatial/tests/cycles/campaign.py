"""The campaign: predicted and simulated cycles of every core case and of 200 random programs, and 1,000 shifts by a cycle.

    python -m cycles.campaign --programs 200 --shifts 1000 --seed 1 --report bench/spatial-cycles.md

with plugins/spatial/tests on PYTHONPATH; some ten minutes, most of them the slow simulator's.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count as counted
from itertools import islice
from pathlib import Path

from cycles import launched
from cycles.edits import ERROR, FINDING, KINDS, OTHER, SAME, Edits
from cycles.launched import Launched
from cycles.shifts import Shifts
from tilefw.api import CapacityError, UnsupportedError

SLOW = 6_000
"""Vectors of instructions up to which the slow simulator is asked too: some four seconds."""
_CHIPS = ((2, "n"), (2, "k"), (4, "n"), (4, "k"))
# Launches whose instructions are shifted.
SUBJECTS: Sequence[tuple[str, dict[str, object], int, str]] = (
    ("vector_add", {"n": 3000}, 1, "n"), ("matmul", {"m": 70, "n": 50, "k": 90}, 1, "n"),
    ("matmul", {"m": 400, "n": 350, "k": 700, "dtype": "fp16", "block_m": 32, "block_n": 64, "block_k": 32}, 1, "n"),
    ("matmul", {"m": 64, "n": 64, "k": 64, "dtype": "fp16"}, 2, "n"),
    ("matmul", {"m": 64, "n": 64, "k": 320, "dtype": "fp16"}, 2, "k"),
    ("softmax", {"rows": 9, "columns": 100}, 1, "n"), ("attention", {}, 1, "n"), ("swiglu", {"rows": 3, "columns": 90}, 1, "n"),
)


@dataclass(frozen=True, slots=True)
class MeasuredProgram:
    """One program: the prediction, the cycles of both simulators (the slow one's -1 where it was not asked), what is wrong."""

    name: str
    predicted: int
    fast: int
    slow: int
    wrong: str


def measured(one: Launched, slow: int) -> MeasuredProgram:
    """A program on the checker and the fast simulator, and on the slow one where it is small."""
    problems = one.judged().problems
    fast = one.fast()
    wrong = [str(problem) for problem in problems[:1]] + list(fast.findings)
    if not one.predicted == one.program.cycles == fast.cycles:
        wrong.append(f"{one.predicted} predicted, {one.program.cycles} in the program, {fast.cycles} simulated")
    if one.work() > slow:
        return MeasuredProgram(one.name, one.predicted, fast.cycles, -1, "; ".join(wrong))
    ticked = one.slow()
    if not ticked.same(fast):
        wrong.append(f"the simulators differ: {ticked.cycles} and {fast.cycles} cycles, findings {ticked.findings} {fast.findings}")
    return MeasuredProgram(one.name, one.predicted, fast.cycles, ticked.cycles, "; ".join(wrong))


def programs(count: int, seed: int, slow: int = SLOW) -> list[MeasuredProgram]:
    """So many of core's random programs that the target serves."""
    return list(islice(_served(seed, slow), count))


def _served(seed: int, slow: int) -> Iterator[MeasuredProgram]:
    for index in counted():
        for tiles in (True, False):
            name = f"{seed}:{index}{'' if tiles else ', elementwise'}"
            row = _row(name, lambda index=index, tiles=tiles: launched.random(seed, index, tiles), slow)
            if row is not None:
                yield row


def _row(name: str, make: Callable[[], Launched], slow: int) -> MeasuredProgram | None:
    """A program's row; None where the target refuses it, or has too little memory."""
    try:
        return replace(measured(make(), slow), name=name)
    except (UnsupportedError, CapacityError):
        return None
    except Exception as error:  # the campaign goes on, and tells it
        return MeasuredProgram(name, -1, -1, -1, f"{type(error).__name__}: {error}".partition("\n")[0])


def cases(level: str, slow: int = SLOW) -> Iterator[MeasuredProgram]:
    """Every conformance case of a level that the target serves."""
    from tilefw_conformance.case_files import bundled
    from tilefw_conformance.selection import select

    for case in select(bundled(), level, None):
        row = _row(case.id, lambda case=case: launched.kernel(case.kernel, case.parameters, seed=case.seed), slow)
        if row is not None:
            yield row


def nodes(slow: int = SLOW) -> Iterator[MeasuredProgram]:
    """Products on several chips."""
    for chips, split in _CHIPS:
        sizes = {"m": 16, "n": 24 * chips, "k": 40 * chips, "dtype": "fp16", "block_m": 16, "block_n": 16, "block_k": 16}
        name = f"{chips} chips, split={split}"
        row = _row(name, lambda sizes=sizes, chips=chips, split=split: launched.kernel("matmul", sizes, chips, split), slow)
        if row is not None:
            yield row


def shifts(count: int, seed: int) -> Shifts:
    """So many shifts, each subject its part."""
    found, rng = Shifts(), random.Random(seed)
    for number, (name, parameters, chips, split) in enumerate(SUBJECTS):
        part = count * (number + 1) // len(SUBJECTS) - count * number // len(SUBJECTS)
        found.sample(launched.kernel(name, parameters, chips, split), rng, part)
    return found


def edits(count: int, seed: int) -> Edits:
    """So many edits of each kind and subject, where its program has so many places."""
    found, rng = Edits(), random.Random(seed)
    for name, parameters, chips, split in SUBJECTS:
        found.sample(launched.kernel(name, parameters, chips, split), rng, count)
    return found


# --- the report ------------------------------------------------------------------------------------------------------------


_HEAD = """# Cycles of spatial-sdm1: predicted, simulated, and shifted

Made by `tox -e spatial` (seed {seed}). The prediction is the scheduler's, made before there is a program. The slow simulator goes
cycle by cycle and superlane by superlane, and is asked where a program has at most {slow:,} vectors of instructions. Wrong is
what differs in cycles or memory, has a finding of a simulator, or a problem of the checker.

| | programs | predicted = fast simulator | of these asked slowly | = slow simulator | wrong |
|---|---|---|---|---|---|"""

_SHIFTED = """
## One instruction a cycle earlier or later

{total:,} instructions of {launches} launches, each shifted alone by a cycle, all others as they were.

An error is a constraint that is broken, or an operand, row or weight that comes from elsewhere than before, even where the
values happen to be the same.

| the checker says | the simulator shows | |
|---|---|---|"""


_EDITED = """
## One instruction changed

{total:,} edits of the same launches, each alone: a field of an instruction made another, all instructions of a slice moved to the
next slice, an instruction dropped (its cycles stay) or doubled. What is no instruction or no program then is refused before
anything runs, and not counted. Where the checker has no problem and results are others, every constraint of the machine holds: it
is a sound program that computes something else, as another element type does. A contradiction is a finding of the simulator in
what the checker calls sound.

| what is changed | {columns} |
|---|{rule}"""


def edited(found: Edits) -> str:
    """What came of the edits as Markdown."""
    columns = (ERROR, FINDING, OTHER, SAME)
    head = _EDITED.format(total=found.seen.total(), columns=" | ".join(columns), rule="---|" * len(columns))
    rows = [f"| {kind} | {' | '.join(str(found.seen[kind, seen]) for seen in columns)} |" for kind in KINDS]
    return "\n".join([head, *rows, "", f"Contradictions: {len(found.contradictions)}.", ""])


def report(
    rows: Sequence[MeasuredProgram], drawn: Sequence[MeasuredProgram], moved: Shifts, changed: Edits, seed: int, slow: int
) -> str:
    """The result as Markdown."""
    harmless = ", ".join(f"{op} {n}" for op, n in moved.harmless.most_common()) or "none"
    return "\n".join([
        _HEAD.format(seed=seed, slow=slow), *_groups(rows), _group("random programs", drawn),
        _SHIFTED.format(total=moved.total, launches=len(SUBJECTS)),
        *(f"| {'harmless' if free else 'an error'} | {seen} | {n:,} |" for (free, seen), n in sorted(moved.seen.items())), "",
        f"Contradictions (said to be harmless, and something is to be seen): {len(moved.contradictions)}.",
        f"Harmless by instruction: {harmless}.", edited(changed), "## The random programs", "",
        "| program | predicted | fast | slow |", "|---|---|---|---|",
        *(f"| {row.name} | {row.predicted:,} | {row.fast:,} | {f'{row.slow:,}' if row.slow >= 0 else '–'} |" for row in drawn), "",
    ])


def _groups(rows: Sequence[MeasuredProgram]) -> Iterator[str]:
    groups: defaultdict[str, list[MeasuredProgram]] = defaultdict(list)
    for row in rows:
        groups[row.name.partition("/")[0] if "/" in row.name else "several chips"].append(row)
    yield from (_group(name, some) for name, some in groups.items())


def _group(name: str, rows: Iterable[MeasuredProgram]) -> str:
    rows = list(rows)
    kinds = Counter("wrong" for row in rows if row.wrong)
    asked = [row for row in rows if row.slow >= 0]
    equal, ticked = sum(row.predicted == row.fast for row in rows), sum(row.slow == row.fast for row in asked)
    return f"| {name} | {len(rows)} | {equal} | {len(asked)} | {ticked} | {kinds['wrong']} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--shifts", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=20, help="of each kind and launch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", default="core")
    parser.add_argument("--slow", type=int, default=SLOW)
    parser.add_argument("--report", type=Path, help="where the result goes (default: shown)")
    said = parser.parse_args()
    rows = [*(cases(said.level, said.slow) if said.level else ()), *nodes(said.slow)]
    drawn = programs(said.programs, said.seed, said.slow)
    moved = shifts(said.shifts, said.seed)
    changed = edits(said.edits, said.seed)
    page = report(rows, drawn, moved, changed, said.seed, said.slow)
    if said.report:
        said.report.write_text(page, encoding="utf-8")
    else:
        print(page)
    wrong = [*(f"{row.name}: {row.wrong}" for row in [*rows, *drawn] if row.wrong), *moved.contradictions, *changed.contradictions]
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
