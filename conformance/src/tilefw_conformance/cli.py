"""`tilefw conformance`: run the suite on targets, tell what did not pass, write the report as it comes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_execution, add_json, execution, literals, parser
from tilefw.cli.output import print_json
from tilefw.kernels.stages import STAGES
from tilefw.runtime.names import suggest
from tilefw_conformance import EDITION, edition, quantities
from tilefw_conformance.campaign import EMPTY, Campaign, refuse_lone_resume, shown
from tilefw_conformance.case import LEVELS, Case
from tilefw_conformance.running import Plan, TargetRun, targets
from tilefw_conformance.workers.supervisor import WorkerLimits

EPILOG = "`tilefw conformance verify`, `diff` and `page` check, compare and show reports"
_SEVERITY = (0, EMPTY, 1)  # of exit codes, when several targets ran


def main(argv: list[str]) -> int:
    """Exit code 0 when every case passed or is rightly refused, or is of other parts, 1 when one did not pass, 5 when none did, 130
    when interrupted."""
    if argv and not argv[0].startswith("-"):
        return _command(argv[0])(argv[1:])
    args = _parser().parse_all(argv)
    refuse_lone_resume(args.resume, args.report)
    ran = list(_each(_plan(args), targets(args.target), args, argv))
    if args.list:
        return _list(ran, args.json)
    if args.json:
        print_json("conformance", {"runs": [shown(one) for one in ran]})
    _merge(args.report, [one.folder for one in ran if one.folder and one.footer])
    return max((one.exit_code for one in ran), key=_SEVERITY.index, default=EMPTY)


def _command(word: str) -> Callable[[list[str]], int]:
    from tilefw_conformance.report.commands import COMMANDS

    if word not in COMMANDS:
        raise UsageError(
            f"`tilefw conformance` has no command '{word}'", code="TFW0911", help=suggest(word, COMMANDS, what="commands")
        )
    return COMMANDS[word]


def _each(plan: Plan, names: Sequence[str], args: argparse.Namespace, argv: Sequence[str]) -> Iterator[Campaign]:
    """The run on each target; with several, each has its report in a folder of its own."""
    cases: tuple[Case, ...] = ()
    for target in names:
        with TargetRun(plan, target) as run:
            cases = cases or plan.cases()  # read while the first worker starts
            folder = args.report and (args.report if len(names) == 1 else os.path.join(args.report, run.target))
            one = Campaign(run, cases, folder, quiet=args.json)
            if not one.selected:
                print(f"{run.target}: no case was selected{run.elsewhere(cases)}", file=sys.stderr)
            elif not args.list:
                one.run(argv, resume=args.resume)
                if args.update_expectations is not None:
                    print(one.update(args.update_expectations or None), file=sys.stderr)
            yield one


def _merge(folder: str | None, parts: Sequence[str]) -> None:
    """One page of several targets' reports, above the folders of each."""
    if folder and len(parts) > 1:
        from tilefw_conformance.report.derived import merge

        print(f"all targets: {merge(folder, parts)}", file=sys.stderr)


def _parser() -> Parser:
    parse = parser("conformance", "run the conformance suite on a target", EPILOG)
    parse.add_argument("--target", required=True, action="append", metavar="T", help="repeatable; `all` is each that executes")
    parse.add_argument("--level", default=LEVELS[0], choices=LEVELS, help="core, or core and extended, … (default: core)")
    parse.add_argument("--stage", default="compare", choices=STAGES, help="stop after it (default: compare, the last)")
    parse.add_argument("-k", dest="expression", metavar="EXPR", help="only ids that fit: words or globs with and, or, not")
    parse.add_argument("--part", type=quantities.part, metavar="I/N", help="one of N parts of them, the same in every run")
    parse.add_argument("--edition", default=EDITION, metavar="E", help=f"the suite as it was in an edition (default: {EDITION})")
    parse.add_argument("--pack", metavar="NAME", help="another body of cases instead of the suite's own")
    parse.add_argument("--list", action="store_true", help="print the ids that would run, and run nothing")
    parse.add_argument("--jobs", type=quantities.count, metavar="N", help="worker processes at most (default: one a processor)")
    parse.add_argument("--scheduler", metavar="ADDRESS", help="run on the workers of a Dask scheduler (tcp://…)")
    parse.add_argument("--time-limit", type=quantities.seconds, metavar="SECONDS", help="of one case (default: 300)")
    parse.add_argument("--memory-limit", type=quantities.size, metavar="SIZE", help="of one worker, as 512M or 4G (default: 4G)")
    parse.add_argument("--report", metavar="DIR", help="write the report there, as results come")
    parse.add_argument("--resume", action="store_true", help="go on with the interrupted report in DIR")
    parse.add_argument("--artifacts", action="store_true", help="keep the machine code of cases that pass, too")
    audit = "also run cases that need unclaimed capabilities, and list those that could be claimed"
    parse.add_argument("--audit-capabilities", action="store_true", help=audit)
    parse.add_argument(
        "--update-expectations", nargs="?", const="", metavar="FILE",
        help="write what fails now into the plugin's expectations, or into FILE",
    )
    add_assignments(parse, "--option", "launch keywords that shape code, and the targets' own")
    add_execution(parse)
    add_json(parse)
    return parse


def _plan(args: argparse.Namespace) -> Plan:
    usual = WorkerLimits()
    return Plan(
        level=args.level, expression=args.expression, part=args.part, edition=edition.checked(args.edition),
        pack=args.pack, stage=args.stage,
        execution=execution(args), keywords=literals(args.option), artifacts=args.artifacts, audit=args.audit_capabilities,
        scheduler=args.scheduler, jobs=args.jobs or quantities.processors(),
        limits=WorkerLimits(case=args.time_limit or usual.case, memory=args.memory_limit or usual.memory),
    )


def _list(ran: Sequence[Campaign], as_json: bool) -> int:
    """The ids that would run on any of the targets, each once."""
    ids = list(dict.fromkeys(case.id for one in ran for case in one.selected))
    if as_json:
        print_json("cases", {"cases": ids})
    else:
        for name in ids:
            print(name)
    return 0 if ids or any(one.of_other_parts for one in ran) else EMPTY
