"""The mutation engine: break a kernel's code at one site, run it with all checks, and see whether the simulator tells.

A mutant is run on all launches of its kernel in plain order, then under adversarial orders. It is *reported* when a finding names
an instruction, *wrong only* when the result is wrong and nothing was found, *equivalent* when all orders give the right result
without a finding and an argument covers it (proved from the code by the instruction set's rules, or written in
bench/equivalents.yaml), and *survived* when there is none. A campaign may have another judge than the simulator, as that of
allocations has (`oracles.allocated_kernel`). The campaigns themselves, and the command that runs them, stand with the tests of each
plugin.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from oracles import mutation_report, verdict_log
from oracles.site import Site
from oracles.subject import Sited, Subject
from oracles.verdict_log import KernelVerdicts, Verdict, key
from tilefw.api import KernelError

ORDERS = 20  # adversarial orders that a written equivalent must survive; fewer where a kernel has several launches
ORDERS_PROVED = 3  # and one that is proved: they would show a mistake in the proof's rules
BUDGET_FACTOR = 6  # a mutant may execute this many times what the right kernel does
BENCH = Path(__file__).resolve().parents[1] / "bench"
_ENTRY = frozenset({"corpus", "kernels", "kind", "pattern", "after", "following", "behind", "argument"})


def verdicts(
    subject: Subject, chosen: Sequence[Site] | None = None, orders: int = ORDERS, proved: int = ORDERS_PROVED
) -> Iterator[Verdict]:
    """Every site of the subject (or the chosen ones) tried on all of its launches, under so many orders, of those that are proved
    equivalent `proved`."""
    budgets = [_instructions(subject, launch) * BUDGET_FACTOR for launch in range(subject.launches)]
    for site in subject.sites() if chosen is None else chosen:
        outcome, detail = _try(site, subject, budgets, orders, proved)
        yield Verdict(subject.name, site, outcome, detail)


def _instructions(subject: Subject, launch: int) -> int:
    run = subject.run(launch, subject.parse(subject.text), 0, None)
    if run.findings or run.mismatch:
        raise AssertionError(f"{subject.name}, launch {launch}, is not clean before any mutation: {run.findings} {run.mismatch}")
    return run.instructions


def _try(site: Site, subject: Subject, budgets: Sequence[int], orders: int, proved: int) -> tuple[str, str]:
    try:
        code = subject.parse(site.code)
    except KernelError as error:
        return "reported", f"{error.code} {error.message}"
    wrong, due = "", orders
    proof: str | None = None
    for seed in range(1 + orders):
        if seed == 1:  # a proof takes longer than a run, and most mutants are reported in the first one
            proof = subject.proof(site)
            due = min(orders, proved) if proof else orders
        if seed > due:
            break
        for launch, budget in enumerate(budgets):
            found, mismatch = _run(subject, launch, code, seed, budget)
            if found:
                return "reported", found
            wrong = wrong or mismatch
        if wrong:
            return "wrong only", wrong
    argument = (subject.proof(site) if proof is None else proof) or _argument(subject, site)
    return ("equivalent", argument) if argument else ("survived", "")


def _run(subject: Subject, launch: int, code: Any, seed: int, budget: int) -> tuple[str, str]:
    """The first finding that names an instruction, and the first mismatch; each empty when there is none."""
    try:
        run = subject.run(launch, code, seed, budget)
    except KernelError as error:
        return f"{error.code} {error.message}", ""
    for finding in run.findings:
        if finding.instruction:
            line = finding.code_place.line if finding.code_place else 0  # none where bytes were executed
            where = f" at line {line}" if line else ""
            return f"{finding.check} {finding.code}: `{finding.instruction}`{where}", ""
    return "", run.mismatch


@functools.cache
def _arguments() -> list[dict[str, Any]]:
    entries = yaml.safe_load((BENCH / "equivalents.yaml").read_text())
    for entry in entries:
        if unknown := entry.keys() - _ENTRY:  # a pattern by another name would be no condition at all
            raise AssertionError(f"equivalents.yaml: {entry['corpus']} {entry['kind']}: unknown {', '.join(sorted(unknown))}")
    return entries


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _argument(subject: Subject, site: Site) -> str:
    """The written argument for an equivalent: matched by kernel, kind and patterns on the instruction before the change, on the
    changed one, on the one that follows, and on all that follow (`behind`, as far as the pattern goes)."""
    for entry in _arguments():
        if subject.corpus not in _listed(entry["corpus"]) or subject.name not in entry["kernels"] or entry["kind"] != site.kind:
            continue
        texts = {"pattern": site.before, "after": site.after, "following": site.following}
        if all(re.fullmatch(entry.get(key, ".*"), text) for key, text in texts.items()) and (
            "behind" not in entry or re.match(entry["behind"], "; ".join(site.behind))
        ):
            return entry["argument"]
    return ""


def sample(subjects: Iterable[Any], count: int, seed: int) -> list[tuple[Any, list[Any]]]:
    """`count` sites drawn over all subjects, which are `Sited`; the same for the same seed."""
    found = {subject.name: (subject, subject.sites()) for subject in subjects}
    picked = _drawn({name: len(sites) for name, (_, sites) in found.items()}, count, seed)
    return [(found[name][0], [found[name][1][index] for index in chosen]) for name, chosen in picked.items()]


def _drawn(sites: Mapping[str, int], count: int, seed: int) -> dict[str, list[int]]:
    """The indices of `count` sites by subject, drawn from as many as each has."""
    pool = [(name, index) for name, there in sites.items() for index in range(there)]
    picked = np.random.default_rng(seed).choice(len(pool), size=min(count, len(pool)), replace=False)
    drawn: dict[str, list[int]] = {}
    for name, index in (pool[p] for p in sorted(picked)):
        drawn.setdefault(name, []).append(index)
    return drawn


def score(results: Sequence[Verdict]) -> tuple[float, float]:
    """The share reported of all but equivalents, and the share of equivalents."""
    count = Counter(v.outcome for v in results)
    rest = len(results) - count["equivalent"]
    return count["reported"] / max(rest, 1), count["equivalent"] / max(len(results), 1)


def noticed(results: Sequence[Verdict]) -> float:
    """The share reported or wrong of all but equivalents."""
    count = Counter(v.outcome for v in results)
    return 1 - count["survived"] / max(len(results) - count["equivalent"], 1)


@dataclass(frozen=True)
class Campaign:
    """Whose code is broken, under how many orders, where the full report goes, and what result is asked for.

    `judge(subject, sites, orders)` gives the verdicts, in words `judged`.
    """

    kernels: Sequence[str]
    subject: Callable[[str], Sited]
    orders: int
    report: str
    title: str
    accepted: Callable[[Sequence[Verdict]], bool]
    judge: Callable[[Any, Sequence[Any], int], Iterator[Verdict]] = verdicts
    judged: str = ""

    @property
    def means(self) -> str:
        return self.judged or f"all checks, {self.orders} adversarial orders"


def main(campaigns: Mapping[str, Campaign], arguments: Sequence[str] | None = None) -> int:
    """The command line of a plugin's campaigns; the exit status says whether the result is what is asked for."""
    parser = argparse.ArgumentParser(prog="mutations", description=__doc__.split("\n")[0])
    parser.add_argument("--of", choices=list(campaigns), default=next(iter(campaigns)), help="whose code")
    parser.add_argument("--kernels", nargs="+", metavar="NAME")
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help="sites of these kinds alone")
    parser.add_argument("--sample", type=int, help="draw this many sites instead of all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes; each takes a kernel at a time")
    parser.add_argument("--report", type=Path, help="where the report goes (of a full campaign: the folder bench)")
    parser.add_argument("--log", type=Path, help="of the verdicts, a line for each kernel; it is gone on with")
    parser.add_argument("--page-alone", action="store_true", help="run nothing: write the page of the log")
    options = parser.parse_args(arguments)
    campaign = campaigns[options.of]
    found = verdict_log.read(options.log, campaign.kernels)
    with ProcessPoolExecutor(options.jobs) as pool:
        work = [] if options.page_alone else _work(campaign, options)
        for done in as_completed([pool.submit(_tried, campaign, name, chosen, found.get(name)) for name, chosen in work]):
            its = done.result()
            if its == found.get(its.kernel):
                continue
            found[its.kernel] = its
            if options.log is not None:
                verdict_log.append(options.log, its)
            print(mutation_report.row(its.kernel, its.verdicts), f"{its.seconds:.0f} s", file=sys.stderr, flush=True)
    wanted = options.kernels or campaign.kernels
    tried, missing = [found[name] for name in wanted if name in found], [name for name in wanted if name not in found]
    results = [verdict for its in tried for verdict in its.verdicts]
    title = campaign.title + (f": a sample of {options.sample} sites, seed {options.seed}" if options.sample else "")
    text = mutation_report.report(title, results, campaign.means, sum(its.seconds for its in tried), missing)
    partial = options.sample or options.kernels or options.kinds
    path = options.report or (None if partial else BENCH / campaign.report)
    if path is not None:
        path.write_text(text)
    print(text)
    return 0 if campaign.accepted(results) else 1


def _work(campaign: Campaign, options: argparse.Namespace) -> list[tuple[str, list[int] | None]]:
    """(kernel, indices of sites): what one process does at a time; None stands for all sites."""
    kernels = options.kernels or campaign.kernels
    if not options.sample and not options.kinds:
        return [(kernel, None) for kernel in kernels]
    found = {kernel: campaign.subject(kernel).sites() for kernel in kernels}
    if options.sample:
        drawn = _drawn({kernel: len(sites) for kernel, sites in found.items()}, options.sample, options.seed)
    else:
        drawn = {kernel: [i for i, site in enumerate(sites) if site.kind in options.kinds] for kernel, sites in found.items()}
    return [(kernel, chosen) for kernel, chosen in drawn.items()]


def _tried(campaign: Campaign, kernel: str, chosen: list[int] | None, done: KernelVerdicts | None) -> KernelVerdicts:
    """The verdicts on a kernel's sites; those of a log on the same code stand, but for survivors, which may have an argument or a
    check since."""
    start = time.process_time()
    subject = campaign.subject(kernel)
    sites = subject.sites()
    code = verdict_log.digest(sites)
    if done is not None and done.code != code:
        done = None
    found = {} if done is None else {key(v.site): v for v in done.verdicts if v.outcome != "survived"}
    wanted = sites if chosen is None else [sites[index] for index in chosen]
    left = [site for site in wanted if key(site) not in found]
    if done is not None and not left:
        return done
    tried = campaign.judge(subject, left, campaign.orders)
    found |= {key(v.site): v for v in tried}
    seconds = time.process_time() - start + (0 if done is None else done.seconds)
    return KernelVerdicts(kernel, tuple(found[key(site)] for site in wanted), seconds, code)
