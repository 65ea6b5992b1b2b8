"""The machine code itself: what tilefw's PTX and Triton's PTX of one kernel execute, and what ptxas makes of both.

Both compile the library's one source with the same options. Instructions are PTX instructions of all threads of a workgroup,
counted on tilefw's simulator, which runs both texts with its checks on. Registers and spilled bytes are those of the same ptxas.
Bank conflicts are cycles of shared-memory accesses beyond the first, over the whole run. The goals: instructions and registers at
most 1.1 of Triton's, no spills, no conflicts. The last two columns are a second opinion, of SASS: the static instructions of the
kernel as a ratio, and the main loop's instructions for each matrix instruction, ours and Triton's.

`python bench/quality.py WORD ...` prints the rows whose names have all the words.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import sass
from library import SM80, Chip, Work, tilefw_artifact, triton_compiled
from measure import verdict
from works import all_works

from tilefw.api.errors import KernelError

GOAL = 1.1
COLUMNS = (
    "kernel", "instructions", "Triton", "ratio", "registers", "Triton", "ratio", "spills", "Triton", "conflicts", "Triton",
    "shared bytes", "Triton", "goals", "SASS ratio", "SASS loop",
)
CHECKS = "bounds,initialisation,bank_conflicts"
BUDGET = 10_000_000_000
HIDDEN_POINTERS = 2  # Triton appends pointers to global and profiling scratch; both are null here


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one PTX text on one launch: instructions a workgroup, registers a thread, spilled bytes, bank conflicts, shared bytes."""

    instructions: float
    registers: int
    spills: int
    conflicts: int
    shared: int
    sass: sass.Sass | None


def measure(works: Iterable[Work] | None = None, chip: Chip = SM80) -> str:
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="tilefw-bench-"))
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ["TILEFW_CACHE"] = "0"
    chosen = all_works() if works is None else tuple(works)
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    missed = 0
    for work in chosen:
        lines.append(row(work, _or_reason(partial(ours, chip=chip), work), _or_reason(partial(theirs, chip=chip), work)))
        missed += verdict(False) in lines[-1]
        print(lines[-1], file=sys.stderr, flush=True)
    text = (__doc__ or "").split("\n\n")[1].strip().replace("\n", " ")
    head = f"{text} Rows that miss a goal: {missed} of {len(chosen)}."
    return "\n".join(["## Quality of the machine code", "", head, "", *lines])


def _or_reason(compiler: Callable[[Work], Figures], work: Work) -> Figures | str:
    """The figures, or in a line why there are none: neither compiler takes every kernel."""
    try:
        return compiler(work)
    except (KernelError, RuntimeError) as error:
        return str(error).strip().partition("\n")[0].replace("|", "/")


def row(work: Work, mine: Figures | str, peer: Figures | str) -> str:
    if isinstance(mine, str):
        return _line(work.shown, *[""] * 12, f"{verdict(False)}: {mine}", "", "")
    if isinstance(peer, str):
        own = (f"{mine.instructions:,.0f}", "", "", mine.registers, "", "", mine.spills, "", mine.conflicts, "", mine.shared, "")
        return _line(work.shown, *own, f"Triton: {peer}", "", "")
    counts, registers = mine.instructions / peer.instructions, mine.registers / peer.registers
    judged = {
        "instructions": counts > GOAL, "registers": registers > GOAL, "spills": mine.spills > 0, "conflicts": mine.conflicts > 0,
    }
    over = [what for what, missed in judged.items() if missed]
    return _line(
        work.shown, f"{mine.instructions:,.0f}", f"{peer.instructions:,.0f}", f"{counts:.2f}",
        mine.registers, peer.registers, f"{registers:.2f}", mine.spills, peer.spills, mine.conflicts, peer.conflicts,
        mine.shared, peer.shared, f"{verdict(False)}: {', '.join(over)}" if over else verdict(True), *_second_opinion(mine, peer),
    )


def _second_opinion(mine: Figures, peer: Figures) -> tuple[str, str]:
    if mine.sass is None or peer.sass is None:
        return "", ""
    loops = [figures.sass.loop for figures in (mine, peer) if figures.sass and figures.sass.loop]
    shown = " / ".join(f"{loop.per_matrix:.1f}" for loop in loops) if len(loops) == 2 else ""
    return f"{mine.sass.instructions / peer.sass.instructions:.2f}", shown


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def ours(work: Work, chip: Chip) -> Figures:
    from tilefw.runtime.module import Module
    from tilefw.runtime.plugins.loader import find_target

    return figures(work, Module(tilefw_artifact(work, chip=chip).artifact, find_target(chip.target)), {}, 0)


def theirs(work: Work, chip: Chip) -> Figures:
    import tilefw

    compiled = _compiled_by_triton(work, chip)
    module = tilefw.load(compiled.asm["ptx"].encode(), chip.target, f"{work.name}.ptx")
    names = {"block": (32 * compiled.metadata.num_warps, 1, 1), "dynamic_shared": compiled.metadata.shared}
    return figures(work, module, names, HIDDEN_POINTERS, compiled.metadata.global_scratch_size, work.workgroups)


def _compiled_by_triton(work: Work, chip: Chip) -> Any:
    """Triton's artifact; what it refuses in the source raises RuntimeError with the reason, which it tells last."""
    from triton.compiler.errors import CompilationError

    try:
        return triton_compiled(work, chip=chip)
    except CompilationError as error:
        raise RuntimeError(str(error).strip().rpartition("\n")[2]) from None


def figures(
    work: Work, module: Any, names: Mapping[str, Any], hidden: int, scratch: int = 0, workgroups: int = 1
) -> Figures:
    """Runs a module's kernel on the work's launch with its accesses checked; raises CheckError for a finding. Of a text that does
    not say that several `workgroups` make a program the grid counts them all."""
    from tilefw.api import CompileOptions

    assembled = module.target.backend.assemble(module.artifact, CompileOptions())
    found = assembled.resources
    if found.registers is None or assembled.binary is None:
        raise SystemExit(f"the table needs ptxas: {found.unknown}")
    launch = work.launch()
    x, y, z = launch.grid
    result = run(work, replace(launch, grid=(x * workgroups, y, z)), module, names, hidden, scratch, checks=CHECKS)
    counters: Mapping[str, int] = result.counters
    return Figures(
        counters["instructions"] / (launch.grid[0] * launch.grid[1] * launch.grid[2]), max(found.registers.values()),
        found.spills or 0, counters.get("bank_conflicts", 0), (found.shared_bytes or 0) + (names.get("dynamic_shared") or 0),
        sass.read(assembled.binary),
    )


def run(work: Work, launch: Any, module: Any, names: Mapping[str, Any], hidden: int, scratch: int = 0, **options: Any) -> Any:
    """One launch of the module's only kernel with the work's arguments and `hidden` null pointers at the end; of these the first is
    memory where each program has `scratch` bytes."""
    kernel = module.only()
    arguments = [*work.arguments(launch), *[None] * hidden]
    if scratch:
        arguments[-hidden] = np.zeros(scratch * launch.grid[0] * launch.grid[1] * launch.grid[2], np.uint8)
    own = [parameter for parameter in kernel.entry.parameters if parameter.hidden is None]
    passed = [_as(p.dtype, a) for p, a in zip(own, arguments, strict=True)]
    return kernel.launch(launch.grid, passed, budget=BUDGET, **options, **names)


def _as(kind: str, argument: Any) -> Any:
    """Foreign PTX says of a float parameter only that it has 32 bits."""
    if isinstance(argument, float) and kind == "uint32":
        return int(np.float32(argument).view(np.uint32))
    return argument


if __name__ == "__main__":
    words = sys.argv[1:]
    print(measure([work for work in all_works() if all(word in work.shown for word in words)]))
