"""Programs executed a burst at a time, in an order that gives what the order of cycles gives.

Every point of a burst has a cycle at which it is due: all that it depends on is due earlier. Bursts are taken from a heap by their
first point that is due, and done as far as their operands are there: then all points due earlier, of any burst, have been done. To
do a burst's later points ahead of others is right for streams and results of ALUs, whose values nobody changes; where state changes
(rows of slices, accumulators, installed weights) a burst ends where another must come first, and goes back to the heap.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from tilefw.api import CodeError
from tilefw.api.integers import ceil_div
from tilefw_spatial.isa import OPS, latency_key
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import SpatialProgram
from tilefw_spatial.simulate import matrix_unit, memory_unit, switch_unit, vector_unit
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.chip import SpatialChip
from tilefw_spatial.simulate.findings import Findings
from tilefw_spatial.simulate.issue import QueueIssue
from tilefw_spatial.simulate.links import Links
from tilefw_spatial.simulate.matrix_unit import MatrixUnits
from tilefw_spatial.simulate.precedence import points_before

_WRITERS = frozenset({"WR", "SCT", "MAC", "RCV"})  # before readers of the same cycle
# What reads and writes rows, of a slice or of accumulators: those that write them, and those whose rows depend on data.
_TOUCHING = frozenset({"RD", "WR", "GTH", "SCT", "MAC", "DRN"})
_CHANGING = frozenset({"WR", "SCT", "MAC"})
_ANYWHERE = frozenset({"GTH", "SCT"})
_UNTIMED = frozenset({"LW"})  # its last point is its last event


@dataclass(slots=True)
class Simulation:
    """A program on its chips. `run` executes it; the host's arrays are moved before and after by whoever made it."""

    program: SpatialProgram
    machine: Machine
    findings: Findings
    budget: int
    chips: list[SpatialChip] = field(default_factory=list)
    bursts: list[Burst] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.program.machine_hash != self.machine.hash:
            raise CodeError(
                f"the program was made for another machine file than this {self.machine.name}", code="TFW0737",
                note=f"made for {self.program.machine_hash[:16]}, this is {self.machine.hash[:16]}",
            )
        self.chips = [SpatialChip(i, self.machine, code, self.findings) for i, code in enumerate(self.program.chips)]
        for chip, code in zip(self.chips, self.program.chips, strict=True):
            issued = QueueIssue(code, self.machine, chip.number, self.findings, self.budget)
            self.bursts += [burst for bursts in issued.queues.values() for burst in bursts]

    @property
    def cycles(self) -> int:
        """Cycles until the last superlane has seen the last event."""
        timed = (burst for burst in self.bursts if not burst.inst.op.startswith("CFG"))
        return 1 + self.machine.skew + max((last_event(self.machine, burst) for burst in timed), default=-1)

    def run(self) -> None:
        """Execute all bursts."""
        _Execution(self.machine, self.chips, self.bursts).run()


def last_event(machine: Machine, burst: Burst) -> int:
    """The cycle in which the last point of a burst has its effect."""
    name = OPS[burst.inst.op][0].name
    key = "" if name in _UNTIMED else latency_key(burst.inst.op, burst.inst.dtype)
    return burst.last + (machine.delays[key] if key else 0)


class _Execution:
    """The heap of bursts; and for each slice and plane those that access its rows, in the order in which they are due."""

    def __init__(self, machine: Machine, chips: list[SpatialChip], bursts: list[Burst]) -> None:
        self._machine, self._chips = machine, chips
        self._links = Links(machine)
        self._units = [MatrixUnits(machine) for _ in chips]
        self._heap = [(*self._due(burst), i, burst) for i, burst in enumerate(bursts)]
        heapify(self._heap)
        self._serial = len(bursts)
        self._installs: dict[tuple[int, str, int], list[int]] = {}
        self._pending: dict[tuple[int, str, int], list[tuple[int, int, int, Burst]]] = {}
        for burst in bursts:
            if _name(burst) == "TRED":
                chip = chips[burst.chip]
                chip.patience = max(chip.patience, self._ahead("TRED", burst))
        for due, rank, serial, burst in sorted(self._heap, key=lambda entry: entry[:3]):
            self._register(due, rank, serial, burst)

    def run(self) -> None:
        while self._heap:
            due, rank, serial, burst = heappop(self._heap)
            chip = self._chips[burst.chip]
            chip.now = due
            allowed = self._allowed(due, rank, serial, burst)
            done = self._do(chip, burst.head(allowed))
            if done < burst.count:
                self._push(burst.rest(done))

    def _push(self, burst: Burst) -> None:
        self._serial += 1
        entry = (*self._due(burst), self._serial, burst)
        heappush(self._heap, entry)
        if _name(burst) in _TOUCHING:
            insort(self._pending[_owner(burst)], entry, key=lambda e: e[:3])

    def _due(self, burst: Burst) -> tuple[int, int]:
        name = _name(burst)
        return burst.time + self._ahead(name, burst), 0 if name in _WRITERS else 1

    def _ahead(self, name: str, burst: Burst) -> int:
        """Cycles from issue until a point is due: when all it needs has come, or it changes what others see."""
        if name in ("WR", "SCT"):
            return self._machine.delays["write" if name == "WR" else "scatter"]
        if name == "GTH":
            return memory_unit.GATHER_READ
        if name == "MAC":
            return matrix_unit.multiply_delay(self._machine, burst)
        if name == "TRED":
            return (burst.inst.step - 1) * burst.period
        return burst.count - 1 if name == "LW" else 0

    def _register(self, due: int, rank: int, serial: int, burst: Burst) -> None:
        name = _name(burst)
        if name == "IW":
            self._installs.setdefault(_owner(burst), []).append(burst.time + self._machine.delays["install_weights"])
        if name in _TOUCHING:
            self._pending.setdefault(_owner(burst), []).append((due, rank, serial, burst))

    def _allowed(self, due: int, rank: int, serial: int, burst: Burst) -> int:
        """Points of a burst that may be done before any other burst."""
        name = _name(burst)
        if name not in _TOUCHING:
            return burst.count
        count = self._until_install(burst) if name == "MAC" else burst.count
        pending = self._pending[_owner(burst)]
        del pending[next(i for i, entry in enumerate(pending) if entry[2] == serial)]
        end = due + (count - 1) * burst.period
        for other_due, other_rank, _, other in pending:
            if other_due > end or count == 1:
                break
            names = {name, _name(other)}
            if names & _CHANGING:
                anywhere = bool(names & _ANYWHERE)
                count = points_before(burst.head(count), due, other, other_due, ties=other_rank < rank, anywhere=anywhere)
        return count

    def _until_install(self, burst: Burst) -> int:
        """Points of a MAC that issue before other weights are there."""
        times = self._installs.get(_owner(burst), [])
        index = bisect_right(times, burst.time)
        if index == len(times) or times[index] > burst.last:
            return burst.count
        return ceil_div(times[index] - burst.time, burst.period)

    def _do(self, chip: SpatialChip, burst: Burst) -> int:
        name = _name(burst)
        if name in _CHIP:
            return _CHIP[name](chip, burst)
        if name in _PLANES:
            return _PLANES[name](chip, self._units[chip.number], burst)
        if name == "SND":
            return self._links.send(chip, burst)
        if name == "RCV":
            return self._links.receive(chip, burst)
        if OPS[burst.inst.op][0].unit == "VXM":
            return vector_unit.compute(chip, burst)
        return burst.count  # NTFY, CFG: time alone


def _name(burst: Burst) -> str:
    return OPS[burst.inst.op][0].name


def _owner(burst: Burst) -> tuple[int, str, int]:
    return burst.chip, burst.queue.unit, burst.queue.number


_CHIP: Mapping[str, Callable[[SpatialChip, Burst], int]] = {
    "RD": memory_unit.read, "WR": memory_unit.write, "GTH": memory_unit.gather, "SCT": memory_unit.scatter,
    **dict.fromkeys(("LSH", "SELL", "PRM", "DST", "TRN"), switch_unit.switch),
}
_PLANES: Mapping[str, Callable[[SpatialChip, MatrixUnits, Burst], int]] = {
    "LW": matrix_unit.load_weights, "IW": matrix_unit.install, "MAC": matrix_unit.multiply, "DRN": matrix_unit.drain,
}

__all__ = ["Simulation", "last_event"]
