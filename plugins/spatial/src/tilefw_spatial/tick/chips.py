"""Programs executed a cycle and a superlane at a time: slow, for small programs, and without a thought of intervals.

    outcome = simulate(program, machine, [HostArray("x", x), ...])
    outcome.cycles, outcome.findings

Only the machine file, the table of instructions (with the arithmetic of ALUs) and the program's form are shared with the fast
simulator; both must give the same memory and the same cycles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tilefw.api import CodeError, Finding
from tilefw_spatial.checked import CHECK, arguments, broken, flags
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import ChipCode, SpatialProgram
from tilefw_spatial.tick import matrix, memory, switch, vector
from tilefw_spatial.tick.findings import CYCLES, TickFindings
from tilefw_spatial.tick.host import TickArray, collect, fill
from tilefw_spatial.tick.point import Point
from tilefw_spatial.tick.sequencer import Sequencer
from tilefw_spatial.tick.superlane import Phase, Steps, Superlane, TickSlice, Wires
from tilefw_spatial.valid import program_faults

LIMIT = 200_000
"""Cycles that a program may take; each costs some tenths of a millisecond."""

_MEANINGS: Mapping[str, Callable[[Superlane, Point], Steps]] = MappingProxyType({
    "RD": memory.read, "WR": memory.write, "GTH": memory.gather, "SCT": memory.scatter,
    "LW": matrix.load, "IW": matrix.install, "MAC": matrix.multiply, "DRN": matrix.drain,
    "LSH": switch.across, "PRM": switch.across, "DST": switch.distribute, "SELL": switch.merge, "TRN": switch.transpose,
    "SND": switch.send, "RCV": switch.receive,
})
_PHASES: Mapping[str, Phase] = MappingProxyType({"LW": Phase.LOAD, "RCV": Phase.ARRIVE})


@dataclass(frozen=True, slots=True)
class TickOutcome:
    """What a run gave: cycles until the last superlane saw the last event, and what was wrong."""

    cycles: int
    findings: tuple[Finding, ...]


class _TickChip:
    """One chip: its queues, its superlanes, and when waiting queues are notified."""

    def __init__(self, number: int, code: ChipCode, machine: Machine, wires: Wires, findings: TickFindings) -> None:
        self._machine = machine
        self.slices: defaultdict[str, TickSlice] = defaultdict(lambda: TickSlice(machine))
        maps = [np.array(lanes, np.int64) for lanes in code.maps]
        self._lanes = [
            Superlane(number, s, machine, maps, self.slices, wires, findings) for s in range(machine.superlanes)
        ]
        self._queues = [
            Sequencer(number, machine.queues[name], insts, machine, findings) for name, insts in code.queues.items()
        ]
        self._notices: list[int] = []

    @property
    def busy(self) -> bool:
        waiting = bool(self._notices)
        return waiting or any(not (q.ended or q.parked) for q in self._queues) or any(lane.busy for lane in self._lanes)

    def tick(self, now: int) -> bool:
        """One cycle of every queue and superlane; whether anything happened."""
        for queue in self._queues:
            self._issue(queue, now)
        happened = self._notify(now)
        for lane in self._lanes:
            happened |= lane.tick(now - lane.number)
        return happened

    def finish(self, now: int) -> None:
        for queue in self._queues:
            if queue.parked:
                queue.unreleased(now)

    def _notify(self, now: int) -> bool:
        """Every notice that is due releases the queues that wait; its last superlane has it `skew` cycles later."""
        due = [time for time in self._notices if time == now]
        for _ in due:
            for queue in self._queues:
                if queue.parked:
                    queue.parked = False
                    self._issue(queue, now)
        happened = any(time + self._machine.skew == now for time in self._notices)
        self._notices = [time for time in self._notices if time + self._machine.skew > now]
        return happened

    def _issue(self, queue: Sequencer, now: int) -> None:
        point = queue.tick(now)
        if point is None:
            return
        row = OPS[point.inst.op][0]
        if row.name == "NTFY":
            self._notices.append(now + self._machine.delays["notify"])
        elif row.unit != "ICU":
            meaning = vector.compute if row.unit == "VXM" else _MEANINGS[row.name]
            for lane in self._lanes:
                lane.start(now, _PHASES.get(row.name, Phase.WORK), meaning(lane, point))


def simulate(program: SpatialProgram, machine: Machine, arrays: Sequence[TickArray | None], limit: int = LIMIT) -> TickOutcome:
    """Run a program on arrays, one an argument, which are changed in place.

    Raises CodeError for another machine's, or one of too many cycles."""
    if program.machine_hash != machine.hash:
        raise CodeError(f"the program was made for another machine file than this {machine.name}", code="TFW0737")
    for fault in program_faults(machine, program):
        raise CodeError(f"{program.entry}: {fault}", code="TFW0736")
    findings, wires = TickFindings(), Wires({}, {})
    checks = flags(program)
    arrays = [*arrays[: len(arguments(program))], *(TickArray(CHECK, data) for data in checks)]
    chips = [_TickChip(number, code, machine, wires, findings) for number, code in enumerate(program.chips)]
    slices = [chip.slices for chip in chips]
    for tensor in program.tensors:
        if tensor.role in ("in", "const"):
            fill(tensor, arrays, slices, machine.lanes, findings)
    cycles = _run(chips, limit) or machine.skew
    if cycles != program.cycles:
        findings.whole(CYCLES, f"the program takes {cycles} cycles and says {program.cycles}")
    for tensor in program.tensors:
        if tensor.role == "out":
            collect(tensor, arrays, slices, machine.lanes, findings)
    return TickOutcome(cycles, (*findings.all, *broken(program, checks)))


def _run(chips: Sequence[_TickChip], limit: int) -> int:
    """All cycles; how many there are up to the last event."""
    now, last = 0, -1
    while any(chip.busy for chip in chips):
        if now >= limit:
            raise CodeError(f"the program runs for more than {limit} cycles", code="TFW0810")
        for chip in chips:
            if chip.tick(now):
                last = now
        now += 1
    for chip in chips:
        chip.finish(now)
    return last + 1
