"""Several chips on one time line: each has reservations of its own, and a link sweep is placed where all its chips have room.

Chips begin at any cycle of their counters' period. One queue of each waits for the next period and then releases the others: from
then on (`begin`) all count the same cycles, and what one sends at a cycle another receives at a known one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.integers import round_up
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Home
from tilefw_spatial.schedule.demand import DemandPlan
from tilefw_spatial.schedule.link import plan_link
from tilefw_spatial.schedule.memory import StoredRows
from tilefw_spatial.schedule.placement import place
from tilefw_spatial.schedule.reservations import Demand, PlacedItem, ScheduleReservations
from tilefw_spatial.schedule.scheduler import ChipScheduler, Schedule
from tilefw_spatial.sweep import Array, LinkSweep, NodeWork, Sweep


def common_begin(machine: Machine) -> int:
    """The cycle at which queues are released that wait for the first common period of all chips."""
    return machine.epoch + machine.delays["notify"]


def schedule_node(work: NodeWork, machine: Machine) -> list[Schedule]:
    """A schedule for each chip; all take the same cycles. Raises CapacityError where arrays do not fit a chip."""
    stores = StoredRows()
    linked = {id(array) for item in work.order if isinstance(item, LinkSweep) for array in _touched(item)}
    chips = [
        ChipScheduler(machine, place(part, machine, order=_own(work, chip), kept=linked), part.arrays, stores=stores)
        for chip, part in enumerate(work.chips)
    ]
    node = _Node(machine, chips, stores)
    for item in work.order:
        if isinstance(item, LinkSweep):
            node.send(item)
        else:
            chip, sweep = item
            chips[chip].add(sweep)
    begin = common_begin(machine) if linked else 0
    cycles = begin + max(chip.last for chip in chips) + 1 + machine.skew
    return [chip.result(cycles, begin) for chip in chips]


def _own(work: NodeWork, chip: int) -> list[Sweep]:
    """The sweeps of one chip in the order in which they are timed."""
    return [item[1] for item in work.order if not isinstance(item, LinkSweep) and item[0] == chip]


def _touched(sweep: LinkSweep) -> list[Array]:
    return [sweep.array, *(array for _, array in sweep.targets)]


@dataclass(slots=True)
class _Node:
    machine: Machine
    chips: list[ChipScheduler]
    stores: StoredRows

    def send(self, sweep: LinkSweep) -> None:
        """Place a link sweep on all chips that it concerns."""
        ends = plan_link(sweep, self.machine, self._homes)
        for end in ends:
            end.plan.least = max(end.plan.least, self.stores.least([end.touch]))
        tables = [self.chips[end.chip].reservations for end in ends]
        demands = [end.plan.demand() for end in ends]
        found = placed_together(list(zip(tables, demands, strict=True)), self.machine.link_interval)
        for end, table, demand, placed in zip(ends, tables, demands, found, strict=True):
            table.claim(demand, placed)
            self._keep(end.chip, end.plan, placed)
            self.stores.add([end.touch], placed.begin)

    def _keep(self, chip: int, plan: DemandPlan, placed: PlacedItem) -> None:
        self.chips[chip].issues += plan.issues(placed.begin, placed.picks)

    def _homes(self, chip: int, array: Array) -> tuple[Home, ...]:
        return self.chips[chip].placement.of(array)


def placed_together(wanted: list[tuple[ScheduleReservations, Demand]], multiple: int) -> list[PlacedItem]:
    """The earliest begin, a multiple of a number, at which every table has what is wanted of it."""
    begin = max(demand.least for _, demand in wanted)
    while True:
        begin = round_up(begin, multiple)
        found = [table.find(demand, begin) for table, demand in wanted]
        latest = max(placed.begin for placed in found)
        if latest == begin:
            return found
        begin = latest
