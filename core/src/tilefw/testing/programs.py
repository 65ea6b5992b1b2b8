"""Random tile programs on the reference and on targets, compared by bounds: a hypothesis strategy, and a campaign over many.

    python -m tilefw.testing.programs --target NAME [--target NAME ...] --count 2000 --seed 1 --jobs 2 --out DIR

The campaign's program number I is drawn from (seed, I) alone, so that `--only I` makes it again. It reports how often each
operation of the table and of the tile dialect really occurred (after dead code is gone), and writes down each failing program,
narrowed to one output.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefw.api.artifact import Artifact
from tilefw.api.errors import InternalError, KernelError, UnsupportedError
from tilefw.kernels.reference import Reference, typed
from tilefw.kernels.spec import Buffer
from tilefw.passes.dce import DcePass
from tilefw.runtime import config
from tilefw.runtime.arguments.array_facts import facts_of
from tilefw.runtime.arguments.binding import bind
from tilefw.runtime.arguments.bound_launch import launch_of
from tilefw.runtime.compilation import compiler, kernel_source, options, pass_run
from tilefw.runtime.executor import executor_for
from tilefw.runtime.launch import execute
from tilefw.runtime.plugins.loader import Target, find_target
from tilefw.testing.random_program import OPERATIONS, RandomProgram, fresh, generate
from tilefw.tile.dialect.shape_ops import SHAPE_OPS
from tilefw.tile.elementwise import ROWS
from tilefw.tile.reference.accuracy import Comparison
from tilefw.tile.text.module import parse

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from xdsl.dialects.builtin import ModuleOp

LEAST_OCCURRENCES = 20
BUDGET = 200_000_000
PART = 25  # programs that one process runs before the next comes: what they leave in memory goes with it
# What is counted: the rows of the table, and the dialect's own ops that compute, move or reach memory.
COUNTED: tuple[str, ...] = (
    *ROWS, "reduce", "scan", "dot", *(op.name.removeprefix("tile.") for op in SHAPE_OPS), "gather", "iota",
    "load", "store", "load_block", "store_block", "atomic_rmw", "atomic_cas",
)


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How one program ended: `pass`, `differs`, `refused` (the target does not serve an operation), `error`.

    `free` is the part of the compared elements that the reference leaves open.
    """

    status: str
    operations: frozenset[str]
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    error: KernelError | InternalError | None = None

    @property
    def free(self) -> float:
        compared = self.comparisons.values()
        return sum(c.free_fraction * c.elements for c in compared) / max(1, sum(c.elements for c in compared))

    def message(self) -> str:
        wrong = [f"{name}: {c}" for name, c in self.comparisons.items() if c.wrong]
        return "\n".join([self.status, *wrong, *([str(self.error)] if self.error is not None else [])])


def programs() -> SearchStrategy[RandomProgram]:
    """A hypothesis strategy; examples shrink through the random source from which the program is written."""
    from hypothesis import strategies as st

    sizes, firsts = st.integers(1, 12), st.sampled_from([None, *OPERATIONS])
    return st.builds(generate, st.randoms(use_true_random=False), sizes, firsts)


def operations(program: RandomProgram) -> frozenset[str]:
    """Which of COUNTED the program executes: what is left once dead code is gone."""
    return _operations(parse(program.text))


def _operations(module: ModuleOp) -> frozenset[str]:
    DcePass().apply(_context(), module)
    return frozenset(op.name.removeprefix("tile.") for op in module.walk()) & frozenset(COUNTED)


def run(program: RandomProgram, target: str, **execution: Any) -> ProgramOutcome:
    """Run `program` on the reference and on `target`, and compare every output, storage around it included."""
    return run_on(program, (target,), **execution)[target]


def run_on(program: RandomProgram, targets: Sequence[str], **execution: Any) -> dict[str, ProgramOutcome]:
    """Run `program` once on the reference and on each of `targets`, and compare every output of each: outcomes by target."""
    module = parse(program.text)
    used = _operations(module.clone())
    values = {name: typed(value) for name, value in fresh(program).items()}
    try:
        reference = Reference(module, program.grid, values, budget=BUDGET)
    except (KernelError, InternalError) as error:
        return dict.fromkeys(targets, ProgramOutcome(_ended(error), used, error=error))
    found = {}
    for target in targets:
        _restore(program, values)
        found[target] = _outcome(program, module, target, used, values, reference, execution)
    return found


def _outcome(
    program: RandomProgram, module: ModuleOp, target: str, used: frozenset[str], values: Mapping[str, Any], reference: Reference,
    execution: Mapping[str, Any],
) -> ProgramOutcome:
    chosen = find_target(target)
    resolved = config.resolve(config.settings(chosen.name, **{"budget": BUDGET, **execution}))
    try:
        _launch(program, module, chosen, resolved, values)
    except (KernelError, InternalError) as error:
        return ProgramOutcome(_ended(error), used, error=error)
    compared = {name: reference.compare(name) for name in program.outputs}
    return ProgramOutcome("differs" if any(c.wrong for c in compared.values()) else "pass", used, compared)


def _ended(error: KernelError | InternalError) -> str:
    return "refused" if isinstance(error, UnsupportedError) else "error"


def _restore(program: RandomProgram, values: Mapping[str, Any]) -> None:
    """What the last launch wrote is forgotten: the arrays hold what the program's own do."""
    for name, value in program.arguments.items():
        if isinstance(value, Buffer):
            values[name].array[...] = value.array


def _launch(
    program: RandomProgram, module: ModuleOp, target: Target, resolved: config.Resolved, values: Mapping[str, Any]
) -> None:
    made = _compiled(program, module, target, values, executor_for(target, resolved.executor).device.assembled)
    entry = made.artifact.entry()
    execute(target, resolved, made, entry, program.grid, bind(entry, list(values.values())), "random_program")


def compiled(program: RandomProgram, target: str) -> Artifact:
    """The program's machine code for `target`, as text and as bytes. Raises CompileError, UnsupportedError."""
    chosen = find_target(target)
    values = {name: typed(value) for name, value in fresh(program).items()}
    return _compiled(program, parse(program.text), chosen, values, True).artifact


def _compiled(
    program: RandomProgram, module: ModuleOp, target: Target, values: Mapping[str, Any], assemble: bool
) -> compiler.CompiledArtifact:
    source = kernel_source.ModuleSource("random_program", None, module.clone)
    facts = facts_of(target.info, values) if program.told else frozenset()
    # A target that compiles for one launch is told it whatever the program says.
    launch = launch_of(target.info, values, program.grid)
    request = options.resolve({"num_warps": program.num_warps}, target.info, facts=facts, launch=launch)
    return compiler.compile_source(source, target, request, assemble=assemble, watch=pass_run.Watch())


def numbered(seed: int, index: int, *, tiles: bool = True) -> RandomProgram:
    """Program `index` of the campaign `seed`; all operations take turns at being the one that surely occurs.

    Without `tiles` only elementwise ones are drawn.
    """
    rng = random.Random(f"{seed}:{index}")
    turns = OPERATIONS if tiles else tuple(ROWS)
    return generate(rng, rng.randint(1, 12), turns[index % len(turns)], tiles=tiles)


def narrowed(program: RandomProgram, output: str) -> str:
    """The program's text with the stores to one output alone and what they need: a smaller program to look at."""
    module = parse(program.text)
    kept = f"%{output}"
    for op in [op for op in module.walk() if op.name in ("tile.store", "tile.store_block")]:
        if _stored_to(op.operands[0]) != kept:
            op.detach()
            op.erase()
    DcePass().apply(_context(), module)
    return str(module)


def _stored_to(pointer: Any) -> str:
    """The name of the argument below a pointer."""
    while getattr(pointer, "op", None) is not None:
        pointer = pointer.op.operands[0]
    return f"%{pointer.name_hint}"


def _context() -> Any:
    from tilefw.tile.dialect.context import context

    return context()


@dataclass(slots=True)
class ProgramCampaign:
    """Many programs on one or more targets, counted for each: outcomes, operations that occurred, the part left open."""

    targets: Sequence[str]
    seed: int
    programs: int = 0
    outcomes: dict[str, Counter[str]] = field(default_factory=partial(defaultdict, Counter))
    occurrences: dict[str, Counter[str]] = field(default_factory=partial(defaultdict, Counter))
    free: dict[str, float] = field(default_factory=partial(defaultdict, float))
    failures: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, index: int, folder: Path | None) -> dict[str, ProgramOutcome]:
        """Run program `index` on every target; a failing one is written to `folder`."""
        start = time.perf_counter()
        program = numbered(self.seed, index)
        found = run_on(program, self.targets)
        self.seconds += time.perf_counter() - start
        self.programs += 1
        for target, outcome in found.items():
            self._count(target, outcome)
            if outcome.status == "pass":
                continue
            self.failures.append({"index": index, "target": target, "status": outcome.status, "message": outcome.message()})
            if folder is not None:
                _keep(folder, f"{index}-{target}", program, outcome)
        return found

    def add(self, other: ProgramCampaign) -> None:
        """Count what `other`, a campaign over other programs of the same seed, ran."""
        self.programs += other.programs
        self.seconds += other.seconds
        self.failures += other.failures
        for target in self.targets:
            self.free[target] += other.free[target]
            self.outcomes[target].update(other.outcomes[target])
            self.occurrences[target].update(other.occurrences[target])

    def _count(self, target: str, outcome: ProgramOutcome) -> None:
        self.outcomes[target][outcome.status] += 1
        if outcome.status in ("pass", "differs"):
            self.occurrences[target].update(outcome.operations)
            self.free[target] += outcome.free

    def rare(self, target: str) -> list[str]:
        """The operations that occurred less than LEAST_OCCURRENCES times in programs that `target` ran."""
        return [name for name in COUNTED if self.occurrences[target][name] < LEAST_OCCURRENCES]

    def of_target(self, target: str) -> dict[str, Any]:
        """The result on one target as JSON."""
        outcomes = self.outcomes[target]
        return {
            "outcomes": dict(outcomes), "free_fraction": self.free[target] / max(1, outcomes["pass"] + outcomes["differs"]),
            "rare": self.rare(target), "occurrences": {name: self.occurrences[target][name] for name in COUNTED},
        }

    def report(self) -> dict[str, Any]:
        """The result as JSON, by target."""
        return {
            "schema": "tilefw.programs/2", "seed": self.seed, "programs": self.programs, "seconds": round(self.seconds, 1),
            "failures": self.failures, "targets": {target: self.of_target(target) for target in self.targets},
        }

    def summary(self, target: str) -> str:
        """The result on one target as a line."""
        occurrences = self.occurrences[target]
        least = min(COUNTED, key=lambda name: occurrences[name])
        return (
            f"{target}: {dict(self.outcomes[target])}, rarest operation {least} in {occurrences[least]} programs, "
            f"{self.of_target(target)['free_fraction']:.2%} of elements free"
        )


def _keep(folder: Path, name: str, program: RandomProgram, outcome: ProgramOutcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.mlir").write_text(program.text)
    notes = [outcome.message(), f"grid {program.grid}, num_warps {program.num_warps}"]
    for output, comparison in outcome.comparisons.items():
        if comparison.wrong:
            notes += ["", f"// only {output}", narrowed(program, output)]
            break
    (folder / f"{name}.txt").write_text("\n".join(notes) + "\n")


def part(targets: Sequence[str], seed: int, folder: Path | None, indices: Sequence[int]) -> ProgramCampaign:
    """The programs `indices` of the campaign `seed`."""
    campaign = ProgramCampaign(targets, seed)
    for index in indices:
        campaign.take(index, folder)
    return campaign


def parts(
    targets: Sequence[str], seed: int, folder: Path | None, indices: Sequence[int], jobs: int, size: int = PART
) -> Iterator[ProgramCampaign]:
    """The programs `indices` in parts of `size`, in order, by `jobs` processes at a time."""
    cut = [indices[i : i + size] for i in range(0, len(indices), size)]
    with ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        yield from pool.map(partial(part, targets, seed, folder), cut)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 when every program passed on every target and every operation occurred often enough."""
    args = _arguments(argv)
    targets = tuple(find_target(name).name for name in args.target)
    campaign = ProgramCampaign(targets, args.seed)
    if args.only is not None:
        print(numbered(args.seed, args.only).text)
        for target, outcome in campaign.take(args.only, args.out).items():
            print(f"{target}: {outcome.message()}")
        return 1 if campaign.failures else 0
    for found in parts(targets, args.seed, args.out, range(args.first, args.first + args.count), args.jobs):
        campaign.add(found)
        for failure in found.failures:
            print("{index}, {target}: {message}".format_map(failure), file=sys.stderr, flush=True)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "result.json").write_text(json.dumps(campaign.report(), indent=2) + "\n")
    for target in campaign.targets:
        print(campaign.summary(target))
    print(f"{campaign.programs} programs, {campaign.seconds:.0f} s")
    enough = args.count < 2000 or not any(map(campaign.rare, campaign.targets))
    return 0 if enough and not campaign.failures else 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tilefw.testing.programs", description=__doc__)
    parser.add_argument("--target", required=True, action="append", help="may be given several times")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this program of the campaign alone, and print it")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes run programs at a time")
    parser.add_argument("--out", type=Path, help="a folder for failing programs and result.json")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
