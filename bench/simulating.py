"""Functional simulation of Triton's own PTX against Triton's interpreter, which runs the same kernel without machine code."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import workloads
from measure import Ratio, table
from oracles import corpus, execute

from tilefw.api import ALL_CHECKS, DEFAULT_CHECKS


def measure(rounds: int = 5) -> str:
    ratios, strict = [], []
    for name, goal in workloads.GOALS.items():
        item = corpus.item(workloads.case(name))
        artifact = execute.parse(item.ptx, name)
        outcome = execute.run(item, artifact, checks=DEFAULT_CHECKS)  # the right result first, and everything warm
        if found := item.check(outcome.outputs):
            raise SystemExit(f"{name} is wrong on the simulator: {found[0]}")
        ours, with_races, theirs = [], [], []
        for _ in range(rounds):
            ours.append(_seconds(item, artifact, DEFAULT_CHECKS))
            with_races.append(_seconds(item, artifact, ALL_CHECKS))
            theirs.append(_interpreter(name))
        instructions = outcome.report.counters.get("instructions", 0)
        rate = f"{instructions / statistics.median(ours) / 1e6:.0f} M thread-instructions/s"
        ratios.append(Ratio(name, statistics.median(ours), statistics.median(theirs), goal, rate))
        strict.append(Ratio(name, statistics.median(with_races), statistics.median(theirs)))
    return "\n\n".join(
        [
            table(
                "Simulation with the default checks",
                "Triton's interpreter",
                ratios,
                f"Triton's PTX of the kernel on our simulator, medians of {rounds} alternating rounds: copying arrays in, "
                "the launch, copying out. The interpreter runs the same source with CPU tensors in one thread, in a process of its "
                "own, second round.",
            ),
            table("Simulation with all checks (races too)", "Triton's interpreter", strict, "The same with every check."),
        ]
    )


def _seconds(item: corpus.Item, artifact: object, checks: frozenset[str]) -> float:
    start = time.perf_counter()
    execute.run(item, artifact, checks=checks)
    return time.perf_counter() - start


def _interpreter(name: str) -> float:
    command = [sys.executable, str(Path(__file__).with_name("interpreted.py")), name, "2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(ran.stdout.split()[-1])
