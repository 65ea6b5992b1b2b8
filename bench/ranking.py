"""Whether a search finds the best configuration of a kernel by the model of time, and what it costs: writes `ranking.md`.

    python bench/ranking.py --target nvidia-sm80 --keep FILE.jsonl --seconds 600     # a part; the same command goes on
    python bench/ranking.py --target nvidia-sm80 --keep FILE.jsonl --held-out        # the problems that were held out
    python bench/ranking.py --page FILE.jsonl                                        # the page of what was run

Each problem of `ranking_problems.py` is exhausted first: every configuration is compiled, recorded and timed in detail, as
`tilefw tune` times one. Then the search chooses, which knows nothing of that. Costs are processor
seconds, those of child processes (assemblers) included, without the cache of artifacts. Who changes rows of the file says so in a
row `{"note": "…"}`, which the page repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

os.environ["TILEFW_CACHE"] = "0"  # before tilefw is imported: the cost of a configuration is that of compiling it

from ranking_page import page
from ranking_problems import HELD_OUT, PROBLEMS, Problem

from tilefw.api.errors import CapacityError, CompileError, LaunchError, UsageError
from tilefw.kernels.estimated import KernelEstimates
from tilefw.kernels.launchable import launchable
from tilefw.kernels.spec import load
from tilefw.kernels.tuning import BESIDE, Search, Trial
from tilefw.kernels.tuning import timed as timed_in_detail
from tilefw.runtime import config
from tilefw.runtime.launchable import Launchable
from tilefw.runtime.plugins.loader import find_target
from tilefw.runtime.recording import record
from tilefw.timing.launch_time import launch_time


def processor_seconds() -> float:
    """Of this process and of the children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(problem: Problem, target: str, configuration: dict[str, Any]) -> dict[str, Any]:
    """One configuration in detail: seconds of the launch by the model, or why there are none; processor seconds that it took."""
    began = processor_seconds()
    resolved, found = config.resolve(config.settings(target, executor="sim")), find_target(target)
    seconds, why = None, ""
    try:
        made = launchable(load(problem.kernel), {**problem.given, **configuration}, found, resolved, assemble=True)
        seconds = launch_time(found.backend.timing(), record(made, BESIDE).launch, tells=False).seconds
    except (CapacityError, CompileError, LaunchError, UsageError) as error:
        why = error.message
    return {"seconds": seconds, "why": why, "cost": processor_seconds() - began}


def kept(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def exhaust(problems: Sequence[Problem], target: str, path: Path, until: float) -> None:
    """Time what the file does not have yet."""
    done = {(row["problem"], json.dumps(row["configuration"])) for row in kept(path) if row.get("target") == target}
    for problem in problems:
        left = [c for c in problem.configurations if (problem.name, json.dumps(c)) not in done]
        if left:
            timed(problem, target, left[0])  # imports and compiled meanings, which no configuration pays for
        for configuration in left:
            if processor_seconds() > until:
                return
            row = {"problem": problem.name, "target": target, "configuration": configuration}
            with path.open("a") as file:
                file.write(json.dumps({**row, **timed(problem, target, configuration)}) + "\n")


def searched(problem: Problem, target: str) -> dict[str, Any]:
    """The search's choice, with what it took to rank all configurations, and to time those that it timed."""
    found = find_target(target)
    resolved = config.resolve(config.settings(target, executor="sim"))
    spec = load(problem.kernel)
    KernelEstimates(spec, problem.given, found)(problem.configurations[0])  # imports, as in front of an exhaustion
    began = processor_seconds()
    estimates = KernelEstimates(spec, problem.given, found)

    def launch(configuration: dict[str, Any]) -> Launchable:
        return launchable(spec, {**problem.given, **configuration}, found, resolved, assemble=True)

    def timer(configurations: Sequence[dict[str, Any]], best: float | None) -> Iterable[Trial]:
        return [timed_in_detail(launch, configuration, best) for configuration in configurations]

    def estimate(configuration: dict[str, Any]) -> float:
        return estimates(configuration).seconds

    search = Search(problem.over, {}, timer, estimate)
    ranked = search.ranked()
    ranking = processor_seconds() - began
    best = search.run()
    return {
        "first": ranked[0][1], "choice": None if best is None else dict(best.configuration), "timed": len(search.trials),
        "ranking": ranking, "cost": processor_seconds() - began,
    }


def search_all(problems: Sequence[Problem], target: str, path: Path) -> None:
    """Search where the exhaustion is complete and the file has no search yet."""
    rows = [row for row in kept(path) if row.get("target") == target]
    done = {row["problem"] for row in rows if "search" in row}
    for problem in problems:
        exhausted = {json.dumps(row["configuration"]) for row in rows if row["problem"] == problem.name and "cost" in row}
        if problem.name not in done and all(json.dumps(one) in exhausted for one in problem.configurations):
            with path.open("a") as file:
                file.write(json.dumps({"problem": problem.name, "target": target, "search": searched(problem, target)}) + "\n")


def main(argv: list[str]) -> int:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--target", action="append", default=[])
    parse.add_argument("--keep", type=Path)
    parse.add_argument("--seconds", type=float, default=float("inf"), help="processor seconds that exhausting may take")
    parse.add_argument("--held-out", action="store_true", help="the problems that were held out, and no others")
    parse.add_argument("--page", type=Path)
    args = parse.parse_args(argv)
    keep: Path | None = args.keep
    problems = HELD_OUT if args.held_out else PROBLEMS
    if keep is not None:
        for target in args.target:
            exhaust(problems, target, keep, processor_seconds() + args.seconds)
            search_all(problems, target, keep)
    if args.page is not None:
        (Path(__file__).parent / "ranking.md").write_text(page(kept(args.page), PROBLEMS, HELD_OUT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
