"""The machine code itself: what tilefw's PTX and Triton's PTX of one kernel execute, and what ptxas says of both.

Instructions are counted on tilefw's simulator, which runs both texts; they are PTX instructions of all threads, so the ratio is
that of a workgroup. Registers and spills are ptxas's. Bank conflicts are cycles of shared-memory accesses beyond the first,
over the whole run.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from library import TARGET, Work, tilefw_artifact, triton_compiled

GOAL = 1.1
COLUMNS = (
    "kernel", "instructions", "Triton", "ratio", "registers", "Triton", "ratio", "spills", "bank conflicts", "Triton",
    "shared bytes", "Triton", "",
)
CHECKS = "bounds,initialisation,bank_conflicts"
BUDGET = 10_000_000_000
HIDDEN_POINTERS = 2  # Triton appends pointers to global and profiling scratch; both are null here


def _matmul(m: int, n: int, k: int, warps: int, stages: int = 3, **more: Any) -> dict[str, Any]:
    size = {"m": 2 * m, "n": 2 * n, "k": 8 * k}
    return {**size, "block_m": m, "block_n": n, "block_k": k, "num_warps": warps, "num_stages": stages, **more}


# What the table is made of: the goal is meant for all of them.
WORKS: tuple[Work, ...] = (
    Work("vector_add", {"n": 8192}),
    Work("matmul", _matmul(128, 128, 32, 4)),
    Work("matmul", _matmul(128, 128, 64, 8)),
    Work("matmul", _matmul(64, 64, 32, 4)),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one PTX text on one launch: instructions a workgroup, registers a thread, spilled bytes, bank conflicts, shared bytes."""

    instructions: float
    registers: int
    spills: int
    conflicts: int
    shared: int


def measure(works: tuple[Work, ...] = WORKS) -> str:
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="tilefw-bench-"))
    os.environ["TILEFW_CACHE"] = "0"
    lines = ["## Quality of the machine code", "", __doc__.split("\n\n")[1].replace("\n", " "), ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for work in works:
        lines.append(row(work, ours(work), theirs(work)))
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def row(work: Work, mine: Figures, peer: Figures) -> str:
    counts, registers = mine.instructions / peer.instructions, mine.registers / peer.registers
    met = counts <= GOAL and registers <= GOAL and not mine.spills and not mine.conflicts
    cells = (
        f"{work.name} {work.shown}", f"{mine.instructions:,.0f}", f"{peer.instructions:,.0f}", f"{counts:.2f}",
        mine.registers, peer.registers, f"{registers:.2f}", mine.spills, mine.conflicts, peer.conflicts, mine.shared, peer.shared,
        "met" if met else "**missed**",
    )
    return f"| {' | '.join(map(str, cells))} |"


def ours(work: Work) -> Figures:
    artifact = tilefw_artifact(work).artifact
    return figures(work, artifact.text, 0)


def theirs(work: Work) -> Figures:
    compiled = triton_compiled(work)
    return figures(work, compiled.asm["ptx"], HIDDEN_POINTERS, compiled.metadata.num_warps, compiled.metadata.shared)


def figures(work: Work, ptx: str, hidden: int, warps: int | None = None, dynamic: int | None = None) -> Figures:
    """Runs `ptx` on the work's launch with its accesses checked; raises CheckError for a finding."""
    import tilefw
    from tilefw.api import CompileOptions
    from tilefw.kernels.reference import typed

    _, _, values, _ = work.bound
    launch = work.launch()
    module = tilefw.load(ptx.encode(), TARGET, f"{work.name}.ptx")
    block = None if warps is None else (32 * warps, 1, 1)
    arguments = [typed(launch.arguments[name]) for name in values if not work.bound[0][name].endswith(":1")]
    result = module.only().launch(
        launch.grid, [*arguments, *[None] * hidden], block=block, dynamic_shared=dynamic, checks=CHECKS, budget=BUDGET
    )
    counters: Mapping[str, int] = result.counters
    found = module.target.backend.assemble(module.artifact, CompileOptions()).resources
    if found.registers is None:
        raise SystemExit(f"the table needs ptxas: {found.unknown}")
    return Figures(
        counters["instructions"] / (launch.grid[0] * launch.grid[1] * launch.grid[2]), max(found.registers.values()),
        found.spills or 0, counters.get("bank_conflicts", 0), (found.shared_bytes or 0) + (dynamic or 0),
    )
