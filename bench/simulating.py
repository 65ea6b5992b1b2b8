"""Functional simulation of machine code against Triton's interpreter, which runs the same kernel without machine code."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import workloads
from library import GFX942, SM80, Chip, Work, tilefw_artifact
from measure import Ratio, seconds, table
from quality import run

from oracles import corpus, execute
from tilefw.api import ALL_CHECKS, DEFAULT_CHECKS

Launch = Callable[[Set[str]], int]
FORMS = {SM80.target: "PTX", GFX942.target: "gfx942"}


@dataclass(frozen=True, slots=True)
class Side:
    """A launch that is timed: `name` is also the interpreter's; `launch(checks)` gives the thread-instructions executed."""

    name: str
    shown: str
    goal: float
    launch: Launch


def measure(rounds: int = 2) -> str:
    ratios, strict = [], []
    for side in (*_triton_code(), *_our_code(SM80), *_our_code(GFX942)):
        instructions = side.launch(DEFAULT_CHECKS)  # everything warm
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(_seconds(side.launch, DEFAULT_CHECKS))
            theirs.append(_interpreter(side.name))
        with_races = _seconds(side.launch, ALL_CHECKS)
        rate = f"{instructions / statistics.median(ours) / 1e6:.0f} M thread-instructions/s"
        ratios.append(Ratio(side.shown, statistics.median(ours), statistics.median(theirs), side.goal, rate))
        strict.append(Ratio(side.shown, with_races, statistics.median(theirs)))
    said = (
        f"Machine code of a kernel on our simulator, medians of {rounds} alternating rounds of processor time: copying arrays in, "
        "the launch, copying out. The interpreter runs the same source with CPU tensors in one thread, in a process of its own, "
        "second round. First Triton's PTX (sm_80) and code objects (gfx942) of kernels of the test corpus, then our own of "
        "kernels of the library."
    )
    return "\n\n".join([
        table("Simulation with the default checks", "Triton's interpreter", ratios, said),
        table("Simulation with all checks (races too)", "Triton's interpreter", strict, "The same with every check, once."),
    ])


def _triton_code() -> Iterator[Side]:
    for triton, goals in workloads.TRITON:
        for name, goal in goals.items():
            item = triton.item(workloads.case(name))
            artifact = execute.parse(item.code, name, item.chip)
            outcome = execute.run(item, artifact, checks=DEFAULT_CHECKS)
            if outcome.report.findings or item.check(outcome.outputs):
                raise SystemExit(f"{name} is wrong on the simulator of {item.chip.target}")
            yield Side(name, f"{name}, Triton's {FORMS[item.chip.target]}", goal, partial(_foreign, item, artifact))


def _foreign(item: corpus.Item, artifact: object, checks: Set[str]) -> int:
    return execute.run(item, artifact, checks=checks).report.counters.get("instructions", 0)


def _our_code(chip: Chip) -> Iterator[Side]:
    from tilefw.kernels.verify import verify
    from tilefw.runtime.module import Module
    from tilefw.runtime.plugins.loader import find_target

    for name, (work, goal) in workloads.LIBRARY.items():
        verdict = verify(work.spec, dict(work.parameters), chip.target)
        if not verdict.ok:
            raise SystemExit(f"{name} is wrong on the simulator of {chip.target}: {verdict.failed}")
        target = find_target(chip.target)
        artifact = tilefw_artifact(work, assemble=chip is GFX942, chip=chip).artifact
        yield Side(name, f"{work.shown}, our {FORMS[chip.target]}", goal, partial(_own, work, Module(artifact, target)))


def _own(work: Work, module: Any, checks: Set[str]) -> int:
    return run(work, work.bound[3], module, {}, 0, checks=checks).counters["instructions"]


def _seconds(launch: Launch, checks: Set[str]) -> float:
    start = seconds()
    launch(checks)
    return seconds() - start


def _interpreter(name: str) -> float:
    command = [sys.executable, str(Path(__file__).with_name("interpreted.py")), name, "2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(ran.stdout.split()[-1])
