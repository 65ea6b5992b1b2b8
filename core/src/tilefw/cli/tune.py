"""`tilefw tune NAME|FILE.py:FN --target T`: the fastest configuration by the model of time, kept where launches find it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import Parser, add_assignments, add_json, parser, positive, whole
from tilefw.cli.output import print_json

if TYPE_CHECKING:
    from tilefw.cli.tuned_task import TunedTask
    from tilefw.kernels.tuning import Search, Trial
    from tilefw.runtime.config import Resolved


def main(summary: str, argv: list[str]) -> int:
    args = _parser(summary).parse_all(argv)
    from tilefw.cli.tuned_task import task_of
    from tilefw.cli.tuning_workers import workers_of
    from tilefw.kernels.tuning import Search
    from tilefw.runtime import config, tuned_choices
    from tilefw.runtime.plugins.loader import find_target

    resolved = config.resolve(config.settings(args.target, executor="sim", seed=args.seed))
    find_target(resolved.target).backend.timing()  # says what the target lacks
    task = task_of(args, resolved)
    stated = {name: value for name, value in vars(args).items() if name not in _NO_PART}
    record = tuned_choices.search_record(task.key, stated)
    part = None if args.timed is None else args.timed / 100
    with workers_of(args, task, resolved.target) as workers:
        search = Search(
            task.over, task.start, workers.timed, task.estimate, record, _told, task.only, part, workers.together,
            _told_each_second(),
        )
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


_NO_PART = ("resume", "json", "target", "jobs", "scheduler", "timed")
"""Arguments that no time depends on."""


def _end(args: argparse.Namespace, task: TunedTask, search: Search, best: Trial, resolved: Resolved) -> int:
    from tilefw.runtime import tuned_choices

    told = {"kernel": task.name, "target": resolved.target, "seconds": best.seconds, "by": "the model of time"}
    path = tuned_choices.keep(task.key, best.configuration, told)
    if args.json:
        trials = [
            {
                "configuration": tuned_choices.plain(t.configuration), "seconds": None if t.bounded else t.seconds,
                "bounded": t.bounded, "why": t.why,
            }
            for t in search.trials.values()
        ]
        choice = tuned_choices.plain(best.configuration)
        kept = str(path or "")
        print_json("tune", {**told, "choice": choice, "kept": kept, "estimated": len(search.estimates), "trials": trials})
        return 0
    words = " ".join(f"{name}={value}" for name, value in best.configuration.items())
    seconds = f"{(best.seconds or 0) * 1e6:,.2f} us by the model of time"
    print(f"{task.name} on {resolved.target}: {words}: {seconds}{_gain(task, search)}")
    print(_so_far(search))
    print(f"kept in {path}" if path else "kept nowhere: there is no folder for it (TILEFW_CACHE_DIR names one)")
    return 0


def _gain(task: TunedTask, search: Search) -> str:
    """How much faster the choice is than the start: as timed, or else as estimated."""
    best, start = search.best, search.start_seconds()
    if best is None or not best.seconds or start is None:
        return ""
    return f", {start[0]:.2f} times as fast as {'the first' if task.only else 'the start'}{' by estimates' if start[1] else ''}"


def _told(trial: Trial) -> None:
    words = " ".join(f"{name}={value}" for name, value in trial.configuration.items())
    if trial.seconds is None:
        print(f"  {words}: {trial.why}", file=sys.stderr)
    else:
        print(f"  {words}: {'at least ' if trial.bounded else ''}{trial.seconds * 1e6:,.2f} us", file=sys.stderr)


def _told_each_second() -> Callable[[int], None]:
    """Tells how many configurations are estimated, where that takes long."""
    last = time.monotonic()

    def tell(count: int) -> None:
        nonlocal last
        if time.monotonic() - last >= 1:
            last = time.monotonic()
            print(f"  {count} configurations are estimated", file=sys.stderr)

    return tell


def _so_far(search: Search) -> str:
    trials = search.trials.values()
    bounded, refused = sum(t.bounded for t in trials), sum(t.seconds is None for t in trials)
    tried = f"{len(search.estimates)} of {search.size} configurations were estimated" if search.estimates else ""
    timed = f"{len(trials)} of {search.size} were tried" if not tried else f"{len(trials)} tried"
    return f"{tried}{', ' if tried else ''}{timed}, {bounded} of them left at their bound, {refused} refused"


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
    parse.add_argument("--timed", type=_percent, metavar="PERCENT", help="of all configurations at most that are timed (4)")
    parse.add_argument("--jobs", type=positive, metavar="N", help="processes that time configurations (default: this one)")
    parse.add_argument("--scheduler", metavar="ADDRESS", help="time them on the workers of a Dask scheduler (tcp://…)")
    parse.add_argument("--seed", type=whole, default=0, metavar="N", help="of the inputs")
    add_json(parse)
    return parse


def _percent(text: str) -> float:
    """A number above 0 and at most 100."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"'{text}' is not above 0 and at most 100")
    return value
