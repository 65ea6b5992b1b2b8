"""Several chips on one time line: each has reservations of its own, and a link stream operation is placed where it is possible on
all its chips.

Chips begin at any cycle of their counters' period. One queue of each waits for the next period and then releases the others: from
then on (`begin`) all count the same cycles, and what one sends at a cycle another receives at a known one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefw.api.integers import round_up
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import RowAllocation
from tilefw_spatial.schedule.demand import DemandPlan
from tilefw_spatial.schedule.link import plan_link
from tilefw_spatial.schedule.memory import StoredRows
from tilefw_spatial.schedule.placement import place_arrays
from tilefw_spatial.schedule.reservations import Demand, Reservation, ReservationTable
from tilefw_spatial.schedule.scheduler import ChipSchedule, ChipScheduler
from tilefw_spatial.stream_program import Array, LinkStreamOp, NodeStreamProgram, StreamOp


def common_begin(machine: Machine) -> int:
    """The cycle at which queues are released that wait for the first common period of all chips."""
    return machine.epoch + machine.delays["notify"]


def schedule_node(program: NodeStreamProgram, machine: Machine) -> list[ChipSchedule]:
    """A schedule for each chip; all take the same cycles. Raises CapacityError where arrays do not fit a chip."""
    stores = StoredRows()
    linked = {id(array) for item in program.order if isinstance(item, LinkStreamOp) for array in _linked_arrays(item)}
    chips = [
        ChipScheduler(machine, place_arrays(part, machine, order=_own(program, chip), kept=linked), part.arrays, stores=stores)
        for chip, part in enumerate(program.chips)
    ]
    node = _Node(machine, chips, stores)
    for item in program.order:
        if isinstance(item, LinkStreamOp):
            node.send(item)
        else:
            chip, stream_op = item
            chips[chip].add(stream_op)
    begin = common_begin(machine) if linked else 0
    cycles = begin + max(chip.last for chip in chips) + 1 + machine.skew
    return [chip.result(cycles, begin) for chip in chips]


def _own(program: NodeStreamProgram, chip: int) -> list[StreamOp]:
    """The stream operations of one chip in the order in which they are timed."""
    return [item[1] for item in program.order if not isinstance(item, LinkStreamOp) and item[0] == chip]


def _linked_arrays(stream_op: LinkStreamOp) -> list[Array]:
    return [stream_op.array, *(array for _, array in stream_op.targets)]


@dataclass(slots=True)
class _Node:
    machine: Machine
    chips: list[ChipScheduler]
    stores: StoredRows

    def send(self, stream_op: LinkStreamOp) -> None:
        """Place a link stream operation on all chips that it concerns."""
        ends = plan_link(stream_op, self.machine, self._allocations)
        for end in ends:
            end.plan.least = max(end.plan.least, self.stores.least([end.array_access]))
        tables = [self.chips[end.chip].reservations for end in ends]
        demands = [end.plan.demand() for end in ends]
        found = reserved_together(list(zip(tables, demands, strict=True)), self.machine.link_interval)
        for end, table, demand, reservation in zip(ends, tables, demands, found, strict=True):
            table.claim(demand, reservation)
            self._keep(end.chip, end.plan, reservation)
            self.stores.add([end.array_access], reservation.begin)

    def _keep(self, chip: int, plan: DemandPlan, reservation: Reservation) -> None:
        self.chips[chip].issues += plan.issues(reservation.begin, reservation.choices)

    def _allocations(self, chip: int, array: Array) -> tuple[RowAllocation, ...]:
        return self.chips[chip].placement.of(array)


def reserved_together(wanted: list[tuple[ReservationTable, Demand]], multiple: int) -> list[Reservation]:
    """The earliest begin, a multiple of a number, at which every table has what is requested of it."""
    begin = max(demand.least for _, demand in wanted)
    while True:
        begin = round_up(begin, multiple)
        found = [table.find(demand, begin) for table, demand in wanted]
        latest = max(reservation.begin for reservation in found)
        if latest == begin:
            return found
        begin = latest
