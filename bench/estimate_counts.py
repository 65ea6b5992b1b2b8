"""What estimates take of compiled code, counted in compiled kernels of the library: writes `estimate_counts.md`.

    python bench/estimate_counts.py

Registers beside tiles: what the target's assembler gives a lane, less the tiles that live at once by tile IR. One configuration of
each kernel of `ranking_problems.py`, none of those that are held out.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TILEFW_CACHE", "0")

from ranking_problems import PROBLEMS, Problem

from tilefw.api.errors import CapacityError, CompileError
from tilefw.kernels.estimated import KernelEstimates
from tilefw.kernels.launchable import launchable
from tilefw.kernels.spec import load
from tilefw.runtime import config
from tilefw.runtime.plugins.loader import find_target

TARGETS = ("nvidia-sm80", "amd-cdna3")
MOST = 200
"""Registers from which a compiler may have spilled, and tells nothing of what the code would have."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Registers of a lane of one kernel: all, and those of the tiles that live at once."""

    kernel: str
    target: str
    registers: int
    tiles: float


def counted(problem: Problem, target: str) -> Counted | None:
    """None where the target's assembler is not there, or the kernel has no such code."""
    configuration = problem.configurations[len(problem.configurations) // 2]
    found, spec = find_target(target), load(problem.kernel)
    resolved = config.resolve(config.settings(target, executor="sim"))
    try:
        made = launchable(spec, {**problem.given, **configuration}, found, resolved, assemble=True)
    except (CapacityError, CompileError):
        return None
    registers = made.compiled.artifact.resources.registers
    if not registers:
        return None
    estimates = KernelEstimates(spec, problem.given, found)
    estimates(configuration)
    threads = int(configuration.get("num_warps", 4)) * found.info.limits["lanes"]
    live = next(iter(estimates.works)).live
    return Counted(problem.kernel, target, int(registers.get("vector", max(registers.values()))), live / 4 / threads)


def page(found: list[Counted]) -> Iterator[str]:
    yield from ("# Counts behind the estimates", "")
    yield "Written by `python bench/estimate_counts.py`. Registers that a lane has beside its tiles: what an assembler gives it,"
    yield "less the tiles that live at once by tile IR, of which a compiler may keep fewer. The estimates take `_BASE_REGISTERS` of"
    yield from ("`timing/estimate/estimated_time.py` for it.", "")
    for target in TARGETS:
        beside = sorted(one.registers - one.tiles for one in found if one.target == target and one.registers < MOST)
        if beside:
            low, middle, high = statistics.quantiles(beside, n=4)
            yield f"- `{target}`: {middle:.0f}, half of them from {low:.0f} to {high:.0f}, {len(beside)} kernels"
    yield from ("", "| kernel | target | registers | of tiles |", "|---|---|---|---|")
    yield from (f"| {one.kernel} | {one.target} | {one.registers} | {one.tiles:.0f} |" for one in found)
    yield ""


def main() -> int:
    problems = {problem.kernel: problem for problem in PROBLEMS if problem.kernel != "attention"}
    found = [one for target in TARGETS for problem in problems.values() if (one := counted(problem, target)) is not None]
    (Path(__file__).parent / "estimate_counts.md").write_text("\n".join(page(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
