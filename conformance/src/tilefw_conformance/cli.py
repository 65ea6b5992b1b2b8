"""`tilefw conformance`: run the suite on a target, print what did not pass, write the report."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.cli.arguments import add_execution, add_json, execution, parser
from tilefw.cli.output import print_json
from tilefw.runtime import config
from tilefw.runtime.loader import Target, find, registry
from tilefw_conformance.case import LEVELS, Case, bundled
from tilefw_conformance.jobs import Line, lines, processors
from tilefw_conformance.outcomes import OUTCOMES
from tilefw_conformance.report import records
from tilefw_conformance.report.totals import footer
from tilefw_conformance.report.writing import Writer
from tilefw_conformance.selection import select
from tilefw_conformance.suite import expectations_of, faults

# Parts of the full suite that are not there yet, refused by name.
_LATER_WORDS = {"verify": "checking a report", "diff": "comparing two reports"}
_LATER_OPTIONS = ("--stage", "--resume", "--edition", "--update-expectations", "--audit-capabilities", "--html")


def main(argv: list[str]) -> int:
    """Exit code 0 when every case passed or is rightly unsupported, 1 when one did not, 5 when none was selected."""
    _refuse(argv)
    parse = parser("conformance", "run the conformance suite on a target")
    parse.add_argument("--target", required=True, metavar="T", help="the target under test; `all` for every one that executes")
    parse.add_argument("--level", default="core", choices=LEVELS, help="core, or core and extended, … (default: core)")
    parse.add_argument("-k", dest="expression", metavar="EXPR", help="only ids that fit: words or globs with and, or, not")
    parse.add_argument("--list", action="store_true", help="print the ids that would run, and run nothing")
    parse.add_argument("--jobs", type=_processes, metavar="N", help="processes at most (default: one a processor)")
    parse.add_argument("--report", metavar="DIR", help="write report.jsonl there")
    add_execution(parse)
    add_json(parse)
    args = parse.parse_all(argv)

    targets = [find(args.target)] if args.target != "all" else [t for t in registry().all() if "simulate" in t.info.provides]
    cases = bundled()
    selected = select(cases, args.level, args.expression)
    if args.list:
        if args.json:
            print_json("cases", {"cases": [case.id for case in selected]})
        else:
            print("\n".join(case.id for case in selected))
        return 0 if selected else 5
    if not selected:
        print("no case was selected", file=sys.stderr)
        return 5
    runs = [_run(target, cases, selected, args, argv) for target in targets]
    if args.json:
        print_json("conformance", {"runs": [run for run, _ in runs]})
    return 0 if all(good for _, good in runs) else 1


def _run(
    target: Target, cases: Sequence[Case], selected: Sequence[Case], args: argparse.Namespace, argv: Sequence[str]
) -> tuple[dict[str, Any], bool]:
    """The suite on one target: its report's header, results and footer, and whether all is well."""
    known = expectations_of(target)
    wrong = faults(known, cases, target)
    for error in wrong:
        print(error, file=sys.stderr)
    executor = "ref" if target.name == "reference" else config.resolve(config.settings(**execution(args))).executor
    said = {name: value for name, value in execution(args).items() if name in ("checks", "budget", "numerics")}
    facts = records.target(target, executor, known)
    header = records.header([facts], level=args.level, seed=args.seed, expression=args.expression, options=said, argv=argv)
    folder = args.report if args.report and args.target != "all" else args.report and os.path.join(args.report, target.name)
    writer = Writer(folder, header, map(records.case, selected)) if folder else None
    start = time.perf_counter()
    told: list[Line] = []
    for line in lines(selected, target, known, execution(args), args.jobs or processors()):
        told.append(_told(line))
        if writer:
            writer.add(line.record)
    seconds = time.perf_counter() - start
    results = [line.record for line in told]
    last = writer.finish(seconds) if writer else footer(results, seconds, "")
    if not args.json:
        print(_summary(target.name, executor, results, seconds))
        if writer:
            print(f"report: {writer.path}")
    return {"header": header, "results": results, "footer": last}, not wrong and all(line.good for line in told)


def _processes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of processes")
    return int(text)


def _refuse(argv: list[str]) -> None:
    if argv and argv[0] in _LATER_WORDS:
        message = f"`tilefw conformance {argv[0]}` ({_LATER_WORDS[argv[0]]}) is not there yet"
        raise UnsupportedError(message, code="TFW0956", exit_code=2)
    for word in argv:
        option = word.partition("=")[0]
        if option in _LATER_OPTIONS:
            raise UnsupportedError(f"`tilefw conformance {option}` is not there yet", code="TFW0956", exit_code=2)


def _told(line: Line) -> Line:
    """Told as soon as it is known, on stderr: a run can take a minute."""
    if not line.good:
        print(line.message + "\n", file=sys.stderr)
    return line


def _summary(target: str, executor: str, results: Sequence[Mapping[str, Any]], seconds: float) -> str:
    counts: Counter[str] = Counter(one["outcome"] for one in results)
    shown = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
    ratios = [
        (one["error_over_bound"], one["case"]) for one in results
        if one["outcome"] in ("pass", "xpass") and one["error_over_bound"] is not None
    ]
    worst = f"\nlargest error over bound of a pass: {max(ratios)[0]:.3f} ({max(ratios)[1]})" if ratios else ""
    claimed = sum(1 for one in results if one["outcome"] != "unsupported")
    return (
        f"{target} ({executor}): {shown}; {counts['pass']} of {claimed} claimed pass, "
        f"{claimed} of {len(results)} cases claimed; {seconds:.1f} s{worst}"
    )
