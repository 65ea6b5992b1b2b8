"""`tilefw profile NAME|FILE --target T [--target U] [--against K=V …]`: how long a launch takes on a chip, and what limits it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_json, is_file, literals, parser, positive, whole
from tilefw.cli.output import print_json, write_file
from tilefw.cli.tuned_launch import add_tuned, with_choice

if TYPE_CHECKING:
    from tilefw.timing.launch_profile import LaunchProfile


def main(summary: str, argv: list[str]) -> int:
    args = _parser(summary).parse_all(argv)
    found = _found(args)
    if args.page:
        from tilefw.timing.page import page

        write_file(args.page, page([profile.to_json() for profile in found]).encode())
        print(f"the page is in {args.page}: any browser shows it", file=sys.stderr)
    if args.json:
        print_json("profile", {"profiles": [profile.to_json() for profile in found]})
        return 0
    print("\n\n".join(map(repr, found)))
    if len(found) > 1:
        print("\n" + _compared(found))
    return 0


def _found(args: argparse.Namespace) -> list[LaunchProfile]:
    path, colon, function = args.kernel.rpartition(":")
    if colon and path.endswith(".py"):
        _refuse(args, ("launch", "param", "tuned"), f"a function of a Python file, which {path}:{function} is")
        return _of_function(args, path, function)
    if args.kernel.endswith(".py"):
        raise UsageError(f"which function of {args.kernel}?", code="TFW0916", help=f"write {args.kernel}:FUNCTION")
    _refuse(args, ("signature", "constexpr", "grid", "scalar", "extent"), "what says its launch itself; FILE.py:FUNCTION takes it")
    return _of_file(args) if args.launch or is_file(args.kernel) else _of_library(args)


def _refuse(args: argparse.Namespace, names: tuple[str, ...], what: str) -> None:
    for name in names:
        if getattr(args, name):
            raise UsageError(f"--{name} does not go with {what}", code="TFW0917")


def _of_function(args: argparse.Namespace, path: str, name: str) -> list[LaunchProfile]:
    from tilefw.cli.function_launch import FunctionLaunch, launch_of_function
    from tilefw.runtime import config
    from tilefw.runtime.recording import profile_of, record

    stated = FunctionLaunch(
        path, name, dict(args.signature), literals(args.constexpr), args.grid, literals(args.scalar), literals(args.extent),
        literals(args.option),
    )
    variants = [stated] + ([stated.varied(literals(args.against))] if args.against else [])
    found = []
    for target in args.target or [None]:
        resolved = config.resolve(config.settings(target, executor="sim", seed=args.seed))
        found += [profile_of(record(launch_of_function(one, resolved), args.workgroups), args.warm) for one in variants]
    return found


def _of_library(args: argparse.Namespace) -> list[LaunchProfile]:
    from tilefw.kernels.profiled import profiled
    from tilefw.kernels.spec import load

    spec = load(args.kernel)
    how = {"keywords": literals(args.option), "workgroups": args.workgroups, "warm": args.warm, "seed": args.seed}
    found = []
    for target in args.target or [None]:
        given = with_choice(spec, args, target)
        variants = [given] + ([{**given, **dict(args.against)}] if args.against else [])
        found += [profiled(spec, parameters, target, **how) for parameters in variants]
    return found


def _of_file(args: argparse.Namespace) -> list[LaunchProfile]:
    """Machine code is of one target, and has no parameters of a library kernel."""
    _refuse(args, ("param", "against", "option", "tuned"), "a file of machine code")
    if not args.launch:
        raise UsageError(
            f"how is {args.kernel} launched?", code="TFW0911", help="give --launch FILE; `tilefw simulate --help` shows such a file"
        )
    if len(args.target or []) > 1:
        raise UsageError("a file of machine code is profiled on one target", code="TFW0911")
    from tilefw.cli.simulate import load
    from tilefw.kernels.launchable import launchable_file
    from tilefw.runtime import config, launchfile
    from tilefw.runtime.recording import profile_of, record

    module = load(args.kernel, args.target[0] if args.target else None)
    resolved = config.resolve(config.settings(module.target.name, seed=args.seed))
    made = launchable_file(module, launchfile.read(args.launch), resolved)
    return [profile_of(record(made, args.workgroups), args.warm)]


def _parser(summary: str) -> Parser:
    from tilefw.runtime.recording import BESIDE

    parse = parser("profile", summary)
    parse.add_argument("kernel", help="a library kernel (see `tilefw kernels`), FILE.py:FUNCTION, or a file of machine code")
    parse.add_argument("--target", action="append", metavar="T", help="the chip; several are shown side by side")
    parse.add_argument("--launch", metavar="FILE", help="the launch file of machine code, as `tilefw simulate` takes it")
    add_assignments(parse, "--param", "parameters of the library kernel")
    add_assignments(parse, "--signature", "types of a function's run-time parameters, such as x_ptr=*fp32 or n=i32:16")
    add_assignments(parse, "--constexpr", "values of its compile-time parameters")
    parse.add_argument("--grid", metavar="X[,Y[,Z]]", help="the grid of a function's launch")
    add_assignments(parse, "--scalar", "its scalar arguments")
    add_assignments(parse, "--extent", "bytes behind each of its pointers, which are zeros")
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
