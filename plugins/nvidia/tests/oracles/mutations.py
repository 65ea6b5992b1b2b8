"""The mutation campaign: break Triton's PTX at one site, run it with all checks, and see whether the simulator tells.

    python -m oracles.mutations                     # every site of every kernel, writes bench/mutations.md
    python -m oracles.mutations --sample 60 --seed 7 --kernels softmax matmul_f16

(with plugins/nvidia/tests on PYTHONPATH). A mutant is run on all launches of its kernel in plain order, then under
adversarial orders. It is *reported* when a finding names an instruction, *wrong only* when the result is wrong and
nothing was found, *equivalent* when 20 adversarial orders give the right result without a finding and an argument covers
it (proved from the control flow by `equivalence`, or written in bench/equivalents.yaml), and *survived* when there is none.
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from oracles import corpus, equivalence, execute
from oracles.corpus import Item
from oracles.sites import Site, sites
from tilefw.api import KernelError

KERNELS = (
    "vector_add",
    "gelu_erf",
    "softmax",
    "layer_norm",
    "welford",
    "matmul_f16",
    "matmul_bf16",
    "matmul_tf32",
    "matmul_i8",
    "attention_causal",
    "collatz_steps",
    "integer_mix",
    "atomic_histogram",
    "transpose",
)
ORDERS = 20  # adversarial orders that an equivalent must survive
BUDGET_FACTOR = 6  # a mutant may execute this many times what the right kernel does
BENCH = Path(__file__).resolve().parents[4] / "bench"


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant. `detail` is the finding, the mismatch, or the argument."""

    kernel: str
    site: Site
    outcome: str
    detail: str


def verdicts(kernel: str, chosen: Sequence[Site] | None = None) -> Iterator[Verdict]:
    """Every site of the kernel's PTX (or the chosen ones) tried on all of its launches."""
    items = launches(kernel)
    budgets = [_instructions(item) * BUDGET_FACTOR for item in items]
    for site in sites(items[0].ptx) if chosen is None else chosen:
        outcome, detail = _try(site, items, budgets)
        yield Verdict(kernel, site, outcome, detail)


@functools.cache
def launches(kernel: str) -> tuple[Item, ...]:
    case = next(case for case in corpus.cases() if case.name == kernel)
    return tuple(corpus.item(case, seed=1, variant=index) for index in range(1 + len(case.variants)))


def _instructions(item: Item) -> int:
    outcome = execute.run(item)
    if outcome.report.findings or item.check(outcome.outputs):
        raise AssertionError(f"{item.name} is not clean before any mutation")
    return outcome.report.counters["instructions"]


def _try(site: Site, items: Sequence[Item], budgets: Sequence[int]) -> tuple[str, str]:
    try:
        artifact = execute.parse(site.ptx, "mutant")
    except KernelError as error:
        return "reported", f"{error.code} {error.message}"
    wrong = ""
    for seed in range(ORDERS + 1):
        for item, budget in zip(items, budgets, strict=True):
            found, mismatch = _run(item, artifact, seed, budget)
            if found:
                return "reported", found
            wrong = wrong or mismatch
        if wrong:
            return "wrong only", wrong
    argument = equivalence.proof(items[0].ptx, site) or _argument(items[0].name, site)
    return ("equivalent", argument) if argument else ("survived", "")


def _run(item: Item, artifact: object, seed: int, budget: int) -> tuple[str, str]:
    """The first finding that names an instruction, and the first mismatch; each empty when there is none."""
    try:
        outcome = execute.run(item, artifact, seed=seed, budget=budget)
    except KernelError as error:
        return f"{error.code} {error.message}", ""
    for finding in outcome.report.findings:
        if finding.instruction:
            where = f" at line {finding.code_place.line}" if finding.code_place else ""
            return f"{finding.check} {finding.code}: `{finding.instruction}`{where}", ""
    found = item.check(outcome.outputs)
    return "", str(found[0]) if found else ""


@functools.cache
def _arguments() -> list[dict[str, str]]:
    path = BENCH / "equivalents.yaml"
    return yaml.safe_load(path.read_text()) if path.exists() else []


def _argument(kernel: str, site: Site) -> str:
    """The written argument for an equivalent: matched by kernel, kind and a pattern on the instruction before the change."""
    for entry in _arguments():
        if kernel in entry["kernels"] and entry["kind"] == site.kind and re.fullmatch(entry["pattern"], site.before):
            if "after" in entry and not re.fullmatch(entry["after"], site.after):
                continue
            return entry["argument"]
    return ""


def sample(kernels: Iterable[str], count: int, seed: int) -> list[tuple[str, list[Site]]]:
    """`count` sites drawn over all kernels, the same for the same seed."""
    pool = [(kernel, site) for kernel in kernels for site in sites(launches(kernel)[0].ptx)]
    picked = np.random.default_rng(seed).choice(len(pool), size=min(count, len(pool)), replace=False)
    drawn: dict[str, list[Site]] = {}
    for index in sorted(picked):
        drawn.setdefault(pool[index][0], []).append(pool[index][1])
    return list(drawn.items())


def score(results: Sequence[Verdict]) -> tuple[float, float]:
    """The share reported of all but equivalents, and the share of equivalents."""
    count = Counter(v.outcome for v in results)
    rest = len(results) - count["equivalent"]
    return count["reported"] / max(rest, 1), count["equivalent"] / max(len(results), 1)


def table(results: Sequence[Verdict]) -> str:
    """Counts by kernel and by kind, as Markdown."""
    outcomes = ("reported", "wrong only", "equivalent", "survived")
    lines = ["| | sites | " + " | ".join(outcomes) + " | reported of all but equivalents |", "|---|" + "---|" * (len(outcomes) + 2)]
    groups = [(v.kernel for v in results), (v.site.kind for v in results)]
    for keys in groups:
        listed = list(keys)
        for key in dict.fromkeys(listed):
            lines.append(_row(key, [v for v, k in zip(results, listed, strict=True) if k == key], outcomes))
    return "\n".join([*lines, _row("**all**", results, outcomes)])


def _row(name: str, results: Sequence[Verdict], outcomes: Sequence[str]) -> str:
    count = Counter(v.outcome for v in results)
    cells = " | ".join(str(count[outcome]) for outcome in outcomes)
    return f"| {name} | {len(results)} | {cells} | {score(results)[0]:.1%} |"


def report(results: Sequence[Verdict], seconds: float) -> str:
    reported, equivalent = score(results)
    checks = Counter(v.detail.split()[0] for v in results if v.outcome == "reported")
    parts = [
        "# Mutations of Triton's PTX, and what the simulator says",
        "",
        f"{len(results)} sites in {len({v.kernel for v in results})} kernels (Triton {corpus.TRITON_VERSION}, sm_80), all checks, "
        f"{ORDERS} adversarial orders; {seconds:.0f} s. Reported: {reported:.1%} of all but equivalents; equivalents: "
        f"{equivalent:.1%} of all sites.",
        "",
        table(results),
        "",
        "Told by: " + ", ".join(f"{check} {n}" for check, n in checks.most_common()) + ".",
    ]
    for outcome in ("wrong only", "survived", "equivalent"):
        listed = [v for v in results if v.outcome == outcome]
        if listed:
            parts += ["", f"## {outcome.capitalize()}", ""]
            parts += [f"- {v.kernel}: {v.site}. {' '.join(v.detail.split())}" for v in listed]
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="oracles.mutations", description=__doc__.split("\n")[0])
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS), metavar="NAME")
    parser.add_argument("--sample", type=int, help="draw this many sites instead of all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--report", type=Path, help="where the report goes (all sites: bench/mutations.md)")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    drawn = (
        sample(options.kernels, options.sample, options.seed) if options.sample else [(kernel, None) for kernel in options.kernels]
    )
    results: list[Verdict] = []
    for kernel, chosen in drawn:
        results += verdicts(kernel, chosen)
        print(
            _row(kernel, [v for v in results if v.kernel == kernel], ("reported", "wrong only", "equivalent", "survived")),
            f"{time.perf_counter() - start:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    text = report(results, time.perf_counter() - start)
    path = options.report or (None if options.sample else BENCH / "mutations.md")
    if path is not None:
        path.write_text(text)
    print(text)
    reported, equivalent = score(results)
    return 0 if reported >= 0.95 and equivalent <= 0.10 else 1


if __name__ == "__main__":
    sys.exit(main())
