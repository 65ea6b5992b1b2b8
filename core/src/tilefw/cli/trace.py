"""`tilefw trace NAME|FILE.py:FN|FILE --target T -o trace.json|.svg`: what each queue of the machine did in which cycle of a launch.

A simulator that counts cycles tells (`provides` has `timeline`). Elsewhere the model of time does, of one processor.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_execution, add_json, execution, is_file, parser, refuse
from tilefw.cli.output import print_json, write_file
from tilefw.cli.stated_launch import STATED, add_stated, function_launch, named_function

if TYPE_CHECKING:
    from tilefw.api.timeline import Timeline, Utilisation
    from tilefw.runtime.config import Resolved
    from tilefw.runtime.launch import LaunchResult
    from tilefw.runtime.launchable import Launchable
    from tilefw.runtime.plugins.loader import Target

SUFFIXES = (".json", ".svg")
MODEL = "the model of time"


@dataclass(frozen=True, slots=True)
class _Traced:
    """A launch's timeline; `executor` is who tells it, `notes` what readers should know."""

    kernel: str
    target: str
    executor: str
    grid: tuple[int, int, int]
    timeline: Timeline
    utilisation: tuple[Utilisation, ...]
    notes: tuple[str, ...] = ()


def main(summary: str, argv: list[str]) -> int:
    args = _parser(summary).parse_all(argv)
    suffix = os.path.splitext(args.output)[1] if args.output else ""
    if args.output and suffix not in SUFFIXES:
        raise UsageError(
            f"'{args.output}' ends neither in .json nor in .svg", code="TFW0917",
            help=".json is for ui.perfetto.dev, .svg a picture",
        )
    result = _traced(args)
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
    parse.add_argument(
        "kernel", help="a library kernel (see `tilefw kernels`), FILE.py:FUNCTION, or a file of machine code with --launch"
    )
    parse.add_argument("--target", metavar="T", help="the chip (default: TILEFW_TARGET, a plugin's, or reference)")
    parse.add_argument("-o", "--output", metavar="FILE", help="FILE.json for ui.perfetto.dev, FILE.svg for a picture")
    parse.add_argument("--launch", metavar="FILE", help="the launch file of machine code, as `tilefw simulate` takes it")
    add_assignments(parse, "--param", "parameters of the library kernel")
    add_stated(parse)
    add_assignments(parse, "--option", "launch keywords that shape code, and the target's own")
    add_execution(parse)
    add_json(parse)
    return parse


def _traced(args: argparse.Namespace) -> _Traced:
    named = named_function(args.kernel)
    if named is not None:
        refuse(args, ("launch", "param"), f"a function of a Python file, which {args.kernel} is")
        return _of_function(args, *named)
    refuse(args, STATED, "what says its launch itself; FILE.py:FUNCTION takes it")
    return _of_file(args) if args.launch or is_file(args.kernel) else _of_library(args)


def _of_library(args: argparse.Namespace) -> _Traced:
    from tilefw.cli.arguments import keywords
    from tilefw.kernels.launchable import launchable
    from tilefw.kernels.spec import load

    spec = load(args.kernel)
    target, resolved = _chosen(args)
    # The model wants to know registers, which only assembled code tells; an executor is asked what it wants.
    assemble = True if _is_modelled(target) else None
    return _of_launch(launchable(spec, dict(args.param), target, resolved, keywords(args), assemble))


def _of_function(args: argparse.Namespace, path: str, name: str) -> _Traced:
    from tilefw.cli.function_launch import launch_of_function

    _, resolved = _chosen(args)
    return _of_launch(launch_of_function(function_launch(args, path, name), resolved))


def _of_file(args: argparse.Namespace) -> _Traced:
    refuse(args, ("param", "option"), "a file of machine code")
    if not args.launch:
        raise UsageError(
            f"how is {args.kernel} launched?", code="TFW0911", help="give --launch FILE; `tilefw simulate --help` shows such a file"
        )
    from tilefw.cli.simulate import load
    from tilefw.kernels.launchable import launchable_file
    from tilefw.runtime import config, launchfile

    module = load(args.kernel, args.target)
    _require_told(module.target)
    launch = launchfile.read(args.launch)
    if _is_modelled(module.target):
        return _of_launch(launchable_file(module, launch, config.resolve(config.settings(module.target.name, **execution(args)))))
    result = module.only(launch.kernel).launch(
        launch.grid, launch.args, block=launch.block, dynamic_shared=launch.dynamic_shared, timeline=True, **execution(args)
    )
    return _of_result(result)


def _chosen(args: argparse.Namespace) -> tuple[Target, Resolved]:
    """The target, whose launches have a timeline, and how they are made."""
    from tilefw.runtime import config
    from tilefw.runtime.plugins.loader import find_target

    resolved = config.resolve(config.settings(args.target, **execution(args)))
    target = find_target(resolved.target)
    _require_told(target)
    return target, resolved


def _is_modelled(target: Target) -> bool:
    """Whether it is the model that tells what happens when, and not the target's own simulator."""
    return "timeline" not in target.info.provides


def _require_told(target: Target) -> None:
    """Raise UnsupportedError TFW0645 for a target that has neither."""
    from tilefw.runtime.launch import require_timeline

    if not _is_modelled(target):
        return
    try:
        target.backend.timing()
    except UnsupportedError as error:
        if error.code != "TFW0666":
            raise
        require_timeline(target.info)


def _of_launch(made: Launchable) -> _Traced:
    if _is_modelled(made.target):
        from tilefw.runtime.recording import record, timeline_of

        recording = record(made)
        timeline, utilisation = timeline_of(recording)
        return _Traced(made.name, made.target.name, MODEL, made.grid, timeline, utilisation, recording.notes)
    from tilefw.runtime.launch import with_timeline

    return _of_result(with_timeline(made))


def _of_result(result: LaunchResult) -> _Traced:
    assert result.timeline is not None, "who is asked for a timeline gives one"
    return _Traced(result.kernel, result.target, result.executor, result.grid, result.timeline, result.utilisation)


def _encoded(suffix: str, title: str, result: _Traced, timeline: Timeline) -> bytes:
    if suffix == ".svg":
        from tilefw.runtime.timeline_svg import picture

        return picture(timeline, title, result.utilisation).encode()
    from tilefw.runtime.timeline_trace import trace_events

    return trace_events(timeline, title, result.utilisation).encode()


def _rendered(title: str, result: _Traced, timeline: Timeline) -> str:
    """The figures of the whole, for people."""
    from tilefw.runtime.diagnostics import render_utilisation

    spans = sum(len(row.spans) for row in timeline.rows)
    facts = [f", {name} {value:,}" if isinstance(value, int) else f", {name} {value}" for name, value in timeline.facts.items()]
    return "\n".join([
        f"{title} ({result.executor}): {timeline.cycles:,} cycles{''.join(facts)}",
        f"  {len(timeline.rows)} queues with {spans:,} spans",
        "  " + render_utilisation(result.utilisation),
        *(f"  note: {note}" for note in result.notes),
    ])


def _to_json(result: _Traced, timeline: Timeline) -> dict[str, Any]:
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
        "utilisation": utilisation_to_json(result.utilisation), "notes": list(result.notes),
    }
