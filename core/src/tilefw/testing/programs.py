"""Random tile programs on the reference and on a target, compared by bounds: a hypothesis strategy, and a campaign over many.

    python -m tilefw.testing.programs --target NAME --count 2000 --seed 1 --out DIR

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
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import InternalError, KernelError, UnsupportedError
from tilefw.kernels.reference import Reference, typed
from tilefw.passes.dce import DcePass
from tilefw.runtime import compiler, config, options
from tilefw.runtime.binding import bind
from tilefw.runtime.launch import execute
from tilefw.runtime.loader import Target, find
from tilefw.testing.random_program import OPERATIONS, Program, fresh, generate
from tilefw.tile.accuracy import Comparison
from tilefw.tile.elementwise import ROWS
from tilefw.tile.text import parse

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LEAST_OCCURRENCES = 20
BUDGET = 200_000_000
# What is counted: the rows of the table, and the dialect's own ops that compute, move or reach memory.
COUNTED: tuple[str, ...] = (
    *ROWS, "reduce", "dot", "trans", "reshape", "expand_dims", "broadcast", "join", "split", "flip", "splat", "iota",
    "load", "store", "load_block", "store_block",
)


@dataclass(frozen=True, slots=True)
class Outcome:
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


def programs() -> SearchStrategy[Program]:
    """A hypothesis strategy; examples shrink through the random source from which the program is written."""
    from hypothesis import strategies as st

    sizes, firsts = st.integers(1, 12), st.sampled_from([None, *OPERATIONS])
    return st.builds(generate, st.randoms(use_true_random=False), sizes, firsts)


def operations(program: Program) -> frozenset[str]:
    """Which of COUNTED the program executes: what is left once dead code is gone."""
    module = parse(program.text)
    DcePass().apply(_context(), module)
    return frozenset(op.name.removeprefix("tile.") for op in module.walk()) & frozenset(COUNTED)


def run(program: Program, target: str, **execution: Any) -> Outcome:
    """Run `program` on the reference and on `target`, and compare every output, storage around it included."""
    chosen = find(target)
    used = operations(program)
    resolved = config.resolve(config.settings(chosen.name, **{"budget": BUDGET, **execution}))
    values = {name: typed(value) for name, value in fresh(program).items()}
    try:
        reference = Reference(program.text, program.grid, values, budget=BUDGET)
        _launch(program, chosen, resolved, values)
    except UnsupportedError as error:
        return Outcome("refused", used, error=error)
    except (KernelError, InternalError) as error:
        return Outcome("error", used, error=error)
    compared = {name: reference.compare(name) for name in program.outputs}
    return Outcome("differs" if any(c.wrong for c in compared.values()) else "pass", used, compared)


def _launch(program: Program, target: Target, resolved: config.Resolved, values: Mapping[str, Any]) -> None:
    source = compiler.from_text(program.text, "random_program")
    request = options.resolve({"num_warps": program.num_warps}, target.info)
    compiled = compiler.compile_source(source, target, request, watch=compiler.Watch())
    entry = compiled.artifact.entry()
    execute(target, resolved, compiled, entry, program.grid, bind(entry, list(values.values())), "random_program")


def numbered(seed: int, index: int, *, tiles: bool = True) -> Program:
    """Program `index` of the campaign `seed`; all operations take turns at being the one that surely occurs.

    Without `tiles` only elementwise ones are drawn.
    """
    rng = random.Random(f"{seed}:{index}")
    turns = OPERATIONS if tiles else tuple(ROWS)
    return generate(rng, rng.randint(1, 12), turns[index % len(turns)], tiles=tiles)


def narrowed(program: Program, output: str) -> str:
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
    from tilefw.tile.dialect import context

    return context()


@dataclass(slots=True)
class Campaign:
    """Many programs on one target, counted."""

    target: str
    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    occurrences: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)
    free: float = 0.0
    seconds: float = 0.0

    def take(self, index: int, folder: Path | None) -> Outcome:
        """Run program `index`; a failing one is written to `folder`."""
        start = time.perf_counter()
        program = numbered(self.seed, index)
        outcome = run(program, self.target)
        self.seconds += time.perf_counter() - start
        self.outcomes[outcome.status] += 1
        if outcome.status in ("pass", "differs"):
            self.occurrences.update(outcome.operations)
            self.free += outcome.free
        if outcome.status != "pass":
            self.failures.append({"index": index, "status": outcome.status, "message": outcome.message()})
            if folder is not None:
                _keep(folder, index, program, outcome)
        return outcome

    def report(self) -> dict[str, Any]:
        """The result as JSON; `rare` names operations that occurred less than LEAST_OCCURRENCES times."""
        compared = max(1, self.outcomes["pass"] + self.outcomes["differs"])
        return {
            "schema": "tilefw.programs/1", "target": self.target, "seed": self.seed, "programs": self.outcomes.total(),
            "outcomes": dict(self.outcomes), "occurrences": {name: self.occurrences[name] for name in COUNTED},
            "rare": [name for name in COUNTED if self.occurrences[name] < LEAST_OCCURRENCES],
            "free_fraction": self.free / compared, "seconds": round(self.seconds, 1), "failures": self.failures,
        }


def _keep(folder: Path, index: int, program: Program, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{index}.mlir").write_text(program.text)
    notes = [outcome.message(), f"grid {program.grid}, num_warps {program.num_warps}"]
    for name, comparison in outcome.comparisons.items():
        if comparison.wrong:
            notes += ["", f"// only {name}", narrowed(program, name)]
            break
    (folder / f"{index}.txt").write_text("\n".join(notes) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 when every program passed and every operation occurred often enough."""
    parser = argparse.ArgumentParser(prog="python -m tilefw.testing.programs", description=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this program of the campaign alone, and print it")
    parser.add_argument("--out", type=Path, help="a folder for failing programs and result.json")
    args = parser.parse_args(argv)
    campaign = Campaign(find(args.target).name, args.seed)
    if args.only is not None:
        print(numbered(args.seed, args.only).text)
        print(campaign.take(args.only, args.out).message())
        return 0 if campaign.outcomes["pass"] else 1
    for index in range(args.count):
        outcome = campaign.take(index, args.out)
        if outcome.status != "pass":
            print(f"{index}: {outcome.message()}", file=sys.stderr)
    report = campaign.report()
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "result.json").write_text(json.dumps(report, indent=2) + "\n")
    least = min(report["occurrences"].items(), key=lambda pair: pair[1])
    print(f"{report['target']}: {report['outcomes']}, rarest operation {least[0]} in {least[1]} programs, "
          f"{report['free_fraction']:.2%} of elements free, {report['seconds']} s")
    enough = not report["rare"] or args.count < 2000
    return 0 if enough and campaign.outcomes["pass"] == args.count else 1


if __name__ == "__main__":
    sys.exit(main())
