"""Whole models on the command line: `tilefw run MODEL`, `tilefw compile MODEL -o FILE.tfm`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.arguments import add_assignments, execution
from tilefw.cli.array_files import read_arrays, write_arrays
from tilefw.cli.model_report import (
    RunProgress,
    certificate_to_json,
    facts,
    profile_to_json,
    render,
    render_profile,
    summary,
)
from tilefw.cli.node_models import require_devices, run_on_node
from tilefw.cli.node_time_report import check_timeline_name
from tilefw.cli.output import print_json, write_file
from tilefw.graph.model_readers import PLAN_SUFFIX

if TYPE_CHECKING:
    import numpy as np

    from tilefw.graph.certificate import Certificate
    from tilefw.graph.plan import ModelPlan
    from tilefw.graph.profile import ModelProfile
    from tilefw.graph.session import Session

FUSES: Mapping[str | None, bool | None] = {None: None, "all": True, "none": False}
_MOST_DIGITS = 18  # of a size: any such number fits 64 bits


def add_model_options(parse: argparse.ArgumentParser) -> None:
    """The options that say which nodes of a model share a launch, and the sizes that it leaves open."""
    add_assignments(parse, "--size", "sizes that a model leaves open, such as batch=1")
    parse.add_argument("--fuse", choices=("all", "none"), help="which nodes of a model share launches: all that can, or none")


def sizes_said(pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The sizes of the command line. Raises UsageError TFW0917 for one that is no whole number."""
    for name, text in pairs:
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            raise UsageError(f"--size {name}={text}: a size is a whole number of at most {_MOST_DIGITS} digits", code="TFW0917")
    return {name: int(text) for name, text in pairs}


def compile_model(path: str, target: str | None, output: str | None, fuse: str | None, sizes: Sequence[tuple[str, str]]) -> int:
    """Write the model's plan for a target to a file."""
    if output is None or not output.endswith(PLAN_SUFFIX):
        raise UsageError(f"a model is compiled to a file `*{PLAN_SUFFIX}`", "TFW0917", help=f"add -o MODEL{PLAN_SUFFIX}")
    from tilefw.graph import plan_file
    from tilefw.graph.model_readers import read_plan

    plan = read_plan(path, target, fuse=FUSES[fuse], sizes=sizes_said(sizes))
    try:
        digest = plan_file.save(plan, output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}", code="TFW0913") from None
    print(summary(facts(plan)), file=sys.stderr)
    print(f"{output}: {digest}", file=sys.stderr)
    return 0


def run_model(args: argparse.Namespace) -> int:
    """Run a model on arrays of a file, or on seeded ones; exit code 1 where a launch is out of its bounds."""
    from tilefw.graph.model_readers import read_plan
    from tilefw.graph.session import Session

    _refuse_together(args)
    begun = time.perf_counter()
    options = execution(args)
    given = read_arrays(args.input) if args.input else None
    shapes = {name: array.shape for name, array in (given or {}).items()}
    plan = read_plan(args.kernel, args.target, options.get("executor"), FUSES[args.fuse], sizes_said(args.size), shapes)
    inputs = seeded(plan, args.seed or 0) if given is None else given
    made = time.perf_counter()
    require_devices(plan, args)
    if plan.on_node:
        return run_on_node(plan, inputs, args, options, made - begun)
    with Session(plan, **options) as session:
        found = _execute(session, inputs, args)
        executor, counters = session.executor, session.counters
    seconds = {"prepare": made - begun, "run": time.perf_counter() - made}
    outputs, certificate, profile = found.outputs, found.certificate, found.profile
    if args.out:
        write_arrays(args.out, outputs)
    if args.timeline and profile is not None:
        _write_timeline(args.timeline, f"{args.kernel} on {plan.target}", profile)
    fields = {
        "model": args.kernel, "target": plan.target, "executor": executor, **facts(plan), "seconds": seconds,
        "cycles": counters.get("cycles"), "cycles_predicted": counters.get("cycles_predicted"),
        "outputs": {name: {"dtype": plan.outputs[name].dtype, "shape": list(array.shape)} for name, array in outputs.items()},
        "verdict": None if certificate is None else "pass" if certificate.ok else "fail",
        "certificate": None if certificate is None else certificate_to_json(certificate),
        "profile": None if profile is None else profile_to_json(profile),
    }
    if args.json:
        print_json("run-model", fields)
    else:
        print(render(fields, plan, outputs, certificate))
        if args.profile and profile is not None:
            print(render_profile(profile))
    return 0 if certificate is None or certificate.ok else 1


@dataclass(frozen=True, slots=True)
class _ModelRun:
    """The outputs of a run, with what it was run for."""

    outputs: Mapping[str, np.ndarray[Any, Any]]
    certificate: Certificate | None = None
    profile: ModelProfile | None = None


def _execute(session: Session, inputs: Mapping[str, np.ndarray[Any, Any]], args: argparse.Namespace) -> _ModelRun:
    told = RunProgress(len(session.launches) if not args.check else len(session.plan.steps))
    if args.check:
        from tilefw.graph.certificate import certified
        from tilefw.graph.sampling import sample_of

        certificate = certified(session, inputs, sample_of(args.sample, args.seed or 0), lambda launch: told(launch.label))
        return _ModelRun(certificate.outputs, certificate)
    if args.profile or args.timeline:
        from tilefw.graph.profile import profiled

        profile = profiled(session, inputs, told)
        return _ModelRun(profile.outputs, profile=profile)
    return _ModelRun(session.run(inputs, told))


def _refuse_together(args: argparse.Namespace) -> None:
    for name in ("profile", "timeline", "time", "system"):
        if args.check and getattr(args, name):
            raise UsageError(
                f"--{name} does not go with --check", code="TFW0917", help="a launch that is judged takes as long as its judgement"
            )
    if args.timeline:
        check_timeline_name(args.timeline)
    if args.sample is not None and not args.check:
        raise UsageError("--sample goes with --check launches", code="TFW0917")
    if args.sample is not None and args.sample < 0:
        raise UsageError(f"--sample is a number of programs, not {args.sample}", code="TFW0917", help="0 runs all programs")


def _write_timeline(path: str, title: str, profile: ModelProfile) -> None:
    from tilefw.graph.profile import trace_events

    write_file(path, trace_events(profile, title).encode())
    print(f"the timeline is in {path}: open it at https://ui.perfetto.dev", file=sys.stderr)


def seeded(plan: ModelPlan, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs where nobody gave any: normal numbers, integers 0 and 1, truth values, all from the seed."""
    import numpy as np

    from tilefw.api.dtypes import dtype
    from tilefw.kernels.formats import array_dtype, encode

    rng = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name in plan.inputs:
        tensor = plan.whole_input(name)
        if dtype(tensor.dtype).is_float:
            arrays[name] = encode(rng.standard_normal(tensor.shape), tensor.dtype).reshape(tensor.shape)
        else:
            arrays[name] = rng.integers(0, 2, tensor.shape).astype(array_dtype(tensor.dtype))
    return arrays
