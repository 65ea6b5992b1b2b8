"""A run on a node whose every launch is judged, rank by rank: kernels by the reference interpreter as on one device, collectives by
what NumPy makes of what all ranks really had.

A sum is right within the bound of any order in which fp32 adds up (`tilefw.kernels.distributed.rank_results`); what is only moved
is right bit by bit. The shadow run adds up in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilefw.graph.certificate import (
    Bytes,
    Certificate,
    LaunchJudgement,
    PlanInterpreter,
    ShadowRun,
    judged,
    measured_error,
)
from tilefw.graph.collective_kinds import COLLECTIVE_KINDS
from tilefw.graph.kernel_graph import ModelTensor, RankTransfer
from tilefw.graph.node_session import NodeSession
from tilefw.graph.plan import ModelPlan
from tilefw.graph.rank_meaning import HOST_COLLECTIVES
from tilefw.graph.sampling import LaunchSample
from tilefw.kernels.distributed.rank_results import RankResult, summed
from tilefw.kernels.reference import comparable
from tilefw.tile.reference.accuracy import Comparison, compare
from tilefw.tile.reference.value import EvaluatedValue

Array = np.ndarray[Any, Any]
RankProgress = Callable[[int, LaunchJudgement], None]


@dataclass(frozen=True, slots=True)
class NodeCertificate:
    """A certificate of each rank."""

    ranks: tuple[Certificate, ...]

    @property
    def ok(self) -> bool:
        """Whether every launch of every rank is within its bounds."""
        return all(rank.ok for rank in self.ranks)


def certified_on_node(
    session: NodeSession, inputs: Mapping[str, Any], sample: LaunchSample | None = None, progress: RankProgress | None = None
) -> NodeCertificate:
    """Run a session's plan on `inputs`, and judge it as `certified` does on one device; `progress` is told the rank of each
    judgement."""
    plan = session.plan
    interpreter = PlanInterpreter(plan)
    written: list[dict[int, Bytes | None]] = [
        dict.fromkeys(tensor.buffer for tensor in plan.inputs.values()) for _ in session.ranks
    ]
    launches: list[list[LaunchJudgement]] = [[] for _ in session.ranks]
    with session.alone():
        session.begin(inputs)
        for number, step in enumerate(plan.steps):
            if step.transfer is not None:
                found = [[one] for one in _transferred(session, number, step.transfer, written)]
            else:
                found = [
                    list(judged(one, interpreter, number, written[rank], sample)) for rank, one in enumerate(session.ranks)
                ]
            for rank, judgements in enumerate(found):
                launches[rank] += judgements
                for judgement in judgements:
                    if progress is not None:
                        progress(rank, judgement)
        outputs = [one.outputs() for one in session.ranks]
    shadows = shadow_on_node(session, inputs)
    return NodeCertificate(tuple(
        Certificate(own, tuple(judgements), _measured(plan, own, due))
        for own, judgements, due in zip(outputs, launches, shadows, strict=True)
    ))


def _measured(plan: ModelPlan, own: Mapping[str, Array], due: Mapping[str, Array]) -> dict[str, Any]:
    return {name: measured_error(plan.outputs[name], own[name], due[name]) for name in own}


def shadow_on_node(session: NodeSession, inputs: Mapping[str, Any]) -> list[dict[str, Array]]:
    """The outputs of each rank in a run on the reference interpreter that rounds nothing it stores."""
    plan = session.plan
    runs = [
        ShadowRun(plan.of_rank(rank), given) for rank, given in enumerate(session.rank_inputs(inputs))
    ]
    for step in plan.steps:
        if step.transfer is None:
            for run in runs:
                run.step(step)
            continue
        transfer = step.transfer
        values = HOST_COLLECTIVES[transfer.collective]([run.values(transfer.source) for run in runs])
        for run, array in zip(runs, values, strict=True):
            run.replace(transfer.result, array)
    return [run.outputs() for run in runs]


def _transferred(
    session: NodeSession, number: int, transfer: RankTransfer, written: Sequence[dict[int, Bytes | None]]
) -> list[LaunchJudgement]:
    """Launch a collective and judge what each rank has of it; what it reads must be as it was."""
    step = session.plan.steps[number]
    before = [one.array(transfer.source) for one in session.ranks]
    session.launch(number)
    due = _expected(transfer.collective, before, transfer.source)
    found: list[LaunchJudgement] = []
    for rank, one in enumerate(session.ranks):
        written[rank][transfer.result.buffer] = None
        names = [session.plan.buffers[tensor.buffer].name for tensor in (transfer.source, transfer.result)]
        kept = _same(one.array(transfer.source), before[rank])
        made = _within(transfer.result, one.array(transfer.result), due[rank])
        comparisons = {f"{names[0]} (read)": kept, names[1]: made}
        kernel = session.plan.kernels[step.kernel].entry.name
        found.append(LaunchJudgement(step.label, kernel, comparisons, prod(step.grid), prod(step.grid)))
    return found


def _expected(kind: str, arrays: Sequence[Array], tensor: ModelTensor) -> list[RankResult | Array]:
    """What each rank is to have: a sum with its bounds, or the bits."""
    if not COLLECTIVE_KINDS[kind].sums:
        return list(HOST_COLLECTIVES[kind](arrays))
    whole = summed([comparable(array, tensor.dtype) for array in arrays])
    ranks = len(arrays)
    return [whole if kind == "all_reduce" else whole.part(ranks, rank) for rank in range(ranks)]


def _within(tensor: ModelTensor, array: Array, due: RankResult | Array) -> Comparison:
    if not isinstance(due, RankResult):
        return _same(array, due)
    return compare(comparable(array, tensor.dtype), EvaluatedValue(due.value, due.bound_of(array.dtype)))


def _same(array: Array, due: Array) -> Comparison:
    """Whether two arrays in storage form have the same bits."""
    found, wanted = (one.reshape(-1).view(np.uint8) for one in (array, due))
    return compare(found.astype(np.int64), EvaluatedValue(wanted.astype(np.int64)))
