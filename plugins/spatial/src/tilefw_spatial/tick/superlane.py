"""One superlane: its part of every stream register, row, accumulator and result, moved on by one cycle at a time.

An instruction is a generator, run once a point in each superlane: it does what happens in the cycle of its issue and yields
(phase, cycles) to go on so many cycles later. In a cycle all that arrives comes first, then weights are loaded, then all else: what
arrives can be taken in the same cycle.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Generator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.machine import Machine
from tilefw_spatial.tick import findings as kinds
from tilefw_spatial.tick.findings import TickFindings
from tilefw_spatial.tick.plane import PlanePart
from tilefw_spatial.tick.point import Point

Bytes = NDArray[np.uint8]


class Phase(IntEnum):
    """The order of what happens in one cycle."""

    ARRIVE = 0
    LOAD = 1
    WORK = 2


Steps = Generator[tuple[Phase, int], None, None]


@dataclass(frozen=True, slots=True)
class LaneWord:
    """A byte for each of the superlane's lanes, in a stream register; `tainted`: made from what was never initialised."""

    data: Bytes
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class LaneResult:
    """What an ALU made, [1, lanes], in its result pipe."""

    values: NDArray[Any]
    tainted: bool


@dataclass(slots=True)
class Wires:
    """What is under way on links between chips: (sender, link, superlane, cycle of arrival) -> word; when each last sent."""

    flying: dict[tuple[int, int, int, int], LaneWord]
    sent: dict[tuple[int, int, int], int]


class TickSlice:
    """Rows of both banks as all superlanes share them, [rows, lanes]; which were written, [rows, superlanes]."""

    def __init__(self, machine: Machine) -> None:
        self.bank_rows = machine.rows
        rows = machine.banks * machine.rows
        self.data = np.zeros((rows, machine.lanes), np.uint8)
        self.written = np.zeros((rows, machine.superlanes), bool)


class Superlane:
    """Superlane `number` of a chip. `time` is the cycle of issue that it works on: it is `number` cycles behind superlane 0."""

    def __init__(
        self, chip: int, number: int, machine: Machine, maps: list[NDArray[np.int64]], slices: defaultdict[str, TickSlice],
        wires: Wires, findings: TickFindings,
    ) -> None:
        self.chip, self.number, self.machine, self.maps, self.wires, self.findings = chip, number, machine, maps, wires, findings
        size = machine.superlane_lanes
        self.lanes = slice(number * size, (number + 1) * size)
        self.time = 0
        self.planes: defaultdict[tuple[str, int], PlanePart] = defaultdict(PlanePart)
        self._slices = slices
        self._last_access: dict[str, tuple[int, list[tuple[int, bool]]]] = {}
        positions = machine.last_position + 1
        self._streams: list[deque[LaneWord | None]] = [deque([None] * positions, positions) for _ in range(2 * machine.streams)]
        self._flowing: dict[int, int] = {}  # streams that carry anything, with the cycle of what was put last
        depth = machine.delay_step * (machine.delay_steps - 1) + 1
        self._pipes: list[deque[LaneResult | None]] = [deque([None] * depth, depth) for _ in range(machine.alus)]
        self._agenda: defaultdict[int, list[tuple[Phase, Steps]]] = defaultdict(list)

    @property
    def busy(self) -> bool:
        """Whether anything is still to happen."""
        return bool(self._agenda)

    def start(self, time: int, phase: Phase, steps: Steps) -> None:
        """An instruction that issues at cycle `time`."""
        self._agenda[time].append((phase, steps))

    def tick(self, time: int) -> bool:
        """Move every register by one and let happen what is due; whether anything happened."""
        self.time = time
        for stream, since in [*self._flowing.items()]:
            if self.machine.is_west(stream):
                self._streams[stream].append(None)
            else:
                self._streams[stream].appendleft(None)
            if time - since > self.machine.last_position:  # all has left the chip: an empty register need not move
                del self._flowing[stream]
        for pipe in self._pipes:
            pipe.appendleft(None)
        due = self._agenda.pop(time, ())
        for _, steps in sorted(due, key=lambda entry: entry[0]):
            then = next(steps, None)
            if then is not None:
                self._agenda[time + then[1]].append((then[0], steps))
        return bool(due)

    def report(self, code: str, message: str, point: Point) -> None:
        """A finding in this cycle."""
        self.findings.add(code, message, point, self.time)

    # --- streams -------------------------------------------------------------------------------------------------------

    def take(self, point: Point, stream: int) -> LaneWord:
        """What passes the point's unit now; zeros, and a finding, where nothing does."""
        found = self._streams[stream][point.queue.position]
        if found is None:
            self.report(kinds.OPERAND, f"no operand on {self.stream_name(stream)} at {point.queue.unit}", point)
            return LaneWord(np.zeros(self.machine.superlane_lanes, np.uint8))
        return found

    def take_planes(self, point: Point, stream: int, planes: int) -> tuple[Bytes, bool]:
        """Successive streams, [planes, lanes], and whether any is tainted."""
        words = [self.take(point, stream + plane) for plane in range(planes)]
        return np.stack([word.data for word in words]), any(word.tainted for word in words)

    def put(self, point: Point, stream: int, word: LaneWord) -> None:
        """A word into the register at the point's unit, which must be empty."""
        register, position = self._streams[stream], point.queue.position
        if register[position] is not None:
            self.report(kinds.PRODUCERS, f"two producers on stream {self.stream_name(stream)} at {point.queue.unit}", point)
        register[position] = word
        self._flowing[stream] = self.time

    def stream_name(self, stream: int) -> str:
        streams = self.machine.streams
        return f"sW{stream - streams}" if self.machine.is_west(stream) else f"sE{stream}"

    # --- results of ALUs -----------------------------------------------------------------------------------------------

    def result(self, point: Point, alu: int, delay: int) -> LaneResult | None:
        """What an ALU made `delay` cycles ago."""
        found = self._pipes[alu][delay]
        if found is None:
            self.report(kinds.OPERAND, f"no result of VXM.{alu} from {delay} cycles before at {point.queue.name}", point)
        return found

    def arrive(self, point: Point, result: LaneResult) -> None:
        """A result at the begin of its ALU's pipe."""
        pipe = self._pipes[point.queue.number]
        if pipe[0] is not None:
            self.report(kinds.PRODUCERS, f"two results of {point.queue.name} in one cycle", point)
        pipe[0] = result

    # --- rows ----------------------------------------------------------------------------------------------------------

    def slice(self, unit: str) -> TickSlice:
        return self._slices[unit]

    def access(self, point: Point, writes: bool) -> None:
        """The point reads or writes its bank now: a slice does one read and one write a cycle, of different banks."""
        unit, bank = point.queue.unit, point.inst.address // self.machine.rows
        when, others = self._last_access.get(unit, (-1, []))
        if when != self.time:
            others = []
        for other_bank, other_writes in others:
            if other_bank == bank or other_writes == writes:
                self.report(kinds.BANK, f"bank conflict in {unit}, bank {bank}: two accesses in one cycle", point)
        self._last_access[unit] = self.time, [*others, (bank, writes)]

    def row(self, point: Point) -> int | None:
        """The row that the point works at; None, and a finding, where the burst has left its bank."""
        rows = self.machine.rows
        if point.address // rows == point.inst.address // rows:
            return point.address
        self.report(kinds.ROW, f"row {point.address - point.inst.address // rows * rows} of a bank of {rows} in "
                          f"{point.queue.unit}", point)
        return None
