"""`tilefw profile NAME|FILE --target T [--target U] [--against K=V …]`: how long a launch takes on a chip, and what limits it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_json, is_file, literals, parser, positive, refuse, whole
from tilefw.cli.output import print_json, write_file
from tilefw.cli.stated_launch import STATED, add_stated, function_launch, named_function
from tilefw.cli.tuned_launch import add_tuned, with_choice

if TYPE_CHECKING:
    from tilefw.runtime.recording import Recording
    from tilefw.timing.launch_profile import LaunchProfile

LARGEST_PICTURE = 1_000_000
"""Letters of a timeline on a page."""


def main(summary: str, argv: list[str]) -> int:
    args = _parser(summary).parse_all(argv)
    recorded = _recorded(args)
    from tilefw.runtime.recording import profile_of

    found = [profile_of(one, args.warm) for one in recorded]
    if args.page:
        from tilefw.timing.page import page

        pictures = [_picture(one, args.warm) for one in recorded]
        write_file(args.page, page([profile.to_json() for profile in found], pictures).encode())
        print(f"the page is in {args.page}: any browser shows it", file=sys.stderr)
    if args.json:
        print_json("profile", {"profiles": [profile.to_json() for profile in found]})
        return 0
    print("\n\n".join(map(repr, found)))
    if len(found) > 1:
        print("\n" + _compared(found))
    return 0


def _picture(recording: Recording, warm: bool) -> str:
    """The timeline of one processor for the page, or nothing where it would make the page slow: `tilefw trace` draws those."""
    from tilefw.runtime.recording import timeline_of
    from tilefw.runtime.timeline_svg import picture

    timeline, utilisation = timeline_of(recording, warm)
    drawn = picture(timeline, "One processor, by the model of time", utilisation)
    return drawn if len(drawn) <= LARGEST_PICTURE else ""


def _recorded(args: argparse.Namespace) -> list[Recording]:
    named = named_function(args.kernel)
    if named is not None:
        refuse(args, ("launch", "param", "tuned"), f"a function of a Python file, which {args.kernel} is")
        return _of_function(args, *named)
    refuse(args, STATED, "what says its launch itself; FILE.py:FUNCTION takes it")
    return _of_file(args) if args.launch or is_file(args.kernel) else _of_library(args)


def _of_function(args: argparse.Namespace, path: str, name: str) -> list[Recording]:
    from tilefw.cli.function_launch import launch_of_function
    from tilefw.runtime import config
    from tilefw.runtime.recording import record

    stated = function_launch(args, path, name)
    variants = [stated] + ([stated.varied(literals(args.against))] if args.against else [])
    found = []
    for target in args.target or [None]:
        resolved = config.resolve(config.settings(target, executor="sim", seed=args.seed))
        found += [record(launch_of_function(one, resolved), args.workgroups) for one in variants]
    return found


def _of_library(args: argparse.Namespace) -> list[Recording]:
    from tilefw.kernels.profiled import recorded
    from tilefw.kernels.spec import load

    spec = load(args.kernel)
    how = {"keywords": literals(args.option), "workgroups": args.workgroups, "seed": args.seed}
    found = []
    for target in args.target or [None]:
        given = with_choice(spec, args, target)
        variants = [given] + ([{**given, **dict(args.against)}] if args.against else [])
        found += [recorded(spec, parameters, target, **how) for parameters in variants]
    return found


def _of_file(args: argparse.Namespace) -> list[Recording]:
    """Machine code is of one target, and has no parameters of a library kernel."""
    refuse(args, ("param", "against", "option", "tuned"), "a file of machine code")
    if not args.launch:
        raise UsageError(
            f"how is {args.kernel} launched?", code="TFW0911", help="give --launch FILE; `tilefw simulate --help` shows such a file"
        )
    if len(args.target or []) > 1:
        raise UsageError("a file of machine code is profiled on one target", code="TFW0911")
    from tilefw.cli.simulate import load
    from tilefw.kernels.launchable import launchable_file
    from tilefw.runtime import config, launchfile
    from tilefw.runtime.recording import record

    module = load(args.kernel, args.target[0] if args.target else None)
    resolved = config.resolve(config.settings(module.target.name, seed=args.seed))
    made = launchable_file(module, launchfile.read(args.launch), resolved)
    return [record(made, args.workgroups)]


def _parser(summary: str) -> Parser:
    from tilefw.runtime.recording import BESIDE

    parse = parser("profile", summary)
    parse.add_argument("kernel", help="a library kernel (see `tilefw kernels`), FILE.py:FUNCTION, or a file of machine code")
    parse.add_argument("--target", action="append", metavar="T", help="the chip; several are shown side by side")
    parse.add_argument("--launch", metavar="FILE", help="the launch file of machine code, as `tilefw simulate` takes it")
    add_assignments(parse, "--param", "parameters of the library kernel")
    add_stated(parse)
    add_assignments(parse, "--against", "parameters, or launch keywords, of a variant to compare with")
    add_assignments(parse, "--option", "launch keywords that shape code, and the target's own")
    parse.add_argument(
        "--workgroups", type=positive, default=BESIDE, metavar="N", help=f"record how at most N workgroups begin ({BESIDE})"
    )
    add_tuned(parse)
    parse.add_argument("--warm", action="store_true", help="an earlier launch has left the arrays in the caches that hold them")
    parse.add_argument("--seed", type=whole, default=0, metavar="N", help="of the inputs")
    parse.add_argument("--page", metavar="OUT.html", help="write one page for a browser: limits, roofline, source beside code")
    add_json(parse)
    return parse


def _compared(found: list[LaunchProfile]) -> str:
    from tilefw.timing.launch_profile import shown_time

    first = found[0]
    lines = ["side by side"]
    for profile in found:
        top = ", ".join(f"{limit.cause} {limit.share:.0%}" for limit in profile.limits[:3])
        lines.append(f"  {profile.target:<16} {shown_time(profile.seconds):>10} {profile.seconds / first.seconds:>6.2f}x  {top}")
    return "\n".join(lines)
