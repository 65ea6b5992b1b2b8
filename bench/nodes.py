"""The kernels of a node under adversarial seeds: every collective in every form, all checks and weak memory; writes `nodes.md`.

    python bench/nodes.py                                     # 200 seeds of everything, hours; goes on where its log ends
    python bench/nodes.py --ranks 2                           # of two ranks, an hour or two of a processor
    python bench/nodes.py --kernels all_reduce --ranks 2 4 --targets nvidia-sm80 --seeds 20 --jobs 2 --seconds 600
    python bench/nodes.py --seeds 0                           # runs nothing: writes the page of the log

A cell is a kernel, a form, a number of ranks and a target. Most seeds run what each part of a kernel needs to run once
(`oracles/node_cases.py`), compiled once a cell; one in twenty has the usual launch of a size and a type of its own. Who has had the
least processor time runs next, so that a campaign that is cut short has all cells in it. What `tilefw.kernels.distributed.index`
has is run. Exit code 1 where a result is wrong, or anything is reported of a kernel.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from nodes_page import told

sys.path.insert(0, str(Path(__file__).parent.parent))
import tilefw
from oracles.node_cases import node_case
from tilefw.api.errors import CheckError, KernelError
from tilefw.kernels.distributed.index import COLLECTIVES, Collective
from tilefw.kernels.distributed.rank_results import Arrays

HERE = Path(__file__).parent
TARGETS = ("nvidia-sm80", "amd-cdna3")
RANKS = (2, 4, 8)
SEEDS = 200
CHECKS = "all,weak_memory"
USUAL_EVERY = 20  # seeds, of which one has the usual launch
AT_ONCE = 5  # seeds that a process runs before it says what came of them


@dataclass(frozen=True, order=True)
class NodeCell:
    """What 200 seeds are for."""

    kernel: str
    form: str
    ranks: int
    target: str


@dataclass(frozen=True)
class SeedRun:
    """One seed: `outcome` is right, wrong, reported (by a check), or failed (with any other error); the seconds are processor's."""

    kernel: str
    form: str
    ranks: int
    target: str
    seed: int
    shape: Sequence[int]  # of the first argument on a rank
    dtype: str
    outcome: str
    detail: str
    seconds: float
    commit: str

    @property
    def cell(self) -> NodeCell:
        """Which it belongs to."""
        return NodeCell(self.kernel, self.form, self.ranks, self.target)


@dataclass(frozen=True)
class Drawn:
    """The ranks' arrays by argument, and the keywords of the launches."""

    arguments: tuple[Arrays, ...]
    launch: Mapping[str, Any]


@dataclass
class CellProgress:
    """What a cell has to run yet, what it has cost, and whether it runs now."""

    left: Iterator[int]
    seconds: float = 0.0
    busy: bool = False
    ended: bool = False


def cells(kernels: Iterable[str], ranks: Iterable[int], targets: Iterable[str]) -> list[NodeCell]:
    """Every form of the kernels on every node."""
    return [
        NodeCell(name, form, count, target)
        for name in kernels for form in COLLECTIVES[name].forms for count in ranks for target in targets
    ]


def drawn(one: Collective, cell: NodeCell, seed: int) -> Drawn:
    """What a seed runs: the same launch for most, compiled once; of the others the sizes have several remainders of every block."""
    rng = np.random.default_rng(seed)
    if seed % USUAL_EVERY:
        case = node_case(cell.kernel, cell.form)
        return Drawn(case.draw(rng, cell.ranks), case.launch)
    turn = seed // USUAL_EVERY
    n = max(one.small // cell.ranks - turn % 4, 1)
    return Drawn(one.draw(rng, cell.ranks, n, one.dtypes[turn % len(one.dtypes)]), {})


def seed_run(cell: NodeCell, seed: int, commit: str) -> SeedRun:
    """One seed of a cell: it draws the data, the schedule and what is stale."""
    one = COLLECTIVES[cell.kernel]
    inputs = drawn(one, cell, seed)
    first = inputs.arguments[0][0]
    start = time.process_time()
    try:
        outcome, detail = _judged(one, cell, seed, inputs)
    except CheckError as error:
        outcome, detail = "reported", str(error)
    except KernelError as error:
        outcome, detail = "failed", f"{error.code} {error}"
    except Exception as error:  # the campaign goes on, and the page has it
        outcome, detail = "failed", f"{type(error).__name__}: {error}"
    seconds = round(time.process_time() - start, 3)
    return SeedRun(
        **asdict(cell), seed=seed, shape=first.shape, dtype=first.dtype.name, outcome=outcome, detail=detail, seconds=seconds,
        commit=commit,
    )


def _judged(one: Collective, cell: NodeCell, seed: int, inputs: Drawn) -> tuple[str, str]:
    node = tilefw.node(cell.target, cell.ranks)
    arrays = [node.array(list(argument)) for argument in inputs.arguments]
    found = one.run(node, *arrays, cell.form, seed=seed, checks=CHECKS, **inputs.launch)
    if any(missing := {"races", "weak_memory"} - result.checks for result in node.results):
        raise AssertionError(f"not checked: {missing}")
    if told_of := [finding for result in node.results for finding in result.diagnostics]:
        return "reported", "; ".join(f"{finding.code} {finding.message}" for finding in told_of)
    wrong = one.wrong(found, inputs.arguments)
    return ("wrong", f"beyond the bounds on the ranks {wrong}") if wrong else ("right", "")


def some(cell: NodeCell, seeds: Sequence[int], commit: str) -> list[SeedRun]:
    """What a process does at a time."""
    return [seed_run(cell, seed, commit) for seed in seeds]


def campaign(
    chosen: Sequence[NodeCell], seeds: int, jobs: int, seconds: float, done: Iterable[SeedRun], commit: str
) -> Iterator[SeedRun]:
    """Runs the seeds from 1 on that are not done; begins none when the time is up."""
    had: dict[NodeCell, dict[int, float]] = {cell: {} for cell in chosen}
    for run in done:
        had.setdefault(run.cell, {})[run.seed] = run.seconds
    progress = {
        cell: CellProgress(iter([s for s in range(1, seeds + 1) if s not in had[cell]]), sum(had[cell].values())) for cell in chosen
    }
    end = time.monotonic() + seconds
    running: dict[Future[list[SeedRun]], NodeCell] = {}
    with ProcessPoolExecutor(jobs) as pool:
        while True:
            while len(running) < jobs and time.monotonic() < end and (cell := _next(progress)) is not None:
                part = list(islice(progress[cell].left, AT_ONCE))
                progress[cell].busy, progress[cell].ended = bool(part), not part
                if part:
                    running[pool.submit(some, cell, part, commit)] = cell
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                own = progress[running.pop(future)]
                own.busy = False
                for run in future.result():
                    own.seconds += run.seconds
                    yield run


def _next(progress: dict[NodeCell, CellProgress]) -> NodeCell | None:
    """The cell that has had the least time of those that wait for a process."""
    waiting = [cell for cell, own in progress.items() if not own.busy and not own.ended]
    return min(waiting, key=lambda cell: (progress[cell].seconds, cell), default=None)


def read(log: Path) -> list[SeedRun]:
    """The runs of a log, if there is one; a last line that was cut off is none."""
    lines = log.read_text("utf-8").splitlines(keepends=True) if log.exists() else []
    return [SeedRun(**json.loads(line)) for line in lines if line.endswith("\n")]


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", nargs="+", choices=list(COLLECTIVES), default=list(COLLECTIVES), metavar="NAME")
    parser.add_argument("--ranks", nargs="+", type=int, default=RANKS, metavar="N")
    parser.add_argument("--targets", nargs="+", default=TARGETS, metavar="TARGET")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each cell, from 1 on")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="by the clock, after which no more runs are begun")
    parser.add_argument("--log", type=Path, default=Path("nodes.jsonl"), help="of the runs, a line each; it is gone on with")
    parser.add_argument("--page", type=Path, default=HERE / "nodes.md")
    parser.add_argument("--commit", help="that is run; the tree's own when none is named")
    said = parser.parse_args(argv)
    runs = read(said.log)
    with said.log.open("a", encoding="utf-8") as log:
        chosen = cells(said.kernels, said.ranks, said.targets)
        for run in campaign(chosen, said.seeds, said.jobs, said.seconds, runs, said.commit or _commit()):
            runs.append(run)
            log.write(json.dumps(asdict(run)) + "\n")
            log.flush()
            if run.outcome != "right":
                print(f"{run.cell}, seed {run.seed}: {run.outcome}: {run.detail}", file=sys.stderr, flush=True)
    said.page.write_text(told(runs, cells(COLLECTIVES, RANKS, TARGETS), SEEDS, CHECKS), "utf-8")
    bad = sum(run.outcome != "right" for run in runs)
    print(f"{len(runs)} runs, {bad} of them not right; {said.page}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
