"""Matrix stream operations: weights loaded, installed and multiplied, one product after the other without a gap, and the drain of
the sums.

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
from tilefw_spatial.program import QueueInst, RowAllocation
from tilefw_spatial.schedule.demand import DemandedIssue, DemandGroup, DemandPlan
from tilefw_spatial.schedule.memory import Allocations, ArrayAccess, reach, spread
from tilefw_spatial.schedule.runs import AccessRun, RowAccess, runs
from tilefw_spatial.stream_program import MatrixStreamOp, Product


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
class AccumulatorSlot:
    """The address of a stream operation's first accumulator: chosen when it is known how long they are needed."""

    address: int = -1


@dataclass(frozen=True, slots=True)
class ScheduledSums:
    """Accumulators that a stream operation has filled: `rows` of them, of which the first can be drained at `ready` and every
    further one a cycle later; its first MAC issued at `begin`."""

    plane: ScheduledPlane
    slot: AccumulatorSlot
    rows: int
    dtype: str
    begin: int
    ready: int


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """A matrix stream operation's demand, and the slot that its sums will have; `pitch` cycles from MAC to MAC."""

    plan: DemandPlan
    plane: ScheduledPlane
    slot: AccumulatorSlot
    pitch: int


def plan_matrix(stream_op: MatrixStreamOp, machine: Machine, allocations: Allocations, plane: ScheduledPlane) -> MatrixPlan:
    """What the stream operation needs; its first MAC issues at its begin."""
    _check(stream_op, machine)
    pitch = max(stream_op.rows, machine.delays["load_weights"] + machine.delays["install_weights"])
    planned = MatrixPlan(DemandPlan(machine), plane, AccumulatorSlot(), pitch)
    buffers = _buffers(planned, stream_op)
    loads = _load_group(planned.plan, stream_op, plane, allocations, pitch)
    actives = _active_group(planned.plan, stream_op, plane, pitch)
    for number in range(len(stream_op.products)):
        _load(planned, stream_op, number, allocations, loads, buffers)
        _multiply(planned, stream_op, number, allocations, actives)
    return planned


def _check(stream_op: MatrixStreamOp, machine: Machine) -> None:
    """What a stream program must not ask for: more rows than a bank has, weights that begin within a cycle's rows."""
    if stream_op.rows > machine.accumulator_rows:
        raise InternalError(f"a matrix operation of {stream_op.rows} rows, more than the {machine.accumulator_rows} of a bank")
    for product in stream_op.products:
        name, groups = product.weights.name, product.weights.groups
        if product.first % groups or groups * TYPES[stream_op.dtype].nbytes != machine.weight_streams:
            raise InternalError(f"weights of '{name}' from vector {product.first} on, {groups} at a time")


def _buffers(planned: MatrixPlan, stream_op: MatrixStreamOp) -> int:
    """The pool whose choice is the weight buffer of the first product; they alternate. One is taken from its LW to its last MAC."""
    machine, count = planned.plan.machine, planned.plan.machine.weight_buffers
    first, buffers_used = load_time(machine), range(min(count, len(stream_op.products)))
    spans = [
        [(n * planned.pitch + first, n * planned.pitch + stream_op.rows) for n in range(buffer, len(stream_op.products), count)]
        for buffer in buffers_used
    ]
    return planned.plan.any_of([
        [(f"{name}/buffer{(choice + buffer) % count}", spans[buffer]) for name in planned.plane.members for buffer in buffers_used]
        for choice in range(count)
    ])


def weight_cycles(product: Product, allocation: RowAllocation) -> int:
    """Cycles of the LW of a product."""
    return ceil_div(product.depth, allocation.groups)


def load_time(machine: Machine) -> int:
    """When the LW of a product issues, counted from its MAC."""
    return -machine.delays["load_weights"] - machine.delays["install_weights"]


def _load_group(
    plan: DemandPlan, stream_op: MatrixStreamOp, plane: ScheduledPlane, allocations: Allocations, pitch: int
) -> DemandGroup:
    machine = plan.machine
    at, first = machine.position(plane.unit), load_time(machine)
    allocation = copy_for(allocations(stream_op.products[0].weights), plane.side)
    passes = [
        (at, number * pitch + first, number * pitch + first + weight_cycles(product, allocation))
        for number, product in enumerate(stream_op.products)
    ]
    return plan.streams(plane.side == "W", machine.weight_streams, passes, last_first=True)


def _active_group(plan: DemandPlan, stream_op: MatrixStreamOp, plane: ScheduledPlane, pitch: int) -> DemandGroup:
    at = plan.machine.position(plane.unit)
    passes = [(at, number * pitch, number * pitch + stream_op.rows) for number in range(len(stream_op.products))]
    return plan.streams(plane.side == "W", TYPES[stream_op.dtype].nbytes, passes)


def copy_for(allocations: Sequence[RowAllocation], side: str) -> RowAllocation:
    """The copy that the matrix unit of one side reads."""
    return allocations[-1] if side == "E" else allocations[0]


def _load(
    planned: MatrixPlan, stream_op: MatrixStreamOp, number: int, allocations: Allocations, group: DemandGroup, buffers: int
) -> None:
    """LW and IW of a product, and the RDs of its weights: 16 streams, that is 16/b rows of K a cycle."""
    plan, plane, product = planned.plan, planned.plane, stream_op.products[number]
    machine, allocation, mac = plan.machine, copy_for(allocations(product.weights), plane.side), number * planned.pitch
    cycles, issue = weight_cycles(product, allocation), mac + load_time(machine)
    width = TYPES[stream_op.dtype].nbytes
    for neighbour, access in weight_rows(product.first, cycles, allocation):
        for byte, blocks in enumerate(allocation.planes):
            plane_number = neighbour * width + byte
            plan.read_rows(blocks[access.block], access, machine.position(plane.unit), issue, group, plane_number)
    queue, install = plane.queue("LW"), mac - machine.delays["install_weights"]
    plan.use(queue, issue, issue + cycles)
    plan.use(queue, install, install + 1)

    def load(choices: Sequence[int]) -> DemandedIssue:
        buffer = (choices[buffers] + number) % machine.weight_buffers
        return DemandedIssue(queue, issue, QueueInst("LW", stream_op.dtype, cycles, a=group.bases[choices[group.pool]], imm=buffer))

    def put_in(choices: Sequence[int]) -> DemandedIssue:
        buffer = (choices[buffers] + number) % machine.weight_buffers
        return DemandedIssue(queue, install, QueueInst("IW", stream_op.dtype, imm=buffer))

    plan.makes += [load, put_in]


def weight_rows(first: int, cycles: int, allocation: RowAllocation) -> Iterator[tuple[int, RowAccess]]:
    """What is read for one LW, by which of the neighbours that come at one time; a set of weights may go on in another segment."""
    at = 0
    while at < cycles:
        segment, within = divmod(first + at * allocation.groups, allocation.segment)
        row = within // allocation.groups
        count = min(cycles - at, allocation.segment // allocation.groups - row)
        for neighbour in range(allocation.groups):
            yield neighbour, RowAccess(segment * allocation.groups + neighbour, at, row, count, 1)
        at += count


def _multiply(planned: MatrixPlan, stream_op: MatrixStreamOp, number: int, allocations: Allocations, group: DemandGroup) -> None:
    """The MAC of a product, and the RDs of its activations."""
    plan, plane, product, mac = planned.plan, planned.plane, stream_op.products[number], number * planned.pitch
    allocation = copy_for(allocations(product.activations.array), plane.side)
    plan.read(runs((stream_op.rows,), product.activations), allocation, plan.machine.position(plane.unit), mac, group)
    queue = plane.queue("MAC")
    for name in plane.members:
        plan.use(f"{name}.MAC", mac, mac + stream_op.rows)
    flags = ACCUMULATE_FLAG * (number > 0) | HALF_FLAG * (product.half == 1)

    def make(choices: Sequence[int]) -> DemandedIssue:
        stream, address = group.bases[choices[group.pool]], planned.slot.address
        inst = QueueInst("MAC", stream_op.dtype, stream_op.rows, a=stream, flags=flags, address=address, step=1, imm=product.depth)
        return DemandedIssue(queue, mac, inst)

    plan.makes.append(make)


def sums_of(stream_op: MatrixStreamOp, machine: Machine, planned: MatrixPlan, begin: int) -> ScheduledSums:
    """The accumulators of a stream operation that begins at `begin`."""
    last = begin + (len(stream_op.products) - 1) * planned.pitch
    ready = last + machine.delays[latency_key("MAC", stream_op.dtype)]
    return ScheduledSums(planned.plane, planned.slot, stream_op.rows, SUMS[stream_op.dtype], begin, ready)


def drain_time(machine: Machine, sums: ScheduledSums, time: int) -> int:
    """When the DRN issues whose first row is at the vector unit at `time`."""
    route = abs(machine.position("VXM") - machine.position(sums.plane.unit))
    return time - route - machine.delays["drain"]


def drain(plan: DemandPlan, sums: ScheduledSums, time: int, group: DemandGroup) -> None:
    """The DRN whose first row is at the vector unit at `time`."""
    machine = plan.machine
    issue = drain_time(machine, sums, time)
    queue = sums.plane.queue("DRN")
    plan.least = max(plan.least, sums.ready - issue)
    plan.use(queue, issue, issue + sums.rows)

    def make(choices: Sequence[int]) -> DemandedIssue:
        stream = group.bases[choices[group.pool]]
        return DemandedIssue(queue, issue, QueueInst("DRN", sums.dtype, sums.rows, address=sums.slot.address, step=1, dst=stream))

    plan.makes.append(make)


def array_accesses(stream_op: MatrixStreamOp, machine: Machine, allocations: Allocations, planned: MatrixPlan) -> list[ArrayAccess]:
    """What the stream operation reads."""
    at, delay = machine.position(planned.plane.unit), machine.delays["read"]
    found: list[ArrayAccess] = []
    for number, product in enumerate(stream_op.products):
        mac = number * planned.pitch
        for array, time in ((product.activations.array, mac), (product.weights, mac + load_time(machine))):
            allocation = copy_for(allocations(array), planned.plane.side)
            issue = time - reach(machine, allocation, at) - delay
            if array is product.weights:
                cycles = weight_cycles(product, allocation)
                access_runs = [AccessRun(0, product.first, allocation.groups, 1, 0, cycles, 1, allocation.groups)]
            else:
                access_runs = runs((stream_op.rows,), product.activations)
            found.append(ArrayAccess(array, access_runs, issue, False, spread(machine, [allocation], at)))
    return found

