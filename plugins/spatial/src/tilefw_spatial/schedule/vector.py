"""Vector stream operations: what they need of slices, streams, accumulators and ALUs, and the instructions that carry them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from tilefw.api import InternalError
from tilefw_spatial.isa import OPS, PUT_FLAG, TYPES, OperandKind, alu_operand, latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import QueueInst
from tilefw_spatial.schedule.copies import copy_numbers
from tilefw_spatial.schedule.demand import DemandedIssue, DemandGroup, DemandPlan
from tilefw_spatial.schedule.matrix import ScheduledSums, drain
from tilefw_spatial.schedule.memory import Allocations, ArrayAccess, is_east, reach, spread
from tilefw_spatial.schedule.runs import runs
from tilefw_spatial.stream_program import AluStep, OperandSource, Read, VectorStreamOp

_KINDS = MappingProxyType({
    "stream": OperandKind.STREAM, "alu": OperandKind.ALU, "imm": OperandKind.IMMEDIATE, "lane": OperandKind.LANE,
    "none": OperandKind.LANE,
})
_PARTS = "abc"


@dataclass(frozen=True, slots=True)
class _PlannedStreamOp:
    """A stream operation with what its parts share: where arrays lie, and the pools' numbers of its streams and ALUs."""

    stream_op: VectorStreamOp
    plan: DemandPlan
    allocations: Allocations
    points: int
    copies: Sequence[int]

    @property
    def machine(self) -> Machine:
        return self.plan.machine


def op_of(step: AluStep) -> str:
    """The step's row of the table with its variant, as `QueueInst.op` has it."""
    return f"{step.op}.{step.to}" if step.op == "CVT" else step.op


def plan_vector(
    stream_op: VectorStreamOp, machine: Machine, allocations: Allocations, sums: Sequence[ScheduledSums]
) -> DemandPlan:
    """What the stream operation needs. `sums` are the accumulators of its drains, in their order."""
    plan = DemandPlan(machine)
    this = _PlannedStreamOp(stream_op, plan, allocations, prod(stream_op.domain), copy_numbers(stream_op))
    inputs = [_input(this, number, read, sums) for number, read in enumerate(stream_op.reads)]
    outputs = _outputs(this)
    first_alu = len(plan.pools)
    for step in stream_op.steps:
        _alu_pool(this, step)
    for number in range(len(stream_op.steps)):
        _step(this, number, inputs, outputs, first_alu)
    return plan


def _input(this: _PlannedStreamOp, number: int, read: Read, sums: Sequence[ScheduledSums]) -> DemandGroup:
    """The streams of a read, which end at the vector unit."""
    machine, at = this.machine, this.machine.position("VXM")
    passes = [(at, read.time, read.time + this.points)]
    if number < len(sums):
        found = sums[number]
        group = this.plan.streams(found.plane.side == "E", TYPES[found.dtype].nbytes, passes)
        drain(this.plan, found, read.time, group)
        return group
    allocation = this.allocations(read.pattern.array)[this.copies[number]]
    group = this.plan.streams(is_east(machine, allocation), TYPES[allocation.dtype].nbytes, passes)
    this.plan.read(runs(this.stream_op.domain, read.pattern), allocation, at, read.time, group)
    return group


def result_time(machine: Machine, step: AluStep) -> int:
    """When the step's first result is at the vector unit."""
    return step.time + step.every - 1 + machine.delays[latency_key(op_of(step), step.dtype)]


def write_domain(domain: tuple[int, ...], every: int) -> tuple[int, ...]:
    """The domain without the innermost loops that a reduction over `every` points takes away."""
    while every > 1 and domain and every % domain[-1] == 0:
        every //= domain[-1]
        domain = domain[:-1]
    if every > 1:
        raise InternalError(f"a reduction of {every} points does not end with a loop of the domain")
    return domain


def _outputs(this: _PlannedStreamOp) -> dict[int, DemandGroup]:
    """The streams of each step whose result is written, and the writes."""
    machine, at = this.machine, this.machine.position("VXM")
    groups: dict[int, DemandGroup] = {}
    for write in this.stream_op.writes:
        step = this.stream_op.steps[write.step]
        time = result_time(machine, step)
        for allocation in this.allocations(write.pattern.array):
            west = not is_east(machine, allocation)
            if write.step not in groups:
                span = (at, time, time + this.points - step.every + 1)
                groups[write.step] = this.plan.streams(west, TYPES[allocation.dtype].nbytes, [span])
            if (groups[write.step].bases[0] >= machine.streams) != west:
                raise InternalError(f"results of one step for both hemispheres: '{write.pattern.array.name}'")
            found = runs(write_domain(this.stream_op.domain, step.every), write.pattern, step.every)
            this.plan.write(found, allocation, at, time, groups[write.step])
    return groups


def _alu_pool(this: _PlannedStreamOp, step: AluStep) -> None:
    """Any ALU that is free. After a slow row it stays taken until a fast one's results come later than its last one."""
    slow = this.machine.delays[latency_key(op_of(step), step.dtype)] - this.machine.delays["alu"]
    spans = [(step.time, step.time + this.points + slow)]
    this.plan.any_of([[(f"VXM.{number}", spans)] for number in range(this.machine.alus)])


def _step(
    this: _PlannedStreamOp, number: int, inputs: Sequence[DemandGroup], outputs: dict[int, DemandGroup], first_alu: int
) -> None:
    """One ALU's burst."""
    step = this.stream_op.steps[number]
    op = op_of(step)
    row, _ = OPS[op]
    used = {field.part: source for field, source in zip(row.operands, step.operands, strict=False)}
    output = outputs.get(number)

    def make(choices: Sequence[int]) -> DemandedIssue:
        fields: dict[str, int] = {"map": 0, "imm": 0}
        for position, part in enumerate(_PARTS):
            _operand(this, step, position, used.get(part, OperandSource("none")), fields, inputs, choices, first_alu)
        if output is not None:
            fields["dst"], fields["flags"] = output.bases[choices[output.pool]], PUT_FLAG
        if row.name == "TRED":
            fields["step"] = step.every
        return DemandedIssue(f"VXM.{choices[first_alu + number]}", step.time, QueueInst(op, step.dtype, this.points, **fields))

    this.plan.makes.append(make)


def _operand(
    this: _PlannedStreamOp, step: AluStep, position: int, source: OperandSource, fields: dict[str, int],
    inputs: Sequence[DemandGroup], choices: Sequence[int], first_alu: int,
) -> None:
    """Put an operand into the fields of the instruction (`isa.row` has their meaning)."""
    part = _PARTS[position]
    kind = _KINDS[source.kind]
    match source.kind:
        case "stream":
            group = inputs[source.index]
            fields[part] = group.bases[choices[group.pool]]
        case "alu":
            producer = this.stream_op.steps[source.index]
            wait = step.time - result_time(this.machine, producer)
            fields[part] = alu_operand(choices[first_alu + source.index], wait // this.machine.delay_step)
        case "imm":
            fields["imm"] = source.index
    fields["map"] |= kind << 2 * position | source.negate << 6 + position | source.absolute << 9 + position


def array_accesses(stream_op: VectorStreamOp, machine: Machine, allocations: Allocations) -> list[ArrayAccess]:
    """What the stream operation reads and writes of arrays."""
    found: list[ArrayAccess] = []
    copies = copy_numbers(stream_op)
    at, delay = machine.position("VXM"), machine.delays["read"]
    for number, read in enumerate(stream_op.reads[len(stream_op.drains) :], len(stream_op.drains)):
        allocation = allocations(read.pattern.array)[copies[number]]
        issue = read.time - reach(machine, allocation, at) - delay
        found.append(
            ArrayAccess(read.pattern.array, runs(stream_op.domain, read.pattern), issue, False, spread(machine, [allocation], at))
        )
    for write in stream_op.writes:
        step = stream_op.steps[write.step]
        access_runs = runs(write_domain(stream_op.domain, step.every), write.pattern, step.every)
        targets = allocations(write.pattern.array)
        route = max(reach(machine, allocation, at) for allocation in targets)
        found.append(
            ArrayAccess(write.pattern.array, access_runs, result_time(machine, step) + route, True, spread(machine, targets, at))
        )
    return found
