"""A schedule as a program: queues in order of time, idle cycles as NOPs, what repeats as REP, arrays as tensors of the host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tilefw_spatial.isa import TYPES
from tilefw_spatial.link_queue import idle, words
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import BoundParameter, ChipCode, HostTensor, QueueInst, RowAllocation, SpatialProgram
from tilefw_spatial.schedule import ChipSchedule, DemandedIssue

MAX_BURST = 4096
MAX_REPEATS = 4096
MAX_PERIOD = 65535
"""What the fields of a word hold (`isa`)."""

ALIGNING = "C2C.0"
"""The queue that brings a chip onto the time line of its node: the first of those that have DSK."""


def emit(
    schedules: Sequence[ChipSchedule], entry: str, grid: tuple[int, int, int], parameters: Sequence[BoundParameter],
    metadata: Mapping[str, object],
) -> SpatialProgram:
    """The program of the chips, one schedule each; all of them have the same cycles."""
    machine, cycles = schedules[0].machine, schedules[0].cycles
    codes = tuple(ChipCode(queues(schedule.issues, machine, schedule.begin), tuple(schedule.switch_maps)) for schedule in schedules)
    found = [entry for chip, schedule in enumerate(schedules) for entry in tensors(schedule, chip)]
    ordered = tuple(tensor for _, tensor in sorted(found, key=lambda entry: entry[0]))
    return SpatialProgram(entry, machine.name, machine.hash, grid, tuple(parameters), ordered, codes, cycles, metadata)


def tensors(schedule: ChipSchedule, chip: int = 0) -> Iterator[tuple[int, HostTensor]]:
    """Arrays that the host fills or reads, with their rank: one tensor a copy."""
    for array, allocations in schedule.arrays:
        if array.role not in ("in", "out", "const"):
            continue
        for number, allocation in enumerate(allocations if array.role != "out" else allocations[:1]):
            name = array.name if number == 0 else f"{array.name}.{number}"
            named = f"{name}@{chip}" if chip else name
            # Constants of types that NumPy lacks are codes until here.
            data = None if array.data is None else array.data.view(TYPES[allocation.dtype].numpy)
            yield array.rank, HostTensor(named, array.role, _on_chip(allocation, chip), array.transfers, data)


def _on_chip(allocation: RowAllocation, chip: int) -> RowAllocation:
    if not chip:
        return allocation
    return replace(allocation, planes=tuple(tuple(replace(rows, chip=chip) for rows in blocks) for blocks in allocation.planes))


def queues(issues: Iterable[DemandedIssue], machine: Machine, begin: int = 0) -> dict[str, tuple[QueueInst, ...]]:
    """The instructions of each queue that has any, in the machine's order of queues; `begin` as in a schedule."""
    by_queue: dict[str, list[DemandedIssue]] = defaultdict(list)
    for issue in issues:
        by_queue[issue.queue].append(issue)
    if begin:
        by_queue.setdefault(ALIGNING, [])
    found: dict[str, tuple[QueueInst, ...]] = {}
    for name in machine.queues:
        if name in by_queue:
            own = by_queue[name]
            kind = machine.queues[name].kind
            bank = machine.rows if kind == "MEM" else machine.accumulator_rows
            made = words((part for issue in own for part in split(issue)), 0) if kind == "C2C" else _queue(own, bank)
            found[name] = (*(_prologue(name, machine) if begin else ()), *made)
    return found


def _prologue(queue: str, machine: Machine) -> tuple[QueueInst, ...]:
    """One queue waits for the period that all chips begin together, wherever in the one before this chip has begun, and releases
    the others; all go on in one cycle."""
    if queue != ALIGNING:
        return (QueueInst("SYNC"),)
    return (QueueInst("NOP", imm=1), QueueInst("DSK"), QueueInst("NTFY"), QueueInst("NOP", imm=machine.delays["notify"] - 1))


def _queue(issues: list[DemandedIssue], bank: int) -> Iterator[QueueInst]:
    """One queue, whose rows or accumulators lie in banks of so many: an instruction issues when all before it have."""
    now = 0
    parts = in_order([part for issue in issues for part in split(issue)])
    for issue in coalesced(parts, bank):
        yield from idle(issue.cycle - now)
        yield issue.inst
        if issue.repeats > 1:
            yield QueueInst("REP", burst=issue.repeats - 1, imm=issue.period, step=issue.jump)
        now = issue.last + 1


def in_order(issues: Iterable[DemandedIssue]) -> list[DemandedIssue]:
    """Issues of one queue by their times. Of those between whose repetitions another issues, each repetition stands alone."""
    found = sorted(issues, key=lambda issue: issue.cycle)
    if all(first.last < then.cycle for first, then in pairwise(found)):
        return found
    return sorted((_moved(issue, k) for issue in found for k in range(issue.repeats)), key=lambda issue: issue.cycle)


def split(issue: DemandedIssue) -> Iterator[DemandedIssue]:
    """Issues whose bursts and repetitions fit the fields of a word."""
    if issue.repeats > 1 and (issue.inst.burst > MAX_BURST or issue.period > MAX_PERIOD):
        for k in range(issue.repeats):
            yield from split(_moved(issue, k))
    elif issue.repeats > MAX_REPEATS:
        for first in range(0, issue.repeats, MAX_REPEATS):
            repeats = min(MAX_REPEATS, issue.repeats - first)
            yield replace(_moved(issue, first), repeats=repeats, period=issue.period, jump=issue.jump)
    elif issue.inst.burst > MAX_BURST:
        yield from _short_bursts(issue)
    else:
        yield issue


def _moved(issue: DemandedIssue, k: int) -> DemandedIssue:
    """Repetition k alone."""
    inst = replace(issue.inst, address=issue.inst.address + k * issue.jump)
    return DemandedIssue(issue.queue, issue.cycle + k * issue.period, inst)


def _short_bursts(issue: DemandedIssue) -> Iterator[DemandedIssue]:
    """A burst as several; a reduction over time is divided between its groups of vectors."""
    inst = issue.inst
    reduces = inst.op.startswith("TRED")
    length = MAX_BURST // inst.step * inst.step if reduces else MAX_BURST
    stride = inst.step if issue.queue.startswith(("MEM", "MXM")) else 0
    for first in range(0, inst.burst, length):
        part = replace(inst, burst=min(length, inst.burst - first), address=inst.address + first * stride)
        yield DemandedIssue(issue.queue, issue.cycle + first, part)


def coalesced(issues: Iterable[DemandedIssue], bank: int) -> Iterator[DemandedIssue]:
    """Neighbours that are identical but for equal distances in time and address become one repeated instruction, which stays in its
    bank: an address is bank number · rows of a bank + row."""
    pending: DemandedIssue | None = None
    for issue in issues:
        joined = _joined(pending, issue, bank) if pending else None
        if joined is None and pending:
            yield pending
        pending = joined or issue
    if pending:
        yield pending


def _joined(first: DemandedIssue, then: DemandedIssue, bank: int) -> DemandedIssue | None:
    """The two as one, where `then` goes on with what `first` repeats."""
    if then.repeats > 1 or first.repeats >= MAX_REPEATS:
        return None
    if replace(then.inst, address=0) != replace(first.inst, address=0):
        return None
    if then.inst.address // bank != first.inst.address // bank:
        return None
    period = (then.cycle - first.cycle) // first.repeats
    jump = (then.inst.address - first.inst.address) // first.repeats
    if period > MAX_PERIOD or not -4096 <= jump < 4096:
        return None
    if first.repeats > 1 and (period, jump) != (first.period, first.jump):
        return None
    exact = then.cycle == first.cycle + first.repeats * period and then.inst.address == first.inst.address + first.repeats * jump
    return DemandedIssue(first.queue, first.cycle, first.inst, first.repeats + 1, period, jump) if exact else None
