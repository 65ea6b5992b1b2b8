"""Link stream operations: a byte plane of an array from one chip's slices to those of others, each vector at a known cycle.

A link takes a vector each `link_interval` cycles. Sends issue in cycles that are multiples of it, on every chip; since what is sent
arrives a fixed time later, receives then never coincide with sends in the queue that both ends' sends and receives share. Links of
a node are at the western switch: vectors flow west to leave, and east from where they arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilefw_spatial.machine import Machine
from tilefw_spatial.program import QueueInst, RowAllocation
from tilefw_spatial.schedule.demand import DemandedIssue, DemandGroup, DemandPlan
from tilefw_spatial.schedule.memory import ArrayAccess, reach, spread
from tilefw_spatial.schedule.runs import AccessRun, row_accesses
from tilefw_spatial.stream_program import Array, LinkStreamOp

NodeAllocations = Callable[[int, Array], Sequence[RowAllocation]]
"""Where an array of a chip lies."""


@dataclass(frozen=True, slots=True)
class End:
    """What a link stream operation needs of one chip."""

    chip: int
    plan: DemandPlan
    array_access: ArrayAccess


def plan_link(stream_op: LinkStreamOp, machine: Machine, allocations: NodeAllocations) -> list[End]:
    """What the stream operation needs of its chips, the sender first. The first vector is sent at its begin, a multiple of the
    interval."""
    found = [_sender(stream_op, machine, allocations(stream_op.source, stream_op.array)[0])]
    return found + [_receiver(stream_op, machine, chip, array, allocations(chip, array)) for chip, array in stream_op.targets]


def span(stream_op: LinkStreamOp, machine: Machine) -> int:
    """Cycles for which the stream operation has its links."""
    return stream_op.count * machine.link_interval


def _runs(stream_op: LinkStreamOp, machine: Machine) -> list[AccessRun]:
    return [AccessRun(0, stream_op.first, stream_op.count, 1, machine.link_interval)]


def _sender(stream_op: LinkStreamOp, machine: Machine, allocation: RowAllocation) -> End:
    plan, found = DemandPlan(machine), _runs(stream_op, machine)
    queues = [f"C2C.{machine.link(stream_op.source, chip)}" for chip, _ in stream_op.targets]
    at = machine.queues[queues[0]].position
    group = plan.streams(True, 1, [(at, 0, span(stream_op, machine))])
    for access in row_accesses(found, allocation):
        plan.read_rows(allocation.planes[stream_op.byte][access.block], access, at, 0, group, 0)
    for queue in queues:
        plan.use(f"{queue}/send", 0, span(stream_op, machine))
        _transmission(plan, stream_op, queue, 0, lambda stream: QueueInst("SND", a=stream), group)
    array_access = ArrayAccess(
        stream_op.array, found, -reach(machine, allocation, at) - machine.delays["read"], False, spread(machine, [allocation], at)
    )
    return End(stream_op.source, plan, array_access)


def _receiver(stream_op: LinkStreamOp, machine: Machine, chip: int, array: Array, allocations: Sequence[RowAllocation]) -> End:
    plan, found, arrival = DemandPlan(machine), _runs(stream_op, machine), machine.delays["link"]
    queue = f"C2C.{machine.link(chip, stream_op.source)}"
    at = machine.queues[queue].position
    group = plan.streams(False, 1, [(at, arrival, arrival + span(stream_op, machine))])
    for allocation in allocations:
        for access in row_accesses(found, allocation):
            plan.write_rows(allocation.planes[stream_op.byte][access.block], access, at, arrival, group, 0)
    plan.use(f"{queue}/receive", arrival, arrival + span(stream_op, machine))
    _transmission(plan, stream_op, queue, arrival, lambda stream: QueueInst("RCV", dst=stream), group)
    stored = arrival + max(reach(machine, allocation, at) for allocation in allocations)
    return End(chip, plan, ArrayAccess(array, found, stored, True, spread(machine, allocations, at)))


def _transmission(
    plan: DemandPlan, stream_op: LinkStreamOp, queue: str, cycle: int, inst: Callable[[int], QueueInst], group: DemandGroup
) -> None:
    """An instruction for each vector."""
    interval = plan.machine.link_interval

    def make(choices: Sequence[int]) -> DemandedIssue:
        return DemandedIssue(queue, cycle, inst(group.bases[choices[group.pool]]), stream_op.count, interval)

    plan.makes.append(make)
