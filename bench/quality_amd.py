"""The machine code itself for AMD's chips: what tilefw's and Triton's code of one kernel for gfx942 or gfx950 execute and take.

Both compile the library's one source with the same options; Triton is told of every pointer what its own launcher would tell it
(`tt.pointer_range`: less than 2 GiB), as tilefw is. Instructions are those of waves in a workgroup, counted on tilefw's simulator,
which runs both code objects with its checks on. Registers are vector registers of a lane, accumulation registers among them, of the
code objects' own notes, as are spills (in registers); occupancy is the part of a compute unit's waves that fit at once. Bank
conflicts are cycles of LDS accesses beyond the first, over the whole run. Loop cycles are llvm-mca's for one turn of the main loop;
their ratio is of as many turns as execute all matrix instructions that a wave executes. Goals: instructions and loop cycles at most
1.05 of Triton's, occupancy not lower, no spills where Triton has none.

`python bench/quality_amd.py WORD …` prints the rows whose names have all the words, `--chip gfx950` those of the other chip;
`--save DIR` also writes both listings and both main loops with llvm-mca's timelines there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loops
from library import GFX942, GFX950, Chip, Work, tilefw_artifact, triton_compiled
from measure import verdict
from quality import HIDDEN_POINTERS, run
from works import amd_works, fp8_matmuls, scaled_matmuls

from tilefw.api.errors import InternalError, KernelError

GOAL = 1.05
COLUMNS = (
    "kernel", "instructions", "Triton", "ratio", "registers", "Triton", "spills", "Triton", "occupancy", "Triton", "conflicts",
    "Triton", "LDS bytes", "Triton", "loop cycles", "Triton", "ratio", "goals",
)
CHIPS = {str(chip.triton[1]): chip for chip in (GFX942, GFX950)}
CHECKS = "bounds,initialisation,bank_conflicts"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one code object on one launch; `matrix` are the matrix instructions among the executed ones."""

    instructions: float
    matrix: float
    registers: int
    spills: int
    occupancy: float
    conflicts: int
    shared: int
    loop: loops.Loop | None
    binary: bytes


def measure() -> str:
    return "\n\n".join(table(chip, works_of(chip)) for chip in CHIPS.values())


def works_of(chip: Chip) -> tuple[Work, ...]:
    """The works of a chip: products with scales, and of OCP's fp8, only where it has instructions for them."""
    return (*amd_works(), *((*fp8_matmuls(), *scaled_matmuls()) if chip is GFX950 else ()))


def table(chip: Chip, works: Iterable[Work], save: Path | None = None) -> str:
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="tilefw-bench-"))
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    os.environ["TILEFW_CACHE"] = "0"
    chosen = tuple(works)
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    print(lines[0], file=sys.stderr)
    missed = 0
    for work in chosen:
        mine, peer = _or_reason(ours, work, chip), _or_reason(theirs, work, chip)
        lines.append(row(work, mine, peer))
        missed += verdict(False) in lines[-1]
        print(lines[-1], file=sys.stderr, flush=True)
        if save is not None:
            _save(save, work, chip, {"tilefw": mine, "triton": peer})
    text = (__doc__ or "").split("\n\n")[1].strip().replace("\n", " ")
    head = f"{text} Rows that miss a goal: {missed} of {len(chosen)}."
    return "\n".join([f"## Quality of the machine code for {chip.triton[1]}", "", head, "", *lines])


def _or_reason(compiler: Callable[[Work, Chip], Figures], work: Work, chip: Chip) -> Figures | str:
    """The figures, or in a line why there are none: neither compiler takes every kernel."""
    from triton.compiler.errors import CompilationError

    try:
        return compiler(work, chip)
    except CompilationError as error:
        return str(error).strip().splitlines()[-1].replace("|", "/")  # the lines above show the source
    except (InternalError, KernelError, RuntimeError) as error:
        return str(error).strip().partition("\n")[0].replace("|", "/")


# --- figures -----------------------------------------------------------------------------------------------------------------


def ours(work: Work, chip: Chip) -> Figures:
    from tilefw.runtime.module import Module
    from tilefw.runtime.plugins.loader import find_target

    artifact = tilefw_artifact(work, assemble=True, chip=chip).artifact
    return figures(work, Module(artifact, find_target(chip.target)), {}, 0)


def theirs(work: Work, chip: Chip) -> Figures:
    import tilefw

    compiled = triton_compiled(work, assemble=True, chip=chip)
    module = tilefw.load(compiled.asm["hsaco"], chip.target, f"{work.name}.hsaco")
    names = {"block": (64 * compiled.metadata.num_warps, 1, 1), "dynamic_shared": compiled.metadata.shared}
    return figures(work, module, names, HIDDEN_POINTERS)


def figures(work: Work, module: Any, names: dict[str, Any], hidden: int) -> Figures:
    """Runs a module's kernel on the work's launch with its accesses checked; raises CheckError for a finding."""
    from tilefw_amd import code_object
    from tilefw_amd.chips import WAVE, chip_of
    from tilefw_amd.chips.occupancy import occupancy

    binary, chip = module.artifact.binary, chip_of(module.target.info)
    kernel = code_object.read(binary, work.name, chip).kernels[0]
    launch = work.launch()
    counters = run(work, launch, module, names, hidden, checks=CHECKS).counters
    workgroups = launch.grid[0] * launch.grid[1] * launch.grid[2]
    threads = (names.get("block") or module.only().entry.workgroup)[0]
    said, shared = kernel.metadata, kernel.descriptor.group_segment_fixed_size + (names.get("dynamic_shared") or 0)
    executed, matrix = (counters.get(n, 0) / WAVE / workgroups for n in ("instructions", "instructions.matrix"))
    return Figures(
        executed, matrix, said.vgprs or 0, (said.vgpr_spills or 0) + (said.sgpr_spills or 0),
        occupancy(chip, threads, said.vgprs or 0, shared), counters.get("bank_conflicts", 0), shared,
        loops.main_loop(binary, work.name, chip.name), binary,
    )


# --- rows --------------------------------------------------------------------------------------------------------------------


def row(work: Work, mine: Figures | str, peer: Figures | str) -> str:
    if isinstance(mine, str):
        return _line(work.shown, *[""] * (len(COLUMNS) - 2), f"{verdict(False)}: {mine}")
    if isinstance(peer, str):
        cells = [cell for pair in _pairs(mine, mine) for cell in (pair[0], "")]
        return _line(work.shown, *cells[:2], "", *cells[2:], "", f"Triton: {peer}")
    counts, cycles = mine.instructions / peer.instructions, _cycles(mine, peer)
    judged = {
        "instructions": counts > GOAL, "spills": mine.spills > 0 == peer.spills, "occupancy": mine.occupancy < peer.occupancy,
        "loop": cycles is not None and cycles > GOAL,
    }
    over = [what for what, missed in judged.items() if missed]
    cells = [cell for pair in _pairs(mine, peer) for cell in pair]
    ratio = "" if cycles is None else f"{cycles:.2f}"
    goals = f"{verdict(False)}: {', '.join(over)}" if over else verdict(True)
    return _line(work.shown, *cells[:2], f"{counts:.2f}", *cells[2:], ratio, goals)


def _pairs(mine: Figures, peer: Figures) -> list[tuple[object, object]]:
    def shown(of: Callable[[Figures], object]) -> tuple[object, object]:
        return of(mine), of(peer)

    return [
        shown(lambda f: f"{f.instructions:,.0f}"), shown(lambda f: f.registers), shown(lambda f: f.spills),
        shown(lambda f: f"{f.occupancy:.3g}"), shown(lambda f: f.conflicts), shown(lambda f: f.shared),
        shown(lambda f: "" if f.loop is None or f.loop.cycles is None else f"{f.loop.cycles:.0f}"),
    ]


def _cycles(mine: Figures, peer: Figures) -> float | None:
    """The ratio of cycles for all matrix work of a wave; None where one of them has no such loop, or llvm-mca is missing."""
    taken = [_all_turns(figures) for figures in (mine, peer)]
    return None if None in taken else taken[0] / taken[1]


def _all_turns(figures: Figures) -> float | None:
    loop = figures.loop
    return None if loop is None or not loop.matrix or loop.cycles is None else loop.cycles * figures.matrix / loop.matrix


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _save(folder: Path, work: Work, of: Chip, sides: dict[str, Figures | str]) -> None:
    """Listings, and main loops with llvm-mca's summary and timeline."""
    from tilefw.runtime.plugins.loader import find_target
    from tilefw_amd.assembler.disassemble import disassemble
    from tilefw_amd.chips import chip_of
    from tilefw_amd.isa.set import instruction_set

    isa = instruction_set(chip_of(find_target(of.target).info))
    folder.mkdir(parents=True, exist_ok=True)
    name = "".join(c if c.isalnum() else "_" for c in work.shown)
    for side, found in sides.items():
        if isinstance(found, str):
            continue
        (folder / f"{name}.{side}.s").write_text(disassemble(isa, found.binary, work.name))
        if found.loop is not None:
            printed = loops.report(found.loop.chip, found.loop.lines, "-timeline", "-timeline-max-iterations=2") or ""
            (folder / f"{name}.{side}.loop").write_text("\n".join([*found.loop.lines, "", printed]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of a row's name; all rows when none is given")
    parser.add_argument("--save", type=Path, metavar="DIR", help="write listings and loops there")
    parser.add_argument("--chip", choices=CHIPS, default="gfx942")
    args = parser.parse_args()
    works = [w for w in works_of(CHIPS[args.chip]) if all(word in w.shown for word in args.words)]
    print(table(CHIPS[args.chip], works, args.save))


if __name__ == "__main__":
    main()
