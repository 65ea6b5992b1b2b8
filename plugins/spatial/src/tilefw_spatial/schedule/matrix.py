"""Matrix sweeps: weights loaded, installed and multiplied, one product after the other without a gap, and the drain of the sums.

A product's MAC begins a pitch after the one before. While it runs, the next weights go into the other buffer: LW and IW issue at
fixed distances before the MAC that needs them, so that buffers alternate and one schedule serves every product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilefw.api import InternalError
from tilefw.api.integers import ceil_div
from tilefw_spatial.isa import ACCUMULATE_FLAG, HALF_FLAG, SUMS, TYPES, latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import Home, Inst
from tilefw_spatial.schedule.demand import DemandedIssue, DemandGroup, DemandPlan
from tilefw_spatial.schedule.memory import Homes, MemoryTouch, reach, spread
from tilefw_spatial.schedule.runs import AccessRun, ScheduledAccess, runs
from tilefw_spatial.sweep import MatrixSweep, Product


@dataclass(frozen=True, slots=True)
class ScheduledPlane:
    """A plane of one side, or both of it as a pair, which the first one's queues steer: int8 takes one, other types both."""

    side: str
    number: int
    pair: bool

    @property
    def unit(self) -> str:
        return f"MXM.{self.side}"

    @property
    def name(self) -> str:
        return f"MXM.{self.side}{self.number}"

    def queue(self, kind: str) -> str:
        """The queue for weights (`LW`), products (`MAC`) or drains (`DRN`)."""
        return f"{self.name}.{kind}"

    @property
    def members(self) -> tuple[str, ...]:
        """The planes that are at work."""
        return (self.name, f"MXM.{self.side}{self.number + 1}") if self.pair else (self.name,)


@dataclass(slots=True)
class Slot:
    """The address of a sweep's first accumulator: chosen when it is known how long they are needed."""

    address: int = -1


@dataclass(frozen=True, slots=True)
class ScheduledSums:
    """Accumulators that a sweep has filled: `rows` of them, of which the first can be drained at `ready` and every further one a
    cycle later; its first MAC issued at `begin`."""

    plane: ScheduledPlane
    slot: Slot
    rows: int
    dtype: str
    begin: int
    ready: int


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """A matrix sweep's demand, and the slot that its sums will have; `pitch` cycles from MAC to MAC."""

    plan: DemandPlan
    plane: ScheduledPlane
    slot: Slot
    pitch: int


def plan_matrix(sweep: MatrixSweep, machine: Machine, homes: Homes, plane: ScheduledPlane) -> MatrixPlan:
    """What the sweep needs; its first MAC issues at its begin."""
    _check(sweep, machine)
    pitch = max(sweep.rows, machine.delays["load_weights"] + machine.delays["install_weights"])
    planned = MatrixPlan(DemandPlan(machine), plane, Slot(), pitch)
    buffers = _buffers(planned, sweep)
    loads = _load_group(planned.plan, sweep, plane, homes, pitch)
    actives = _active_group(planned.plan, sweep, plane, pitch)
    for number in range(len(sweep.products)):
        _load(planned, sweep, number, homes, loads, buffers)
        _multiply(planned, sweep, number, homes, actives)
    return planned


def _check(sweep: MatrixSweep, machine: Machine) -> None:
    """What work must not ask: more rows than a bank has, weights that begin within a cycle's rows."""
    if sweep.rows > machine.accumulator_rows:
        raise InternalError(f"a matrix sweep of {sweep.rows} rows, more than the {machine.accumulator_rows} of a bank")
    for product in sweep.products:
        if product.first % product.weights.groups or product.weights.groups * TYPES[sweep.dtype].nbytes != machine.weight_streams:
            name, groups = product.weights.name, product.weights.groups
            raise InternalError(f"weights of '{name}' from vector {product.first} on, {groups} at a time")


def _buffers(planned: MatrixPlan, sweep: MatrixSweep) -> int:
    """The pool whose pick is the weight buffer of the first product; they alternate. One is taken from its LW to its last MAC."""
    machine, count = planned.plan.machine, planned.plan.machine.weight_buffers
    first, turns = load_time(machine), range(min(count, len(sweep.products)))
    spans = [
        [(n * planned.pitch + first, n * planned.pitch + sweep.rows) for n in range(turn, len(sweep.products), count)]
        for turn in turns
    ]
    return planned.plan.any_of([
        [(f"{name}/buffer{(pick + turn) % count}", spans[turn]) for name in planned.plane.members for turn in turns]
        for pick in range(count)
    ])


def weight_cycles(product: Product, home: Home) -> int:
    """Cycles of the LW of a product."""
    return ceil_div(product.depth, home.groups)


def load_time(machine: Machine) -> int:
    """When the LW of a product issues, counted from its MAC."""
    return -machine.delays["load_weights"] - machine.delays["install_weights"]


def _load_group(plan: DemandPlan, sweep: MatrixSweep, plane: ScheduledPlane, homes: Homes, pitch: int) -> DemandGroup:
    machine = plan.machine
    at, first = machine.position(plane.unit), load_time(machine)
    home = copy_for(homes(sweep.products[0].weights), plane.side)
    passes = [
        (at, number * pitch + first, number * pitch + first + weight_cycles(product, home))
        for number, product in enumerate(sweep.products)
    ]
    return plan.streams(plane.side == "W", machine.weight_streams, passes, last_first=True)


def _active_group(plan: DemandPlan, sweep: MatrixSweep, plane: ScheduledPlane, pitch: int) -> DemandGroup:
    at = plan.machine.position(plane.unit)
    passes = [(at, number * pitch, number * pitch + sweep.rows) for number in range(len(sweep.products))]
    return plan.streams(plane.side == "W", TYPES[sweep.dtype].nbytes, passes)


def copy_for(homes: Sequence[Home], side: str) -> Home:
    """The copy that the matrix unit of one side reads."""
    return homes[-1] if side == "E" else homes[0]


def _load(planned: MatrixPlan, sweep: MatrixSweep, number: int, homes: Homes, group: DemandGroup, buffers: int) -> None:
    """LW and IW of a product, and the RDs of its weights: 16 streams, that is 16/b rows of K a cycle."""
    plan, plane, product = planned.plan, planned.plane, sweep.products[number]
    machine, home, mac = plan.machine, copy_for(homes(product.weights), plane.side), number * planned.pitch
    cycles, issue = weight_cycles(product, home), mac + load_time(machine)
    width = TYPES[sweep.dtype].nbytes
    for neighbour, access in weight_rows(product.first, cycles, home):
        for byte, places in enumerate(home.planes):
            plane_number = neighbour * width + byte
            plan.read_rows(places[access.place], access, machine.position(plane.unit), issue, group, plane_number)
    queue, install = plane.queue("LW"), mac - machine.delays["install_weights"]
    plan.use(queue, issue, issue + cycles)
    plan.use(queue, install, install + 1)

    def load(picks: Sequence[int]) -> DemandedIssue:
        buffer = (picks[buffers] + number) % machine.weight_buffers
        return DemandedIssue(queue, issue, Inst("LW", sweep.dtype, cycles, a=group.bases[picks[group.pool]], imm=buffer))

    def put_in(picks: Sequence[int]) -> DemandedIssue:
        buffer = (picks[buffers] + number) % machine.weight_buffers
        return DemandedIssue(queue, install, Inst("IW", sweep.dtype, imm=buffer))

    plan.makes += [load, put_in]


def weight_rows(first: int, cycles: int, home: Home) -> Iterator[tuple[int, ScheduledAccess]]:
    """What is read for one LW, by which of the neighbours that come at one time; a set of weights may go on in another segment."""
    at = 0
    while at < cycles:
        segment, within = divmod(first + at * home.groups, home.segment)
        row = within // home.groups
        count = min(cycles - at, home.segment // home.groups - row)
        for neighbour in range(home.groups):
            yield neighbour, ScheduledAccess(segment * home.groups + neighbour, at, row, count, 1)
        at += count


def _multiply(planned: MatrixPlan, sweep: MatrixSweep, number: int, homes: Homes, group: DemandGroup) -> None:
    """The MAC of a product, and the RDs of its activations."""
    plan, plane, product, mac = planned.plan, planned.plane, sweep.products[number], number * planned.pitch
    home = copy_for(homes(product.activations.array), plane.side)
    plan.read(runs((sweep.rows,), product.activations), home, plan.machine.position(plane.unit), mac, group)
    queue = plane.queue("MAC")
    for name in plane.members:
        plan.use(f"{name}.MAC", mac, mac + sweep.rows)
    flags = ACCUMULATE_FLAG * (number > 0) | HALF_FLAG * (product.half == 1)

    def make(picks: Sequence[int]) -> DemandedIssue:
        stream, address = group.bases[picks[group.pool]], planned.slot.address
        inst = Inst("MAC", sweep.dtype, sweep.rows, a=stream, flags=flags, address=address, step=1, imm=product.depth)
        return DemandedIssue(queue, mac, inst)

    plan.makes.append(make)


def sums_of(sweep: MatrixSweep, machine: Machine, planned: MatrixPlan, begin: int) -> ScheduledSums:
    """The accumulators of a sweep that begins at `begin`."""
    last = begin + (len(sweep.products) - 1) * planned.pitch
    ready = last + machine.delays[latency_key("MAC", sweep.dtype)]
    return ScheduledSums(planned.plane, planned.slot, sweep.rows, SUMS[sweep.dtype], begin, ready)


def drain_time(machine: Machine, sums: ScheduledSums, time: int) -> int:
    """When the DRN issues whose first row is at the vector unit at `time`."""
    way = abs(machine.position("VXM") - machine.position(sums.plane.unit))
    return time - way - machine.delays["drain"]


def drain(plan: DemandPlan, sums: ScheduledSums, time: int, group: DemandGroup) -> None:
    """The DRN whose first row is at the vector unit at `time`."""
    machine = plan.machine
    issue = drain_time(machine, sums, time)
    queue = sums.plane.queue("DRN")
    plan.least = max(plan.least, sums.ready - issue)
    plan.use(queue, issue, issue + sums.rows)

    def make(picks: Sequence[int]) -> DemandedIssue:
        stream = group.bases[picks[group.pool]]
        return DemandedIssue(queue, issue, Inst("DRN", sums.dtype, sums.rows, address=sums.slot.address, step=1, dst=stream))

    plan.makes.append(make)


def touches(sweep: MatrixSweep, machine: Machine, homes: Homes, planned: MatrixPlan) -> list[MemoryTouch]:
    """What the sweep reads."""
    at, delay = machine.position(planned.plane.unit), machine.delays["read"]
    found: list[MemoryTouch] = []
    for number, product in enumerate(sweep.products):
        mac = number * planned.pitch
        for array, time in ((product.activations.array, mac), (product.weights, mac + load_time(machine))):
            home = copy_for(homes(array), planned.plane.side)
            issue = time - reach(machine, home, at) - delay
            if array is product.weights:
                cycles = weight_cycles(product, home)
                walked = [AccessRun(0, product.first, home.groups, 1, 0, cycles, 1, home.groups)]
            else:
                walked = runs((sweep.rows,), product.activations)
            found.append(MemoryTouch(array, walked, issue, False, spread(machine, [home], at)))
    return found

