"""`tilefw run NAME --devices N`: a collective of the library on a node of simulated devices, each form checked against NumPy."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import execution, literals
from tilefw.cli.output import print_json
from tilefw.runtime.names import suggest

if TYPE_CHECKING:
    from tilefw.kernels.distributed.index import Collective

_REFUSED = ("save_temps", "option", "triton", "compiler", "tuned")


@dataclass(frozen=True, slots=True)
class FormRun:
    """One form of a collective, run once: the ranks whose results are beyond the bounds, and what the launches did."""

    form: str
    wrong: list[int]
    seconds: float
    checks: frozenset[str]
    counters: Mapping[str, int]


def run_on_devices(args: argparse.Namespace) -> int:
    """The exit code. Raises UsageError, and what launches raise: a check's finding on a rank, a deadlock."""
    from tilefw.kernels.distributed.index import COLLECTIVES
    from tilefw.runtime import config

    for name in _REFUSED:
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} does not go with --devices", code="TFW0917")
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
    if unknown := [form for form in forms if form not in one.forms]:
        raise UsageError(f"{one.name} has no form {unknown[0]!r}", code="TFW0902", help=f"its forms: {', '.join(one.forms)}")
    runs = [_run(one, target, args.devices, form, given, keywords) for form in forms]
    _show(args, one.name, target, given, runs)
    return 1 if any(run.wrong for run in runs) else 0


def require_no_collective(name: str) -> None:
    """Raises UsageError for the name of a collective, which no single device runs."""
    from tilefw.kernels.distributed.index import COLLECTIVES

    if name in COLLECTIVES:
        raise UsageError(f"{name} is a collective of several devices", code="TFW0917", help=f"tilefw run {name} --devices 4")


def _run(
    one: Collective, target: str, devices: int, form: str, given: Mapping[str, Any], keywords: Mapping[str, Any]
) -> FormRun:
    import numpy as np

    import tilefw

    n, dtype = given["n"], given["dtype"]
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise UsageError(f"n is a whole number from 1, not {n!r}", code="TFW0902")
    if dtype not in one.dtypes:
        raise UsageError(f"dtype of {one.name} is {' or '.join(one.dtypes)}, not {dtype!r}", code="TFW0902")
    drawn = one.draw(np.random.default_rng(keywords.get("seed", 0)), devices, n, dtype)
    node = tilefw.node(target, devices)
    shaping = {name: value for name, value in given.items() if name not in ("n", "dtype")}
    began = time.perf_counter()
    found = one.run(node, *[node.array(list(arrays)) for arrays in drawn], form, **shaping, **keywords)
    seconds = time.perf_counter() - began
    counters: dict[str, int] = {}
    for result in node.results:
        for name, value in result.counters.items():
            counters[name] = counters.get(name, 0) + value
    return FormRun(form, one.wrong(found, drawn), seconds, node.results[-1].checks, counters)


def _show(args: argparse.Namespace, name: str, target: str, given: Mapping[str, Any], runs: list[FormRun]) -> None:
    from tilefw.runtime.diagnostics import render_counters

    if args.json:
        forms = [
            {
                "form": run.form, "ok": not run.wrong, "wrong_ranks": run.wrong, "seconds": run.seconds,
                "checks": sorted(run.checks), "counters": run.counters,
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
        print(f"  execute {1000 * run.seconds:.1f} ms; checked for {', '.join(sorted(run.checks)) or 'nothing'}")
        print(f"  {render_counters(run.counters)}")
