"""Lane sweeps: vectors through the switch of the hemisphere where they lie, and away from the chip's edge to where they go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilefw_spatial.isa import TYPES, latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Inst
from tilefw_spatial.schedule.demand import DemandedIssue, DemandPlan
from tilefw_spatial.schedule.memory import Homes, MemoryTouch, is_east, reach, spread
from tilefw_spatial.schedule.runs import runs
from tilefw_spatial.sweep import LaneSweep


@dataclass(frozen=True, slots=True)
class _Way:
    """The switch that a sweep takes, where it stands, and when results come out of it."""

    side: str
    at: int
    delay: int


def _way(sweep: LaneSweep, machine: Machine, homes: Homes) -> _Way:
    side = "E" if is_east(machine, homes(sweep.read.array)[0]) else "W"
    return _Way(side, machine.position(f"SXM.{side}"), machine.delays[latency_key(sweep.op, sweep.dtype)])


def plan_lane(sweep: LaneSweep, machine: Machine, homes: Homes, number: int) -> DemandPlan:
    """What the sweep needs; `number` is that of its map. The first vector is at the switch at the sweep's begin."""
    plan = DemandPlan(machine)
    way, points, width = _way(sweep, machine, homes), prod(sweep.domain), TYPES[sweep.dtype].nbytes
    west = way.side == "W"
    queues = plan.any_of([[(f"SXM.{way.side}{k}", [(0, points)])] for k in range(machine.switch_queues)])
    taken = plan.streams(west, width, [(way.at, 0, points)])
    put = plan.streams(not west, width, [(way.at, way.delay, way.delay + points)])
    plan.read(runs(sweep.domain, sweep.read), homes(sweep.read.array)[0], way.at, 0, taken)
    for home in homes(sweep.write.array):
        plan.write(runs(sweep.domain, sweep.write), home, way.at, way.delay, put)

    def make(picks: Sequence[int]) -> DemandedIssue:
        source, target = (group.bases[picks[group.pool]] for group in (taken, put))
        inst = Inst(sweep.op, sweep.dtype, points, a=source, dst=target, map=number)
        return DemandedIssue(f"SXM.{way.side}{picks[queues]}", 0, inst)

    plan.makes.append(make)
    return plan


def touches(sweep: LaneSweep, machine: Machine, homes: Homes) -> list[MemoryTouch]:
    """What the sweep reads and writes of arrays."""
    way = _way(sweep, machine, homes)
    source, targets = homes(sweep.read.array)[:1], homes(sweep.write.array)
    issue = -reach(machine, source[0], way.at) - machine.delays["read"]
    stored = way.delay + max(reach(machine, home, way.at) for home in targets)
    return [
        MemoryTouch(sweep.read.array, runs(sweep.domain, sweep.read), issue, False, spread(machine, source, way.at)),
        MemoryTouch(sweep.write.array, runs(sweep.domain, sweep.write), stored, True, spread(machine, targets, way.at)),
    ]
