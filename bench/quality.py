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

import numpy as np
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
    from tilefw.runtime.loader import find
    from tilefw.runtime.module import Module

    return figures(work, Module(tilefw_artifact(work).artifact, find(TARGET)), {}, 0)


def theirs(work: Work) -> Figures:
    import tilefw

    compiled = triton_compiled(work)
    module = tilefw.load(compiled.asm["ptx"].encode(), TARGET, f"{work.name}.ptx")
    names = {"block": (32 * compiled.metadata.num_warps, 1, 1), "dynamic_shared": compiled.metadata.shared}
    return figures(work, module, names, HIDDEN_POINTERS)


def figures(work: Work, module: Any, names: Mapping[str, Any], hidden: int) -> Figures:
    """Runs a module's kernel on the work's launch with its accesses checked; raises CheckError for a finding."""
    from tilefw.api import CompileOptions

    launch = work.launch()
    kernel = module.only()
    arguments = [*work.arguments(launch), *[None] * hidden]
    passed = [_as(p.dtype, a) for p, a in zip(kernel.entry.parameters, arguments, strict=True)]
    result = kernel.launch(launch.grid, passed, checks=CHECKS, budget=BUDGET, **names)
    counters: Mapping[str, int] = result.counters
    found = module.target.backend.assemble(module.artifact, CompileOptions()).resources
    if found.registers is None:
        raise SystemExit(f"the table needs ptxas: {found.unknown}")
    return Figures(
        counters["instructions"] / (launch.grid[0] * launch.grid[1] * launch.grid[2]), max(found.registers.values()),
        found.spills or 0, counters.get("bank_conflicts", 0), (found.shared_bytes or 0) + (names.get("dynamic_shared") or 0),
    )


def _as(kind: str, argument: Any) -> Any:
    """Foreign PTX says of a float parameter only that it has 32 bits."""
    if isinstance(argument, float) and kind == "uint32":
        return int(np.float32(argument).view(np.uint32))
    return argument
