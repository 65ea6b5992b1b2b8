"""`tilefw trace NAME|FILE --target T -o trace.json|.svg`: what each queue of the machine did in which cycle of a launch."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_execution, add_json, execution, is_file, parser
from tilefw.cli.output import print_json, write_file

if TYPE_CHECKING:
    from tilefw.api.timeline import Timeline
    from tilefw.runtime.launch import LaunchResult

SUFFIXES = (".json", ".svg")


def main(summary: str, argv: list[str]) -> int:
    args = _parser(summary).parse_all(argv)
    suffix = os.path.splitext(args.output)[1] if args.output else ""
    if args.output and suffix not in SUFFIXES:
        raise UsageError(
            f"'{args.output}' ends neither in .json nor in .svg", code="TFW0917",
            help=".json is for ui.perfetto.dev, .svg a picture",
        )
    result = _of_file(args) if args.launch or is_file(args.kernel) else _of_library(args)
    assert result.timeline is not None
    title = f"{result.kernel} on {result.target}"
    if args.output:
        write_file(args.output, _encoded(suffix, title, result, result.timeline))
        how = "open it at https://ui.perfetto.dev" if suffix == ".json" else "any browser shows it"
        print(f"the timeline is in {args.output}: {how}", file=sys.stderr)
    if args.json:
        print_json("trace", _to_json(result, result.timeline))
    else:
        print(_rendered(title, result, result.timeline))
    return 0


def _parser(summary: str) -> Parser:
    parse = parser("trace", summary)
    parse.add_argument("kernel", help="a library kernel (see `tilefw kernels`), or a file of machine code with --launch")
    parse.add_argument("--target", metavar="T", help="the chip (default: TILEFW_TARGET, a plugin's, or reference)")
    parse.add_argument("-o", "--output", metavar="FILE", help="FILE.json for ui.perfetto.dev, FILE.svg for a picture")
    parse.add_argument("--launch", metavar="FILE", help="the launch file of machine code, as `tilefw simulate` takes it")
    add_assignments(parse, "--param", "parameters of the library kernel")
    add_assignments(parse, "--option", "launch keywords that shape code, and the target's own")
    add_execution(parse)
    add_json(parse)
    return parse


def _of_library(args: argparse.Namespace) -> LaunchResult:
    from tilefw.cli.arguments import keywords
    from tilefw.kernels.spec import load
    from tilefw.kernels.traced import traced

    return traced(load(args.kernel), dict(args.param), args.target, keywords=keywords(args), **execution(args))


def _of_file(args: argparse.Namespace) -> LaunchResult:
    for name in ("param", "option"):
        if getattr(args, name):
            raise UsageError(f"--{name} does not go with a file of machine code", code="TFW0917")
    if not args.launch:
        raise UsageError(
            f"how is {args.kernel} launched?", code="TFW0911", help="give --launch FILE; `tilefw simulate --help` shows such a file"
        )
    from tilefw.cli.simulate import load
    from tilefw.runtime import launchfile
    from tilefw.runtime.launch import require_timeline

    module = load(args.kernel, args.target)
    require_timeline(module.target.info)
    launch = launchfile.read(args.launch)
    return module.only(launch.kernel).launch(
        launch.grid, launch.args, block=launch.block, dynamic_shared=launch.dynamic_shared, timeline=True, **execution(args)
    )


def _encoded(suffix: str, title: str, result: LaunchResult, timeline: Timeline) -> bytes:
    if suffix == ".svg":
        from tilefw.runtime.timeline_svg import picture

        return picture(timeline, title, result.utilisation).encode()
    from tilefw.runtime.timeline_trace import trace_events

    return trace_events(timeline, title, result.utilisation).encode()


def _rendered(title: str, result: LaunchResult, timeline: Timeline) -> str:
    """The figures of the whole, for people."""
    from tilefw.runtime.diagnostics import render_utilisation

    spans = sum(len(row.spans) for row in timeline.rows)
    facts = [f", {name} {value:,}" if isinstance(value, int) else f", {name} {value}" for name, value in timeline.facts.items()]
    return "\n".join([
        f"{title} ({result.executor}): {timeline.cycles:,} cycles{''.join(facts)}",
        f"  {len(timeline.rows)} queues with {spans:,} spans",
        "  " + render_utilisation(result.utilisation),
    ])


def _to_json(result: LaunchResult, timeline: Timeline) -> dict[str, Any]:
    from tilefw.runtime.diagnostics import utilisation_to_json

    rows = [
        {
            "name": row.name, "group": row.group, "spans": len(row.spans), "busy": sum(span.busy for span in row.spans),
            "facts": dict(row.facts),
        }
        for row in timeline.rows
    ]
    return {
        "kernel": result.kernel, "target": result.target, "executor": result.executor, "grid": list(result.grid),
        "cycles": timeline.cycles, "facts": dict(timeline.facts), "rows": rows,
        "utilisation": utilisation_to_json(result.utilisation),
    }
