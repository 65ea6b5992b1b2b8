"""Memory slices: ports of their banks, rows written before they are read and read before they are replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tilefw_spatial.check.accesses import Numbers, OrderedAccesses, RowAccesses, firsts
from tilefw_spatial.check.problem import BOUNDS, PORT, ROWS, CheckedBurst, Problem, at
from tilefw_spatial.check.progression import Progression, ProgressionSpan, meetings
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import RowAllocation, SpatialProgram

# Cycles from a gather's issue to its read (`isa.table`).
_GATHER = 4
_READERS, _WRITERS = frozenset({"RD", "GTH"}), frozenset({"WR", "SCT"})
_ANYWHERE = frozenset({"GTH", "SCT"})  # rows that data chooses
_BEFORE, _AFTER = -1, np.iinfo(np.int64).max
UnitKey = tuple[str, int]


def check_slices(
    machine: Machine, program: SpatialProgram, bursts: list[CheckedBurst]
) -> tuple[list[Problem], Mapping[tuple[object, ...], Numbers]]:
    """Problems of all slices, and what each access of a row finds there."""
    by_slice: defaultdict[UnitKey, list[CheckedBurst]] = defaultdict(list)
    problems: list[Problem] = []
    for burst in bursts:
        if OPS[burst.inst.op][0].unit != "MEM":
            continue
        by_slice[burst.unit, burst.chip].append(burst)
        problems += _outside(machine, burst)
    accesses: defaultdict[UnitKey, RowAccesses] = defaultdict(RowAccesses)
    _host(machine, program, accesses)
    found: dict[tuple[object, ...], Numbers] = {}
    for key, some in by_slice.items():
        problems += _ports(machine, some)
        for burst in some:
            _access(machine, burst, accesses[key])
    by_number = {burst.number: burst for burst in bursts}
    for (unit, chip), some in accesses.items():
        ordered = some.sorted()
        problems += _rows(machine, program, unit, ordered, by_number)
        found[unit, chip] = ordered.sources()
    return problems, found


def _late(machine: Machine, burst: CheckedBurst) -> int:
    """Cycles from issue until the bank is accessed."""
    name = OPS[burst.inst.op][0].name
    if name in _WRITERS:
        return machine.delays["write" if name == "WR" else "scatter"]
    return _GATHER if name == "GTH" else 0


def _outside(machine: Machine, burst: CheckedBurst) -> Iterator[Problem]:
    bank = burst.inst.address // machine.rows
    for row in (burst.address, burst.address + burst.step * (burst.count - 1)):
        if row // machine.rows != bank:
            yield at(BOUNDS, f"{burst} goes to row {row - bank * machine.rows} of a bank of {machine.rows}", burst)
            return


# --- ports -----------------------------------------------------------------------------------------------------------------


def _ports(machine: Machine, bursts: Sequence[CheckedBurst]) -> Iterator[Problem]:
    """A slice does one read and one write a cycle, of different banks."""
    spans = [ProgressionSpan(Progression(b.time + _late(machine, b), b.period, b.count), b) for b in bursts]
    reads, writes = ([span for span in spans if OPS[span.owner.inst.op][0].name in names] for names in (_READERS, _WRITERS))
    for kind, some in (("two reads", reads), ("two writes", writes)):
        for first, second, cycle in meetings(some):
            yield _clash(kind, first.owner, second.owner, cycle)
    for bank in range(machine.banks):
        for first, second, cycle in meetings([s for s in spans if s.owner.inst.address // machine.rows == bank]):
            names = {OPS[span.owner.inst.op][0].name in _READERS for span in (first, second)}
            if len(names) == 2:
                yield _clash(f"read and write of bank {bank}", first.owner, second.owner, cycle)


def _clash(kind: str, first: CheckedBurst, second: CheckedBurst, cycle: int) -> Problem:
    return at(PORT, f"{kind} in {second.unit} in cycle {cycle}: {second} and {first}", second, cycle)


# --- rows ------------------------------------------------------------------------------------------------------------------


def _access(machine: Machine, burst: CheckedBurst, accesses: RowAccesses) -> None:
    name = OPS[burst.inst.op][0].name
    points = np.arange(burst.count)
    times = burst.time + _late(machine, burst) + burst.period * points
    if name not in _ANYWHERE:
        rows = burst.address + burst.step * points
        accesses.add(rows, times, 0, name == "WR", burst.number, points)
        return
    # Any row from the first to the end of the bank: a scatter also hands on what it leaves.
    end = (burst.inst.address // machine.rows + 1) * machine.rows
    rows = np.arange(burst.inst.address, end)
    for point, time in zip(points.tolist(), times.tolist(), strict=True):
        accesses.add(rows, time, 0, False, burst.number, point)
        if name == "SCT":
            accesses.add(rows, time, 1, True, burst.number, point)


def _host(machine: Machine, program: SpatialProgram, accesses: defaultdict[UnitKey, RowAccesses]) -> None:
    """The host writes `in` and `const` before the first cycle, and reads `out` after the last."""
    for number, tensor in enumerate(program.tensors):
        writes = tensor.role != "out"
        for key, rows, vectors in _allocations(machine, tensor.allocation):
            accesses[key].add(rows, _BEFORE if writes else _AFTER, 0, writes, -1 - number, vectors)


def _allocations(machine: Machine, allocation: RowAllocation) -> Iterator[tuple[UnitKey, Numbers, Numbers]]:
    """Each run of rows of an array, with the vectors there."""
    for blocks in allocation.planes:
        for number, at_ in enumerate(blocks):
            segment, group = divmod(number, allocation.groups)
            vectors = np.arange(
                segment * allocation.segment + group, min(allocation.vectors, (segment + 1) * allocation.segment), allocation.groups
            )
            first = at_.bank * machine.rows + at_.row
            yield (at_.slice, at_.chip), first + np.arange(len(vectors)), vectors


def _rows(
    machine: Machine, program: SpatialProgram, unit: str, ordered: OrderedAccesses, bursts: Mapping[int, CheckedBurst]
) -> Iterator[Problem]:
    before = ordered.written_by()
    for key in firsts(ordered, np.flatnonzero(~ordered.writes & (before < 0))):
        row, who = int(ordered.row[key]), int(ordered.who[key])
        text = f"row {row % machine.rows} of bank {row // machine.rows} of {unit}"
        if who < 0:
            yield Problem(ROWS, f"{text} goes to the host as part of {program.tensors[-1 - who].name} and was never written")
        elif OPS[bursts[who].inst.op][0].name not in _ANYWHERE:
            yield at(ROWS, f"{bursts[who]} reads {text}, which was never written", bursts[who], int(ordered.time[key]))
    yield from _unread(machine, program, unit, ordered, bursts)


def _unread(
    machine: Machine, program: SpatialProgram, unit: str, ordered: OrderedAccesses, bursts: Mapping[int, CheckedBurst]
) -> Iterator[Problem]:
    """What is replaced before anybody reads it: its reader comes too late, or its successor too early.

    What is written last and never read is waste, and no error: a link may bring more than is needed."""
    for key in firsts(ordered, ordered.replaced()):
        row, who, by = int(ordered.row[key]), int(ordered.who[key]), int(ordered.who[key + 1])
        other = str(bursts[by]) if by >= 0 else f"that of {program.tensors[-1 - by].name}"
        text = f"row {row % machine.rows} of bank {row // machine.rows} of {unit}"
        if who < 0:
            yield Problem(ROWS, f"{text}, which holds {program.tensors[-1 - who].name}, is replaced by {other} before it is read")
        elif OPS[bursts[who].inst.op][0].name not in _ANYWHERE:
            when = f"in cycle {int(ordered.time[key])}, and {other} replaces it before it is read"
            yield at(ROWS, f"{bursts[who]} writes {text} {when}", bursts[who])
