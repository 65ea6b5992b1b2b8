"""Planes of the matrix unit: one product a cycle, weights that are whole and stay, accumulators set before and drained after."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilefw.api.integers import ceil_div
from tilefw_spatial.check.accesses import Numbers, OrderedAccesses, RowAccesses, firsts
from tilefw_spatial.check.flow import Edge
from tilefw_spatial.check.problem import BOUNDS, MATRIX, CheckedBurst, Problem, at
from tilefw_spatial.check.progression import Progression, ProgressionSpan, meetings
from tilefw_spatial.isa import ACCUMULATE_FLAG, OPS, TYPES, latency_key
from tilefw_spatial.machine import Machine

UnitKey = tuple[str, int, int]
_LOADS = frozenset({"LW", "IW"})


@dataclass(frozen=True, slots=True)
class _Installed:
    """What products issued from cycle `time` on are with: the load, the install, and the load that takes the buffer again."""

    time: int
    load: CheckedBurst
    install: CheckedBurst
    replaced: CheckedBurst | None


def check_planes(
    machine: Machine, bursts: list[CheckedBurst]
) -> tuple[list[Problem], list[Edge], Mapping[tuple[object, ...], Numbers]]:
    """Problems of all planes, which weights each product is with, and what each access of an accumulator finds there."""
    by_plane: defaultdict[UnitKey, list[CheckedBurst]] = defaultdict(list)
    for burst in bursts:
        if OPS[burst.inst.op][0].unit == "MXM":
            by_plane[burst.unit, burst.chip, burst.plane].append(burst)
    problems = list(_occupied(machine, by_plane))
    edges: list[Edge] = []
    found: dict[tuple[object, ...], Numbers] = {}
    by_number = {burst.number: burst for burst in bursts}
    for index, some in by_plane.items():
        installed = _installs(machine, [b for b in some if _name(b) in _LOADS], problems)
        used: set[int] = set()
        for burst in some:
            if _name(burst) == "MAC":
                _multiply(machine, burst, installed, problems, edges, used)
        problems += _unused(installed, used)
        ordered = _accumulators(machine, some, problems)
        if ordered is not None:
            problems += _sums(machine, index[0], ordered, by_number)
            found[index] = ordered.sources()
    return problems, edges, found


def _name(burst: CheckedBurst) -> str:
    return OPS[burst.inst.op][0].name


def _occupied(machine: Machine, by_plane: Mapping[UnitKey, Sequence[CheckedBurst]]) -> Iterator[Problem]:
    """A product of any type but int8 takes both planes of its side."""
    spans: defaultdict[UnitKey, list[ProgressionSpan[CheckedBurst]]] = defaultdict(list)
    for (unit, chip, plane), some in by_plane.items():
        for burst in some:
            if _name(burst) == "MAC":
                taken = (plane,) if burst.inst.dtype == "int8" else range(machine.planes)
                for number in taken:
                    spans[unit, chip, number].append(ProgressionSpan(Progression(burst.time, burst.period, burst.count), burst))
    for (unit, _, plane), some in spans.items():
        for first, second, cycle in meetings(some):
            yield at(MATRIX, f"plane {plane} of {unit} has two products in cycle {cycle}: {second.owner} and {first.owner}",
                     second.owner, cycle)


# --- weights ---------------------------------------------------------------------------------------------------------------


def _installs(machine: Machine, queue: Sequence[CheckedBurst], problems: list[Problem]) -> list[_Installed]:
    """The installs of one queue, in order of time, as the queue has them."""
    found: list[_Installed] = []
    loads: dict[int, CheckedBurst] = {}
    order = sorted(queue, key=lambda burst: burst.time)
    for index, burst in enumerate(order):
        buffer = burst.inst.imm
        if _name(burst) == "LW":
            loads[buffer] = burst
            continue
        load = loads.get(buffer)
        if load is None:
            problems.append(at(MATRIX, f"{burst} installs buffer {buffer}, which was never loaded", burst))
            continue
        if load.last >= burst.time or load.inst.dtype != burst.inst.dtype:
            problems.append(at(MATRIX, f"{burst} installs buffer {buffer} as {load} left it: not whole, or of another type", burst))
        again = next((b for b in order[index:] if _name(b) == "LW" and b.inst.imm == buffer), None)
        found.append(_Installed(burst.time + machine.delays["install_weights"], load, burst, again))
    return found


def _multiply(
    machine: Machine, burst: CheckedBurst, installed: Sequence[_Installed], problems: list[Problem], edges: list[Edge],
    used: set[int],
) -> None:
    """Each run of a product's points between two installs."""
    times, done = [i.time for i in installed], 0
    while done < burst.count:
        begin = burst.time + done * burst.period
        index = bisect_right(times, begin) - 1
        if index < 0:
            problems.append(at(MATRIX, f"{burst} multiplies in cycle {begin}: nothing is installed yet", burst, begin))
            return
        until = times[index + 1] if index + 1 < len(times) else burst.last + 1
        run = min(burst.count - done, ceil_div(until - begin, burst.period))
        end = begin + (run - 1) * burst.period
        with_ = installed[index]
        problems += _fits(burst, with_, begin, end, machine)
        used.add(with_.install.number)
        edges.append(Edge(burst.number, "weights", done, run, with_.load.number, with_.install.number, 0))
        done += run


def _fits(burst: CheckedBurst, with_: _Installed, begin: int, end: int, machine: Machine) -> Iterator[Problem]:
    """The load is of the product's type, deep enough, and not replaced while it is used."""
    load = with_.load
    depth = load.count * machine.weight_streams // TYPES[load.inst.dtype].nbytes
    if load.inst.dtype != burst.inst.dtype or depth < burst.inst.imm:
        yield at(MATRIX, f"{burst} wants {burst.inst.imm} rows of {burst.inst.dtype} weights: {load} brought {depth} of "
                 f"{load.inst.dtype}", burst, begin)
    if with_.replaced is not None and with_.replaced.time <= end:
        cycle = max(begin, with_.replaced.time)
        yield at(MATRIX, f"{burst} multiplies in cycle {cycle} by weights that {with_.replaced} replaces", burst, cycle)


def _unused(installed: Sequence[_Installed], used: set[int]) -> Iterator[Problem]:
    for with_ in installed:
        if with_.install.number not in used:
            yield at(MATRIX, f"{with_.install} installs weights that no product is with", with_.install)


# --- accumulators ----------------------------------------------------------------------------------------------------------


def _accumulators(machine: Machine, bursts: Sequence[CheckedBurst], problems: list[Problem]) -> OrderedAccesses | None:
    """Sums and drains of one plane; in one cycle a sum is there before it is drained. What is added reads what it adds to."""
    accesses, any_ = RowAccesses(), False
    for burst in bursts:
        name = _name(burst)
        if name in _LOADS:
            continue
        any_ = True
        points = np.arange(burst.count)
        rows = burst.address + burst.step * points
        bank = burst.inst.address // machine.accumulator_rows
        if (rows // machine.accumulator_rows != bank).any():
            problems.append(at(BOUNDS, f"{burst} leaves its bank of {machine.accumulator_rows} accumulators", burst))
        late = machine.delays[latency_key(burst.inst.op, burst.inst.dtype)] if name == "MAC" else 0
        times = burst.time + late + burst.period * points
        if name == "DRN":
            accesses.add(rows, times, 2, False, burst.number, points)
            continue
        if burst.inst.flags & ACCUMULATE_FLAG:
            accesses.add(rows, times, 0, False, burst.number, points)
        accesses.add(rows, times, 1, True, burst.number, points)
    return accesses.sorted() if any_ else None


def _sums(machine: Machine, unit: str, ordered: OrderedAccesses, bursts: Mapping[int, CheckedBurst]) -> Iterator[Problem]:
    def text(index: int) -> str:
        bank, row = divmod(int(ordered.row[index]), machine.accumulator_rows)
        return f"accumulator {row} of bank {bank} of {unit}"

    before = ordered.written_by()
    for index in firsts(ordered, np.flatnonzero(~ordered.writes & (before < 0))):
        burst = bursts[int(ordered.who[index])]
        does = "drains" if _name(burst) == "DRN" else "adds to"
        yield at(MATRIX, f"{burst} {does} {text(index)}, which was never set", burst, int(ordered.time[index]))
    for index in firsts(ordered, np.concatenate([ordered.replaced(), ordered.last_unread()])):
        burst = bursts[int(ordered.who[index])]
        yield at(MATRIX, f"{text(index)}, last changed by {burst} in cycle {int(ordered.time[index])}, is not drained", burst)
    drains = np.array([_name(bursts[int(who)]) == "DRN" for who in ordered.who.tolist()])
    same = np.concatenate([ordered.row[1:] == ordered.row[:-1], [False]])
    adds = np.concatenate([~ordered.writes[1:] & ~drains[1:], [False]])
    for index in firsts(ordered, np.flatnonzero(drains & same & adds)):
        burst = bursts[int(ordered.who[index])]
        after = bursts[int(ordered.who[index + 1])]
        yield at(MATRIX, f"{burst} drains {text(index)} in cycle {int(ordered.time[index])}, before {after} adds to it", burst)
