"""Lane stream operations: vectors through the switch of the hemisphere where they lie, and away from the chip's edge to where they
go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilefw_spatial.isa import TYPES, latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import QueueInst
from tilefw_spatial.schedule.demand import DemandedIssue, DemandPlan
from tilefw_spatial.schedule.memory import Allocations, ArrayAccess, is_east, reach, spread
from tilefw_spatial.schedule.runs import runs
from tilefw_spatial.stream_program import LaneStreamOp


@dataclass(frozen=True, slots=True)
class _SwitchRoute:
    """The switch that a stream operation takes, its position, and its delay."""

    side: str
    at: int
    delay: int


def _route(stream_op: LaneStreamOp, machine: Machine, allocations: Allocations) -> _SwitchRoute:
    side = "E" if is_east(machine, allocations(stream_op.read.array)[0]) else "W"
    return _SwitchRoute(side, machine.position(f"SXM.{side}"), machine.delays[latency_key(stream_op.op, stream_op.dtype)])


def plan_lane(stream_op: LaneStreamOp, machine: Machine, allocations: Allocations, number: int) -> DemandPlan:
    """What the stream operation needs; `number` is that of its map. The first vector is at the switch at the stream operation's
    begin."""
    plan = DemandPlan(machine)
    route, points, width = _route(stream_op, machine, allocations), prod(stream_op.domain), TYPES[stream_op.dtype].nbytes
    west = route.side == "W"
    queues = plan.any_of([[(f"SXM.{route.side}{k}", [(0, points)])] for k in range(machine.switch_queues)])
    taken = plan.streams(west, width, [(route.at, 0, points)])
    put = plan.streams(not west, width, [(route.at, route.delay, route.delay + points)])
    plan.read(runs(stream_op.domain, stream_op.read), allocations(stream_op.read.array)[0], route.at, 0, taken)
    for allocation in allocations(stream_op.write.array):
        plan.write(runs(stream_op.domain, stream_op.write), allocation, route.at, route.delay, put)

    def make(choices: Sequence[int]) -> DemandedIssue:
        source, target = (group.bases[choices[group.pool]] for group in (taken, put))
        inst = QueueInst(stream_op.op, stream_op.dtype, points, a=source, dst=target, map=number)
        return DemandedIssue(f"SXM.{route.side}{choices[queues]}", 0, inst)

    plan.makes.append(make)
    return plan


def array_accesses(stream_op: LaneStreamOp, machine: Machine, allocations: Allocations) -> list[ArrayAccess]:
    """What the stream operation reads and writes of arrays."""
    route = _route(stream_op, machine, allocations)
    source, targets = allocations(stream_op.read.array)[:1], allocations(stream_op.write.array)
    issue = -reach(machine, source[0], route.at) - machine.delays["read"]
    stored = route.delay + max(reach(machine, allocation, route.at) for allocation in targets)
    return [
        ArrayAccess(stream_op.read.array, runs(stream_op.domain, stream_op.read), issue, False, spread(machine, source, route.at)),
        ArrayAccess(
            stream_op.write.array, runs(stream_op.domain, stream_op.write), stored, True, spread(machine, targets, route.at)
        ),
    ]
