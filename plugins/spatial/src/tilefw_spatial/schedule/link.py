"""Link sweeps: a byte plane of an array from one chip's slices to those of others, each vector at a known cycle.

A link takes a vector each `link_interval` cycles. Sends issue in cycles that are multiples of it, on every chip; since what is sent
arrives a fixed time later, receives then never meet sends in the queue that both ends' sends and receives share. Links of a node
are at the western switch: vectors flow west to leave, and east from where they arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Home, Inst
from tilefw_spatial.schedule.demand import DemandedIssue, DemandGroup, DemandPlan
from tilefw_spatial.schedule.memory import MemoryTouch, reach, spread
from tilefw_spatial.schedule.runs import AccessRun, accesses
from tilefw_spatial.sweep import Array, LinkSweep

NodeHomes = Callable[[int, Array], Sequence[Home]]
"""Where an array of a chip lies."""


@dataclass(frozen=True, slots=True)
class End:
    """What a link sweep needs of one chip."""

    chip: int
    plan: DemandPlan
    touch: MemoryTouch


def plan_link(sweep: LinkSweep, machine: Machine, homes: NodeHomes) -> list[End]:
    """What the sweep needs of its chips, the sender first. The first vector is sent at its begin, a multiple of the interval."""
    found = [_sender(sweep, machine, homes(sweep.source, sweep.array)[0])]
    return found + [_receiver(sweep, machine, chip, array, homes(chip, array)) for chip, array in sweep.targets]


def span(sweep: LinkSweep, machine: Machine) -> int:
    """Cycles for which the sweep has its links."""
    return sweep.count * machine.link_interval


def _runs(sweep: LinkSweep, machine: Machine) -> list[AccessRun]:
    return [AccessRun(0, sweep.first, sweep.count, 1, machine.link_interval)]


def _sender(sweep: LinkSweep, machine: Machine, home: Home) -> End:
    plan, found = DemandPlan(machine), _runs(sweep, machine)
    queues = [f"C2C.{machine.link(sweep.source, chip)}" for chip, _ in sweep.targets]
    at = machine.queues[queues[0]].position
    group = plan.streams(True, 1, [(at, 0, span(sweep, machine))])
    for access in accesses(found, home):
        plan.read_rows(home.planes[sweep.byte][access.place], access, at, 0, group, 0)
    for queue in queues:
        plan.use(f"{queue}/send", 0, span(sweep, machine))
        _train(plan, sweep, queue, 0, lambda stream: Inst("SND", a=stream), group)
    touch = MemoryTouch(sweep.array, found, -reach(machine, home, at) - machine.delays["read"], False, spread(machine, [home], at))
    return End(sweep.source, plan, touch)


def _receiver(sweep: LinkSweep, machine: Machine, chip: int, array: Array, homes: Sequence[Home]) -> End:
    plan, found, arrival = DemandPlan(machine), _runs(sweep, machine), machine.delays["link"]
    queue = f"C2C.{machine.link(chip, sweep.source)}"
    at = machine.queues[queue].position
    group = plan.streams(False, 1, [(at, arrival, arrival + span(sweep, machine))])
    for home in homes:
        for access in accesses(found, home):
            plan.write_rows(home.planes[sweep.byte][access.place], access, at, arrival, group, 0)
    plan.use(f"{queue}/receive", arrival, arrival + span(sweep, machine))
    _train(plan, sweep, queue, arrival, lambda stream: Inst("RCV", dst=stream), group)
    stored = arrival + max(reach(machine, home, at) for home in homes)
    return End(chip, plan, MemoryTouch(array, found, stored, True, spread(machine, homes, at)))


def _train(plan: DemandPlan, sweep: LinkSweep, queue: str, cycle: int, inst: Callable[[int], Inst], group: DemandGroup) -> None:
    """An instruction for each vector."""
    interval = plan.machine.link_interval

    def make(picks: Sequence[int]) -> DemandedIssue:
        return DemandedIssue(queue, cycle, inst(group.bases[picks[group.pool]]), sweep.count, interval)

    plan.makes.append(make)
