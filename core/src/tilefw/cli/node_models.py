"""`tilefw run MODEL --devices N`: a model of several devices on a node of simulated ones."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.array_files import write_arrays
from tilefw.cli.model_report import NODES_SHOWN, RunProgress, certificate_to_json, facts, judgement_lines, summary
from tilefw.cli.node_time_report import (
    asks_for_time,
    rendered_time,
    require_time,
    system_asked_for,
    time_to_json,
    write_timeline,
)
from tilefw.cli.output import print_json

if TYPE_CHECKING:
    import numpy as np

    from tilefw.distributed.links.system import System
    from tilefw.distributed.node_time import NodeTime, RankLaunchTime
    from tilefw.graph.node_certificate import NodeCertificate
    from tilefw.graph.node_session import NodeSession, RankArrays
    from tilefw.graph.plan import ModelPlan


def require_devices(plan: ModelPlan, args: argparse.Namespace) -> None:
    """Raises UsageError TFW0367 for another number of devices than the model's, TFW0917 for an option of one device."""
    if args.devices is not None and args.devices != plan.ranks:
        devices = f"{plan.ranks} device{'s' if plan.ranks > 1 else ''}"
        raise UsageError(
            f"{args.kernel} is a model of {devices}, not of {args.devices}", code="TFW0367",
            help=f"--devices {plan.ranks}" if plan.on_node else "omit --devices: the model has no collectives",
        )
    for name in ("time", "system"):
        if not plan.on_node and getattr(args, name):
            raise UsageError(
                f"--{name} is of several devices, and {args.kernel} is a model of one", code="TFW0917",
                help="--profile tells how long each launch takes",
            )
    if not plan.on_node and args.timeline and not args.timeline.endswith(".json"):
        raise UsageError(f"'{args.timeline}' does not end in .json", code="TFW0917", help=".json is for ui.perfetto.dev")
    if plan.on_node and args.executor == "hw":
        raise UsageError(f"a node's devices are simulated: --executor hw does not go with {args.kernel}", code="TFW0917")


def run_on_node(
    plan: ModelPlan, inputs: Mapping[str, np.ndarray[Any, Any]], args: argparse.Namespace, options: Mapping[str, Any],
    prepared: float,
) -> int:
    """Run a plan on its node; exit code 1 where a launch of a device is out of its bounds. Of an array in `--out`, each device's is
    one row."""
    import numpy as np

    from tilefw.graph.node_session import NodeSession

    begun = time.perf_counter()
    system, unknown = _system(plan, args)
    simulated = {**options, "executor": "sim"} if "executor" in options else options  # a node has no other
    with NodeSession(plan, **simulated) as session:
        found = _execute(session, inputs, args, system)
        executor, counters = session.executor, session.counters
    outputs, certificate = found.outputs, found.certificate
    unknown = found.unknown or unknown
    if args.out:
        write_arrays(args.out, {name: np.stack([own[name] for own in outputs]) for name in plan.outputs})
    fields = {
        "model": args.kernel, "target": plan.target, "executor": executor, "devices": plan.ranks, **facts(plan),
        "seconds": {"prepare": prepared, "run": time.perf_counter() - begun}, "counters": counters,
        "time": time_to_json(found.time, unknown) | {"launches": None if found.time is None else _launches(found.time)},
        "outputs": {
            name: {"dtype": tensor.dtype, "shape": list(tensor.shape), "equal": _equal(name, outputs)}
            for name, tensor in plan.outputs.items()
        },
        "verdict": None if certificate is None else "pass" if certificate.ok else "fail",
        "certificates": None if certificate is None else [certificate_to_json(one) for one in certificate.ranks],
    }
    if args.json:
        print_json("run-model", fields)
    else:
        print(_rendered(fields, certificate))
        if asks_for_time(args) or args.profile:
            print("\n".join(f"  {line}" for line in _time_lines(found.time, unknown, args.profile)))
    if args.timeline:
        write_timeline(args.timeline, f"{args.kernel} on {plan.ranks} devices of {plan.target}", found.time, unknown)
    return 0 if certificate is None or certificate.ok else 1


@dataclass(frozen=True, slots=True)
class _NodeRun:
    """The outputs of each rank, with what it was run for; `unknown` says why there is no time, where one was asked for."""

    outputs: RankArrays
    certificate: NodeCertificate | None = None
    time: NodeTime | None = None
    unknown: str | None = None


def _system(plan: ModelPlan, args: argparse.Namespace) -> tuple[System | None, str | None]:
    """As `system_asked_for`; a run that is judged has no time."""
    if args.check:
        return None, "launches were judged (--check)"
    wanted = argparse.Namespace(**{**vars(args), "time": args.time or args.profile})
    system, unknown = system_asked_for(wanted, plan.target, plan.ranks)
    if args.timeline:
        require_time(unknown)
    return system, unknown


def _execute(
    session: NodeSession, inputs: Mapping[str, np.ndarray[Any, Any]], args: argparse.Namespace, system: System | None
) -> _NodeRun:
    told = RunProgress(len(session.plan.steps) * (session.plan.ranks if args.check else 1))
    if args.check:
        from tilefw.graph.node_certificate import certified_on_node
        from tilefw.graph.sampling import sample_of

        sample = sample_of(args.sample, args.seed or 0)
        certificate = certified_on_node(session, inputs, sample, lambda rank, launch: told(f"{launch.label} of rank {rank}"))
        return _NodeRun([dict(one.outputs) for one in certificate.ranks], certificate)
    if system is None:
        return _NodeRun(session.run(inputs, told))
    if not session.traces:
        return _NodeRun(session.run(inputs, told), unknown=f"the executor of {session.plan.target} records no execution (TFW0666)")
    from tilefw.graph.node_profile import profiled_on_node

    profile = profiled_on_node(session, inputs, system, told)
    return _NodeRun(profile.outputs, time=profile.time)


def _launches(time: NodeTime) -> list[dict[str, Any]]:
    """The launches in order, of every rank when it began, when its workgroups started, and when it ended."""
    return [
        {
            "rank": one.rank, "node": one.name, "begin": one.begin, "started": one.started, "end": one.end,
            "communicates": one.communicates,
        }
        for one in time.launches
    ]


def _time_lines(time: NodeTime | None, unknown: str | None, each: bool) -> list[str]:
    """The time for people; `each`: by launch too, the one that takes the slowest rank longest first."""
    lines = [rendered_time(time, unknown)]
    if time is None or not each:
        return lines
    by_number: dict[int, list[RankLaunchTime]] = {}
    made = Counter[int]()
    for one in time.launches:
        by_number.setdefault(made[one.rank], []).append(one)
        made[one.rank] += 1
    taken = sorted(by_number.values(), key=lambda ranks: -max(one.end - one.begin for one in ranks))
    for ranks in taken[:NODES_SHOWN]:
        seconds = [1e6 * (one.end - one.begin) for one in ranks]
        said = f"{min(seconds):.2f} to {max(seconds):.2f}" if len(ranks) > 1 else f"{seconds[0]:.2f}"
        lines.append(f"  {said} us  {ranks[0].name}{' (all ranks together)' if any(one.communicates for one in ranks) else ''}")
    if len(taken) > NODES_SHOWN:
        lines.append(f"  and {len(taken) - NODES_SHOWN} others")
    return lines


def _equal(name: str, outputs: Sequence[Mapping[str, np.ndarray[Any, Any]]]) -> bool:
    """Whether an output has the same bits on all devices."""
    return len({own[name].tobytes() for own in outputs}) == 1


def _rendered(fields: Mapping[str, Any], certificate: NodeCertificate | None) -> str:
    """The run for people."""
    headline = {None: "ran ", "pass": "pass", "fail": "FAIL"}[fields["verdict"]]
    where = f"on {fields['devices']} devices of {fields['target']} ({fields['executor']})"
    lines = [f"{headline}  {fields['model']} {where}", f"  on each {summary(fields)}"]
    for name, one in fields["outputs"].items():
        lines.append(f"  {name}: {one['dtype']}{one['shape']}, {'the same' if one['equal'] else 'another'} on each device")
    lines.append("  seconds: " + ", ".join(f"{name} {value:.3f}" for name, value in fields["seconds"].items()))
    if certificate is None:
        return "\n".join([*lines, "  unjudged: --check launches compares every launch with the reference"])
    for rank, one in enumerate(certificate.ranks):
        lines += [f"  rank {rank}:", *(f"  {line}" for line in judgement_lines(one))]
    return "\n".join(lines)
