"""`tilefw run NAME --devices N`: a collective of the library on a node of simulated devices, each form checked against NumPy."""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UnsupportedError, UsageError
from tilefw.cli.arguments import execution, literals, refuse
from tilefw.cli.node_time_report import (
    asks_for_time,
    check_timeline_name,
    rendered_time,
    require_time,
    system_asked_for,
    time_to_json,
    write_timeline,
)
from tilefw.cli.output import print_json
from tilefw.runtime.names import suggest

if TYPE_CHECKING:
    from tilefw.distributed.links.system import System
    from tilefw.distributed.node_time import NodeTime
    from tilefw.kernels.distributed.index import Collective

_REFUSED = ("save_temps", "option", "triton", "compiler", "tuned")


@dataclass(frozen=True, slots=True)
class FormRun:
    """One form of a collective, run once: the ranks whose results are beyond the bounds, what the launches did, how long the
    simulator took for them, and the time of devices, or why it is not told."""

    form: str
    wrong: list[int]
    host_seconds: float
    checks: frozenset[str]
    counters: Mapping[str, int]
    time: NodeTime | None
    unknown: str | None


def run_on_devices(args: argparse.Namespace) -> int:
    """The exit code. Raises UsageError, and what launches raise: a check's finding on a rank, a deadlock."""
    from tilefw.kernels.distributed.index import COLLECTIVES
    from tilefw.kernels.distributed.requirements import require_form
    from tilefw.runtime import config

    refuse(args, _REFUSED, "--devices")
    if args.executor == "hw":
        raise UsageError("a node's devices are simulated: --executor hw does not go with --devices", code="TFW0917")
    if args.kernel not in COLLECTIVES:
        raise UsageError(
            f"there is no collective {args.kernel!r}", code="TFW0940", help=suggest(args.kernel, COLLECTIVES, what="collectives")
        )
    one, target = COLLECTIVES[args.kernel], config.resolve(config.settings(args.target)).target
    keywords = {name: value for name, value in execution(args).items() if name != "executor"}
    given = {"n": one.n, "dtype": one.dtypes[0]} | literals(args.param)
    forms = [str(given.pop("form"))] if "form" in given else list(one.forms)
    require_form(one.name, forms[0], one.forms, n=given["n"])
    _require_no_argument(one, given)
    system, unknown = system_asked_for(args, target, args.devices)
    if args.timeline:
        check_timeline_name(args.timeline)
        _require_one_form(forms)
        require_time(unknown)
    runs = [_run(one, (target, args.devices, system), form, given, keywords, unknown) for form in forms]
    _show(args, one.name, target, given, runs)
    if args.timeline:
        title = f"{one.name} ({runs[0].form}) on {args.devices} devices of {target}"
        write_timeline(args.timeline, title, runs[0].time, runs[0].unknown)
    return 1 if any(run.wrong for run in runs) else 0


def require_no_collective(name: str) -> None:
    """Raises UsageError for the name of a collective, which no single device runs."""
    from tilefw.kernels.distributed.index import COLLECTIVES

    if name in COLLECTIVES:
        raise UsageError(f"{name} is a collective of several devices", code="TFW0917", help=f"tilefw run {name} --devices 4")


def _require_no_argument(one: Collective, given: Mapping[str, Any]) -> None:
    """Raises UsageError for a parameter that is one of the collective's arrays, or the node: these are made here."""
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for name, parameter in inspect.signature(one.run).parameters.items():
        if parameter.kind is positional and name in given:
            raise UsageError(f"'{name}' of {one.name} is no parameter: it is drawn, by --seed", code="TFW0917")


def _run(
    one: Collective, where: tuple[str, int, System | None], form: str, given: Mapping[str, Any], keywords: Mapping[str, Any],
    unknown: str | None,
) -> FormRun:
    import numpy as np

    import tilefw
    from tilefw.distributed.node_time import node_time

    target, devices, system = where
    n, dtype = given["n"], given["dtype"]
    if dtype not in one.dtypes:
        raise UsageError(f"dtype of {one.name} is {' or '.join(one.dtypes)}, not {dtype!r}", code="TFW0902")
    drawn = one.draw(np.random.default_rng(keywords.get("seed", 0)), devices, n, dtype)
    node = tilefw.node(target, devices, trace=system is not None)
    launch = {**{name: value for name, value in given.items() if name not in ("n", "dtype")}, **keywords}
    began = time.perf_counter()
    found = one.run(node, *[node.array(list(arrays)) for arrays in drawn], form, **launch)
    seconds = time.perf_counter() - began
    counters: dict[str, int] = {}
    for result in node.results:
        for name, value in result.counters.items():
            counters[name] = counters.get(name, 0) + value
    time_of_devices = None
    if system is not None:
        try:
            time_of_devices = node_time(node, system)
        except UnsupportedError as error:  # of this code alone: its results are none the worse
            unknown = f"{error.message} ({error.code})"
    wrong, checks = one.wrong(found, drawn, launch), node.results[-1].checks
    return FormRun(form, wrong, seconds, checks, counters, time_of_devices, unknown)


def _show(args: argparse.Namespace, name: str, target: str, given: Mapping[str, Any], runs: list[FormRun]) -> None:
    from tilefw.runtime.diagnostics import render_counters

    if args.json:
        forms = [
            {
                "form": run.form, "ok": not run.wrong, "wrong_ranks": run.wrong, **time_to_json(run.time, run.unknown),
                "host_seconds": run.host_seconds, "checks": sorted(run.checks), "counters": run.counters,
            }
            for run in runs
        ]
        fields = {"kernel": name, "target": target, "devices": args.devices, "parameters": given, "seed": args.seed or 0}
        print_json("run-devices", {**fields, "ok": not any(run.wrong for run in runs), "forms": forms})
        return
    shown = ", ".join(f"{key}={value}" for key, value in given.items())
    for run in runs:
        print(f"{'FAIL' if run.wrong else 'pass'}  {name} ({run.form}) on {args.devices} devices of {target}: {shown}")
        if run.wrong:
            print(f"  beyond the bounds on the ranks {', '.join(map(str, run.wrong))}")
        if asks_for_time(args):
            print(f"  {rendered_time(run.time, run.unknown)}")
        print(f"  simulated in {1000 * run.host_seconds:.1f} ms; checked for {', '.join(sorted(run.checks)) or 'nothing'}")
        print(f"  {render_counters(run.counters)}")


def _require_one_form(forms: list[str]) -> None:
    """Raises UsageError where a timeline would be of several."""
    if len(forms) != 1:
        raise UsageError("a timeline is of one form", code="TFW0917", help=f"--param form={forms[0]}, or {', '.join(forms[1:])}")
