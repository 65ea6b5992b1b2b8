"""Stream program to schedule: arrays get memory, operations get times, and the number of cycles is known before there is any
program.

Stream operations are placed one by one in the order of the program, each as early as its operands and the reservations allow: later
ones fill the gaps that earlier ones leave. A matrix stream operation is placed with the stream operation that drains it, so that
its accumulators are never taken without end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tilefw.api import CapacityError, InternalError
from tilefw_spatial.isa import latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import RowAllocation
from tilefw_spatial.schedule import lane, matrix, vector
from tilefw_spatial.schedule.accumulators import Accumulators
from tilefw_spatial.schedule.demand import DemandedIssue, DemandPlan
from tilefw_spatial.schedule.intervals import Span
from tilefw_spatial.schedule.matrix import ScheduledPlane, ScheduledSums
from tilefw_spatial.schedule.memory import ArrayAccess, StoredRows
from tilefw_spatial.schedule.placement import NEAR, Placement, place_arrays
from tilefw_spatial.schedule.reservations import Demand, Exhausted, Reservation, ReservationTable
from tilefw_spatial.stream_program import Array, LaneStreamOp, MatrixStreamOp, StreamProgram, VectorStreamOp, arrays_of


@dataclass(frozen=True, slots=True)
class ChipSchedule:
    """Arrays with their memory, instructions with their cycles. `cycles` is the prediction: the cycle behind the last event of the
    last superlane.

    `switch_maps` are the maps of lanes that instructions name by their index; `used` counts bytes of memory. Cycles of issues count
    from `begin`, until which a chip of a node waits for the others."""

    machine: Machine
    issues: Sequence[DemandedIssue]
    arrays: Sequence[tuple[Array, tuple[RowAllocation, ...]]]
    cycles: int
    used: int
    switch_maps: Sequence[tuple[int, ...]] = ()
    begin: int = 0


Try = tuple[int, bool]

TRIES: tuple[Try, ...] = ((NEAR, False), (0, False), (64, False), (0, True))
"""How much distance counts against busy slices, and whether arrays choose slices in the order in which they are first used
(`placement`): what is best depends on which stream operations overlap in time, and is tried."""

GOOD_ENOUGH = 0.95
"""Of the cycles, those in which the busiest queue is at work: no placement changes much then."""

WAITING = 0.75
"""Where no queue is at work for more of the cycles, stream operations wait for one another: only then is the order of arrays
tried."""


LONG = 512
"""Operations of a stream program of which only the beginning, `SAMPLE` operations, is scheduled with every candidate placement, and
all of it with the best: candidates differ in operations that compete for slices, which the beginning shows."""

SAMPLE = 128


def schedule(program: StreamProgram, machine: Machine, tries: Sequence[Try] = TRIES, again: int = 0) -> ChipSchedule:
    """Place and time a whole stream program, by the best of `tries`; each of them `again` so many times, its arrays placed by the
    times that they had. Raises CapacityError where arrays do not fit the chip."""
    if again:
        return _replaced(program, machine, tries, again)
    if len(program.stream_ops) > LONG and len(tries) > 1:
        near, by_use = _best(_beginning(program), machine, tries)[0]
        with suppress(CapacityError):
            return _scheduled(program, machine, near, by_use)
    return _best(program, machine, tries)[1]


def _beginning(program: StreamProgram) -> StreamProgram:
    stream_ops = program.stream_ops[:SAMPLE]
    drained = (part for stream_op in stream_ops if isinstance(stream_op, VectorStreamOp) for part in stream_op.drains)
    return StreamProgram(
        stream_ops, list(dict.fromkeys(array for stream_op in (*stream_ops, *drained) for array in arrays_of(stream_op)))
    )


def _best(program: StreamProgram, machine: Machine, tries: Sequence[Try]) -> tuple[Try, ChipSchedule]:
    """Of all tries the one that takes the fewest cycles."""
    best: tuple[Try, ChipSchedule] | None = None
    refused: CapacityError | None = None
    for near, by_use in tries:
        if by_use and best is not None and _busiest(best[1].issues) > WAITING * best[1].cycles:
            continue
        try:
            found = _scheduled(program, machine, near, by_use)
        except CapacityError as error:
            refused = error
            continue
        if best is None or found.cycles < best[1].cycles:
            best = (near, by_use), found
        if _busiest(best[1].issues) >= GOOD_ENOUGH * best[1].cycles:
            break
    if best is None:
        assert refused is not None, "some placement is tried"
        raise refused
    return best


def _replaced(program: StreamProgram, machine: Machine, tries: Sequence[Try], again: int) -> ChipSchedule:
    """The best schedule of all placements."""
    best: ChipSchedule | None = None
    refused: CapacityError | None = None
    for near, by_use in tries:
        times: Mapping[int, Span] | None = None
        for _ in range(1 + again):
            try:
                this = _run(program, machine, near, by_use, times, between=True)
            except CapacityError as error:
                refused = error
                break
            found = this.result(this.last + 1 + machine.skew)
            best = found if best is None or found.cycles < best.cycles else best
            times = {key: (begin, this.stores.ends[key] + 1) for key, begin in this.stores.begins.items()}
    if best is None:
        assert refused is not None, "some placement is tried"
        raise refused
    return best


def _scheduled(program: StreamProgram, machine: Machine, near: int, by_use: bool) -> ChipSchedule:
    this = _run(program, machine, near, by_use)
    return this.result(this.last + 1 + machine.skew)


def _run(
    program: StreamProgram, machine: Machine, near: int, by_use: bool, times: Mapping[int, Span] | None = None,
    between: bool = False,
) -> ChipScheduler:
    this = ChipScheduler(machine, place_arrays(program, machine, near, by_use, times=times), program.arrays, between=between)
    for stream_op in program.stream_ops:
        this.add(stream_op)
    return this


def _busiest(issues: Sequence[DemandedIssue]) -> int:
    """Cycles in which the busiest queue issues something."""
    busy: dict[str, int] = defaultdict(int)
    for issue in issues:
        busy[issue.queue] += issue.inst.burst * issue.repeats
    return max(busy.values(), default=0)


def last_event(machine: Machine, issue: DemandedIssue) -> int:
    """The last cycle, in the first superlane, in which an issue has an effect; weights are in their buffer with the last load."""
    key = latency_key(issue.inst.op, issue.inst.dtype)
    return issue.last + (machine.delays[key] if key and issue.inst.op != "LW" else 0)


@dataclass(frozen=True, slots=True)
class _Timed:
    """A stream operation that has its time."""

    plan: DemandPlan
    array_accesses: Sequence[ArrayAccess]
    demand: Demand
    reservation: Reservation


@dataclass(slots=True)
class ChipScheduler:
    """One chip's stream program as far as it is placed and timed."""

    machine: Machine
    placement: Placement
    arrays: Sequence[Array]
    reservations: ReservationTable = field(default_factory=ReservationTable)
    stores: StoredRows = field(default_factory=StoredRows)
    issues: list[DemandedIssue] = field(default_factory=list)
    products: dict[str, int] = field(default_factory=dict)  # so far, by plane
    switch_maps: dict[tuple[int, ...], int] = field(default_factory=dict)
    between: bool = False
    """Whether a stream operation may use slices between the bursts of another."""
    accumulators: Accumulators = field(init=False)

    def __post_init__(self) -> None:
        self.accumulators = Accumulators(self.machine)
        self.stores.before |= self.placement.before

    @property
    def last(self) -> int:
        """The last event so far, -1 before any."""
        return max((last_event(self.machine, issue) for issue in self.issues), default=-1)

    def result(self, cycles: int, begin: int = 0) -> ChipSchedule:
        """The schedule of a launch that takes so many cycles."""
        arrays = [(array, self.placement.of(array)) for array in self.arrays if array.vectors]
        return ChipSchedule(self.machine, self.issues, arrays, cycles, self.placement.used, tuple(self.switch_maps), begin)

    def add(self, stream_op: VectorStreamOp | MatrixStreamOp | LaneStreamOp) -> None:
        """Place the next stream operation of the program."""
        match stream_op:
            case VectorStreamOp(drains=()):
                self._keep(self._stream(stream_op, ()))
            case VectorStreamOp():
                self._drain(stream_op)
            case MatrixStreamOp():
                pass  # placed with the stream operation that drains it
            case LaneStreamOp():
                self._switch(stream_op)

    def _time(self, plan: DemandPlan, array_accesses: Sequence[ArrayAccess]) -> _Timed:
        """Take what a stream operation needs as early as it can be had."""
        plan.least = max(plan.least, self.stores.least(array_accesses))
        demand = plan.demand(self.between)
        try:
            return _Timed(plan, array_accesses, demand, self.reservations.reserve(demand))
        except Exhausted as error:
            wanted = plan.pools[error.pool].candidates[0][0][0]
            raise InternalError(f"a stream operation asks for more at one time than there is of {wanted} and the like") from error

    def _keep(self, timed: _Timed) -> None:
        """The stream operation stays where it is: its instructions, and when its results are there."""
        self.stores.add(timed.array_accesses, timed.reservation.begin)
        self.issues += timed.plan.issues(timed.reservation.begin, timed.reservation.choices)

    def _stream(self, stream_op: VectorStreamOp, sums: Sequence[ScheduledSums]) -> _Timed:
        plan = vector.plan_vector(stream_op, self.machine, self.placement.of, sums)
        return self._time(plan, vector.array_accesses(stream_op, self.machine, self.placement.of))

    def _switch(self, stream_op: LaneStreamOp) -> None:
        if stream_op.op not in ("PRM", "DST"):
            raise InternalError(f"the scheduler has no form for stream operations with {stream_op.op}")
        number = self.switch_maps.setdefault(stream_op.map, len(self.switch_maps))
        plan = lane.plan_lane(stream_op, self.machine, self.placement.of, number)
        self._keep(self._time(plan, lane.array_accesses(stream_op, self.machine, self.placement.of)))

    def _drain(self, stream_op: VectorStreamOp) -> None:
        """Products and the stream operation that drains them, together: later where all accumulators are taken meanwhile."""
        least = 0
        while True:
            products = [self._multiply(drained, least) for drained in stream_op.drains]
            sums = [found for found, _ in products]
            drained = self._stream(stream_op, sums)
            timed = [*(found for _, found in products), drained]
            blocked = self._slots(stream_op, sums, drained.reservation.begin)
            if blocked is None:
                break
            least = blocked
            for found in timed:
                self.reservations.release(found.demand, found.reservation)
        for found in timed:
            self._keep(found)
        for found in sums:
            self.products[found.plane.name] = self.products.get(found.plane.name, 0) + 1

    def _multiply(self, stream_op: MatrixStreamOp, least: int) -> tuple[ScheduledSums, _Timed]:
        plane = ScheduledPlane(stream_op.side, self._plane_number(stream_op), stream_op.dtype != "int8")
        planned = matrix.plan_matrix(stream_op, self.machine, self.placement.of, plane)
        planned.plan.least = max(least, self.accumulators.least(plane.members))
        timed = self._time(planned.plan, matrix.array_accesses(stream_op, self.machine, self.placement.of, planned))
        return matrix.sums_of(stream_op, self.machine, planned, timed.reservation.begin), timed

    def _slots(self, stream_op: VectorStreamOp, sums: Sequence[ScheduledSums], begin: int) -> int | None:
        """Give all sums their accumulators, from the first product to the drain; or none, and the cycle from which to try again."""
        for number, found in enumerate(sums):
            until = matrix.drain_time(self.machine, found, begin + stream_op.reads[number].time) + found.rows
            address = self.accumulators.take(found.plane.members, found.rows, found.begin, until)
            if address is None:
                for other in sums[:number]:
                    self.accumulators.release(other.plane.members)
                return self.accumulators.next_end(found.plane.members, found.begin, until)
            found.slot.address = address
        return None

    def _plane_number(self, stream_op: MatrixStreamOp) -> int:
        """int8 takes one plane, that with fewer products so far; other types the pair, by its first plane's queues."""
        if stream_op.dtype != "int8":
            return 0
        return min(range(self.machine.planes), key=lambda number: self.products.get(f"MXM.{stream_op.side}{number}", 0))
