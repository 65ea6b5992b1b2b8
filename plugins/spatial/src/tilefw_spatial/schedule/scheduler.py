"""Work to schedule: arrays get places, sweeps get times, and the number of cycles is known before there is any program.

Sweeps are placed one by one in the order of the work, each as early as its operands and the reservations allow: later ones fill
the gaps that earlier ones leave. A matrix sweep is placed with the sweep that drains it, so that its accumulators are never taken
without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilefw.api import InternalError
from tilefw_spatial.isa import latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Home
from tilefw_spatial.schedule import lane, matrix, vector
from tilefw_spatial.schedule.demand import Issue, Plan
from tilefw_spatial.schedule.matrix import Banks, Plane, Sums
from tilefw_spatial.schedule.memory import Stores, Touch
from tilefw_spatial.schedule.placement import Placement, place
from tilefw_spatial.schedule.reservations import Exhausted, Reservations
from tilefw_spatial.sweep import Array, LaneSweep, MatrixSweep, VectorSweep, Work


@dataclass(frozen=True, slots=True)
class Schedule:
    """Arrays in places, instructions at cycles. `cycles` is the prediction: the cycle behind the last event of the last superlane.

    `switch_maps` are the maps of lanes that instructions name by their index; `used` counts bytes of memory. Cycles of issues count
    from `begin`, until which a chip of a node waits for the others."""

    machine: Machine
    issues: Sequence[Issue]
    arrays: Sequence[tuple[Array, tuple[Home, ...]]]
    cycles: int
    used: int
    switch_maps: Sequence[tuple[int, ...]] = ()
    begin: int = 0


def schedule(work: Work, machine: Machine) -> Schedule:
    """Place and time all of the work. Raises CapacityError where arrays do not fit the chip."""
    placement = place(work, machine)
    this = ChipScheduler(machine, placement, work.arrays)
    for sweep in work.sweeps:
        this.add(sweep)
    return this.result(this.last + 1 + machine.skew)


def last_event(machine: Machine, issue: Issue) -> int:
    """The last cycle, in the first superlane, in which an issue has an effect; weights are in their buffer with the last load."""
    key = latency_key(issue.inst.op, issue.inst.dtype)
    return issue.last + (machine.delays[key] if key and issue.inst.op != "LW" else 0)


@dataclass(slots=True)
class ChipScheduler:
    """One chip's work as far as it is placed and timed."""

    machine: Machine
    placement: Placement
    arrays: Sequence[Array]
    reservations: Reservations = field(default_factory=Reservations)
    stores: Stores = field(default_factory=Stores)
    issues: list[Issue] = field(default_factory=list)
    products: dict[str, int] = field(default_factory=dict)  # so far, by plane
    banks: Banks = field(default_factory=Banks)
    switch_maps: dict[tuple[int, ...], int] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The last event so far, -1 before any."""
        return max((last_event(self.machine, issue) for issue in self.issues), default=-1)

    def result(self, cycles: int, begin: int = 0) -> Schedule:
        """The schedule of a launch that takes so many cycles."""
        arrays = [(array, self.placement.of(array)) for array in self.arrays if array.vectors]
        return Schedule(self.machine, self.issues, arrays, cycles, self.placement.used, tuple(self.switch_maps), begin)

    def add(self, sweep: VectorSweep | MatrixSweep | LaneSweep) -> None:
        match sweep:
            case VectorSweep():
                sums = [self._multiply(drained) for drained in sweep.drains]
                self._stream(sweep, sums)
            case MatrixSweep():
                pass  # placed with the sweep that drains it
            case LaneSweep():
                self._switch(sweep)

    def _place(self, plan: Plan, touches: Sequence[Touch]) -> int:
        """Time one sweep and keep its issues; its begin."""
        plan.least = max(plan.least, self.stores.least(touches))
        try:
            placed = self.reservations.place(plan.demand())
        except Exhausted as error:
            wanted = plan.pools[error.pool].candidates[0]
            raise InternalError(f"a sweep asks for more at one time than there is of {wanted} and the like") from error
        self.stores.add(touches, placed.begin)
        self.issues += plan.issues(placed.begin, placed.picks)
        return placed.begin

    def _stream(self, sweep: VectorSweep, sums: Sequence[Sums]) -> None:
        plan = vector.plan_vector(sweep, self.machine, self.placement.of, sums)
        begin = self._place(plan, vector.touches(sweep, self.machine, self.placement.of))
        for read, found in zip(sweep.reads, sums, strict=False):
            self.banks.note(found, matrix.drain_time(self.machine, found, begin + read.time))

    def _switch(self, sweep: LaneSweep) -> None:
        if sweep.op not in ("PRM", "DST"):
            raise InternalError(f"the scheduler has no form for sweeps of {sweep.op}")
        number = self.switch_maps.setdefault(sweep.map, len(self.switch_maps))
        plan = lane.plan_lane(sweep, self.machine, self.placement.of, number)
        self._place(plan, lane.touches(sweep, self.machine, self.placement.of))

    def _multiply(self, sweep: MatrixSweep) -> Sums:
        plane = Plane(sweep.side or "W", self._plane_number(sweep), sweep.dtype != "int8")
        done = self.products.get(plane.name, 0)
        planned = matrix.plan_matrix(sweep, self.machine, self.placement.of, plane, done % self.machine.weight_buffers, self.banks)
        begin = self._place(planned.plan, matrix.touches(sweep, self.machine, self.placement.of, planned))
        self.products[plane.name] = done + len(sweep.products)
        return matrix.sums_of(sweep, self.machine, planned, begin)

    def _plane_number(self, sweep: MatrixSweep) -> int:
        """int8 takes one plane, that with fewer products so far; other types the pair, by its first plane's queues."""
        if sweep.dtype != "int8":
            return 0
        side = sweep.side or "W"
        return min(range(self.machine.planes), key=lambda number: self.products.get(f"MXM.{side}{number}", 0))

