"""`tilefw conformance verify`, `diff` and `page`: what one does with reports that are there."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict

from tilefw.cli.arguments import add_json, parser
from tilefw.cli.output import print_json
from tilefw_conformance.report.derived import write
from tilefw_conformance.report.difference import KINDS, Change, Difference, difference
from tilefw_conformance.report.page import page
from tilefw_conformance.report.reading import Report, all_of, read
from tilefw_conformance.report.wording import EXECUTORS


def verify(argv: list[str]) -> int:
    """Read reports as strictly as can be, and say what they hold."""
    parse = parser("conformance verify", "check that reports are complete and unchanged since their run")
    parse.add_argument("reports", nargs="+", metavar="REPORT", help="report.jsonl, or the folder that holds it")
    add_json(parse)
    args = parse.parse_all(argv)
    reports = all_of(args.reports)
    if args.json:
        print_json("verify", {"reports": [{"file": one.file, "footer": one.footer} for one in reports]})
    else:
        print("\n".join(_whole(one) for one in reports))
    return 0


def diff(argv: list[str]) -> int:
    """Exit code 1 where something was well, or was not there, and is not well now."""
    parse = parser("conformance diff", "compare two reports, result by result")
    parse.add_argument("old", metavar="A", help="the older report")
    parse.add_argument("new", metavar="B", help="the newer one")
    kinds = ", ".join(f"{letter} {word}" for letter, word in KINDS.items())
    parse.add_argument("--filter", type=_kinds, default="ADC", metavar="LETTERS", help=f"which to list (default: ADC): {kinds}")
    add_json(parse)
    args = parse.parse_all(argv)
    found = difference(read(args.old), read(args.new))
    if args.json:
        shown = [{**asdict(one), "worse": one.worse, "better": one.better} for one in found.of(args.filter)]
        print_json("diff", {"counts": found.counts, "conditions": list(found.conditions), "changes": shown})
    else:
        print("\n".join(_told(found, args.filter)))
    return 1 if any(one.worse for one in found.changes) else 0


def make_page(argv: list[str]) -> int:
    """One page of one or more reports, with what changed since an older one."""
    parse = parser("conformance page", "make one HTML page of reports")
    parse.add_argument("reports", nargs="+", metavar="REPORT", help="reports of different targets, merged")
    parse.add_argument("--out", required=True, metavar="FILE", help="the page")
    parse.add_argument("--against", action="append", default=[], metavar="OLD", help="an older report to compare with; repeatable")
    args = parse.parse_all(argv)
    text = page(all_of(args.reports), all_of(args.against))
    print(f"{write(args.out, text)}: {len(text.encode()) / 1000:.0f} KB")
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {"verify": verify, "diff": diff, "page": make_page}


def _kinds(text: str) -> str:
    if not text or set(text) - set(KINDS):
        raise argparse.ArgumentTypeError(f"'{text}' is not a choice of the letters {', '.join(KINDS)}")
    return text


def _whole(report: Report) -> str:
    executed = ", ".join(f"{one['name']} ({EXECUTORS[one['executor']]})" for one in report.header["targets"])
    return (
        f"{report.file}: whole; edition {report.header['edition']}, {report.footer['cases']} results of {len(report.cases)} cases "
        f"on {executed}; digest {report.footer['digest'][:16]}"
    )


def _told(found: Difference, kinds: str) -> list[str]:
    lines = [_line(one) for one in found.of(kinds)]
    worse, better = sum(one.worse for one in found.changes), sum(one.better for one in found.changes)
    counted = ", ".join(f"{n} {KINDS[kind]}" for kind, n in found.counts.items())
    return [*lines, *(f"the runs differ in {text}" for text in found.conditions), f"{counted}; {worse} worse, {better} better"]


def _line(one: Change) -> str:
    mark = "worse" if one.worse else "better" if one.better else ""
    return f"{one.kind} {one.target} {one.case}: {one.old or '-'} -> {one.new or '-'}" + (f" ({mark})" if mark else "")
