"""`tilefw tune NAME|FILE.py:FN --target T`: the fastest configuration by the model of time, kept where launches find it."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_json, literal, literals, parser, whole
from tilefw.cli.grid_expression import grid_text
from tilefw.cli.output import print_json

if TYPE_CHECKING:
    from tilefw.kernels.tuning import Configuration, Search, Trial
    from tilefw.runtime.config import Resolved
    from tilefw.runtime.launchable import Launchable


@dataclass(frozen=True, slots=True)
class _Tuned:
    """What is tuned: its name, the key that its choice is kept under, values to search over, the start, the launch of one, and
    perhaps the only configurations that there are."""

    name: str
    key: str
    over: Mapping[str, Sequence[Any]]
    start: Mapping[str, Any]
    launch: Callable[[Configuration], Launchable]
    only: Sequence[Configuration] = ()


def main(summary: str, argv: list[str]) -> int:
    args = _parser(summary).parse_all(argv)
    from tilefw.kernels.tuning import Search
    from tilefw.runtime import config, tuned_choices
    from tilefw.runtime.plugins.loader import find_target

    resolved = config.resolve(config.settings(args.target, executor="sim", seed=args.seed))
    find_target(resolved.target).backend.timing()  # says what the target lacks
    task = _task(args, resolved)
    stated = {name: value for name, value in vars(args).items() if name not in ("resume", "json", "target")}
    record = tuned_choices.search_record(task.key, stated)
    search = Search(task.over, task.start, task.launch, record, _told, task.only)
    if args.resume:
        print(f"{search.resume()} configurations were timed before", file=sys.stderr)
    elif record is not None:
        with suppress(OSError):
            record.unlink()
    try:
        best = search.run()
    except KeyboardInterrupt:
        print(f"interrupted: {_so_far(search)}; --resume goes on from there", file=sys.stderr)
        return 130
    if best is None:
        raise UsageError(
            f"no configuration of {task.name} compiles for {resolved.target}", code="TFW0305",
            note="\n".join(f"{trial.configuration}: {trial.why}" for trial in search.trials.values()),
        )
    return _end(args, task, search, best, resolved)


def _end(args: argparse.Namespace, task: _Tuned, search: Search, best: Trial, resolved: Resolved) -> int:
    from tilefw.runtime import tuned_choices

    told = {"kernel": task.name, "target": resolved.target, "seconds": best.seconds, "by": "the model of time"}
    path = tuned_choices.keep(task.key, best.configuration, told)
    first = search.trials[next(iter(search.trials))]
    if args.json:
        trials = [
            {
                "configuration": tuned_choices.plain(t.configuration), "seconds": None if t.bounded else t.seconds,
                "bounded": t.bounded, "why": t.why,
            }
            for t in search.trials.values()
        ]
        print_json("tune", {**told, "choice": tuned_choices.plain(best.configuration), "kept": str(path or ""), "trials": trials})
        return 0
    words = " ".join(f"{name}={value}" for name, value in best.configuration.items())
    gain = f", {first.seconds / best.seconds:.2f} times as fast as the start" if first.seconds and best.seconds else ""
    print(f"{task.name} on {resolved.target}: {words}: {(best.seconds or 0) * 1e6:,.2f} us by the model of time{gain}")
    print(_so_far(search))
    print(f"kept in {path}" if path else "kept nowhere: there is no folder for it (TILEFW_CACHE_DIR names one)")
    return 0


def _told(trial: Trial) -> None:
    words = " ".join(f"{name}={value}" for name, value in trial.configuration.items())
    if trial.seconds is None:
        print(f"  {words}: {trial.why}", file=sys.stderr)
    else:
        print(f"  {words}: {'at least ' if trial.bounded else ''}{trial.seconds * 1e6:,.2f} us", file=sys.stderr)


def _so_far(search: Search) -> str:
    trials = search.trials.values()
    bounded, refused = sum(t.bounded for t in trials), sum(t.seconds is None for t in trials)
    size = len(search.only) or math.prod(map(len, search.over.values()))
    return f"{len(trials)} of {size} configurations were tried, {bounded} of them left at their bound, {refused} refused"


def _task(args: argparse.Namespace, resolved: Resolved) -> _Tuned:
    path, colon, function = args.kernel.rpartition(":")
    return _of_function(args, path, function, resolved) if colon and path.endswith(".py") else _of_library(args, resolved)


def _of_library(args: argparse.Namespace, resolved: Resolved) -> _Tuned:
    from tilefw.kernels.launchable import launchable
    from tilefw.kernels.spec import load
    from tilefw.kernels.tuned import choice_key
    from tilefw.kernels.tuning import space
    from tilefw.runtime.plugins.loader import find_target

    spec, given = load(args.kernel), dict(args.param)
    parameters = spec.resolve(given)
    # What is given of that is the only value: the choice is made for it, and says so.
    over = {name: (parameters[name],) if name in given else values for name, values in space(spec.info).items()} | _over(args)
    if not over.keys() - given.keys():
        raise UsageError(f"{spec.name} has no parameter to choose", code="TFW0911", help="name them: --over block=256,512")
    for name in over:
        spec.resolve({name: str(over[name][0])})  # says which names there are
    target = find_target(resolved.target)

    def launch(configuration: Configuration) -> Launchable:
        chosen = {**given, **{name: str(value) for name, value in configuration.items()}}
        return launchable(spec, chosen, target, resolved, assemble=True)

    start = {name: parameters[name] if parameters[name] in values else values[0] for name, values in over.items()}
    return _Tuned(spec.name, choice_key(spec, parameters, resolved.target), over, start, launch)


def _of_function(args: argparse.Namespace, path: str, name: str, resolved: Resolved) -> _Tuned:
    from tilefw.cli.function_launch import FunctionLaunch, launch_of_function
    from tilefw.cli.scripts import function
    from tilefw.runtime.autotune import Autotuner
    from tilefw.runtime.tuned_choices import jit_function, key_of_problem

    kernel, over = function(path, name), _over(args)
    tuner = kernel if isinstance(kernel, Autotuner) else None
    only = [config.all_kwargs() for config in tuner.configs] if tuner is not None and not over else []
    if not over and not only:
        raise UsageError(f"what of {name} is to be chosen?", code="TFW0911", help="--over BLOCK=256,512,1024 num_warps=2,4,8")
    scalars, constants = literals(args.scalar), literals(args.constexpr)
    stated = FunctionLaunch(
        path, name, dict(args.signature), constants, args.grid, scalars, literals(args.extent), literals(args.option)
    )

    def launch(configuration: Configuration) -> Launchable:
        varied = replace(stated, constexprs={**constants, **{n: v for n, v in configuration.items() if n in names_of}})
        keywords = {**stated.keywords, **{n: v for n, v in configuration.items() if n not in names_of}}
        grid = grid_text(args.grid, {**scalars, **varied.constexprs, **configuration})
        return launch_of_function(replace(varied, keywords=keywords, grid=grid), resolved)

    base = jit_function(kernel)
    names_of = set(base.arg_names)
    types = {n: kind[1:].partition(":")[0] for n, kind in dict(args.signature).items() if kind.startswith("*")}
    values = {**constants, **scalars}
    keys = {n: values[n] for n in (tuner.keys if tuner is not None else scalars) if n in values}
    start = {n: choices[0] for n, choices in over.items()}
    return _Tuned(name, key_of_problem(base, resolved.target, keys, types), over, start, launch, only)


def _over(args: argparse.Namespace) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(literal(word) for word in text.split(",")) for name, text in args.over}


def _parser(summary: str) -> Parser:
    parse = parser("tune", summary)
    parse.add_argument("kernel", help="a library kernel (see `tilefw kernels`), or FILE.py:FUNCTION")
    parse.add_argument("--target", metavar="T", help="the chip")
    add_assignments(parse, "--param", "the problem: parameters of the library kernel that stay as they are")
    add_assignments(parse, "--over", "values to choose among, such as num_warps=2,4,8; else the library's or autotune's")
    add_assignments(parse, "--signature", "types of a function's run-time parameters, such as x_ptr=*fp32 or n=i32:16")
    add_assignments(parse, "--constexpr", "values of its other compile-time parameters")
    parse.add_argument("--grid", metavar="X[,Y[,Z]]", help="its grid, numbers or arithmetic of names: 'cdiv(n, BLOCK)'")
    add_assignments(parse, "--scalar", "its scalar arguments")
    add_assignments(parse, "--extent", "bytes behind each of its pointers, which are zeros")
    add_assignments(parse, "--option", "launch keywords that shape code, and the target's own")
    parse.add_argument("--resume", action="store_true", help="go on with a search that was interrupted")
    parse.add_argument("--seed", type=whole, default=0, metavar="N", help="of the inputs")
    add_json(parse)
    return parse
