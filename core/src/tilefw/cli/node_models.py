"""`tilefw run MODEL --devices N`: a model of several devices on a node of simulated ones."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError
from tilefw.cli.array_files import write_arrays
from tilefw.cli.model_report import RunProgress, certificate_to_json, facts, judgement_lines, summary
from tilefw.cli.output import print_json

if TYPE_CHECKING:
    import numpy as np

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
    for name in ("profile", "timeline"):
        if plan.on_node and getattr(args, name):
            raise UsageError(f"--{name} is of one device, and {args.kernel} is a model of {plan.ranks}", code="TFW0917")
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
    simulated = {**options, "executor": "sim"} if "executor" in options else options  # a node has no other
    with NodeSession(plan, **simulated) as session:
        outputs, certificate = _execute(session, inputs, args)
        executor, counters = session.executor, session.counters
    if args.out:
        write_arrays(args.out, {name: np.stack([own[name] for own in outputs]) for name in plan.outputs})
    fields = {
        "model": args.kernel, "target": plan.target, "executor": executor, "devices": plan.ranks, **facts(plan),
        "seconds": {"prepare": prepared, "run": time.perf_counter() - begun}, "counters": counters,
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
    return 0 if certificate is None or certificate.ok else 1


def _execute(
    session: NodeSession, inputs: Mapping[str, np.ndarray[Any, Any]], args: argparse.Namespace
) -> tuple[RankArrays, NodeCertificate | None]:
    if not args.check:
        return session.run(inputs, RunProgress(len(session.plan.steps))), None
    from tilefw.graph.node_certificate import certified_on_node
    from tilefw.graph.sampling import sample_of

    told = RunProgress(len(session.plan.steps) * session.plan.ranks)
    sample = sample_of(args.sample, args.seed or 0)
    certificate = certified_on_node(session, inputs, sample, lambda rank, launch: told(f"{launch.label} of rank {rank}"))
    return [dict(one.outputs) for one in certificate.ranks], certificate


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
