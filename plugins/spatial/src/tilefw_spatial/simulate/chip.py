"""What one chip holds while it runs: vectors on streams, results of ALUs, rows of slices; how instructions take and put them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.isa.types import planes as byte_planes
from tilefw_spatial.machine import Machine
from tilefw_spatial.program import ChipCode
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.findings import Faults, Findings
from tilefw_spatial.simulate.line import Line, LineFound, LineSegment
from tilefw_spatial.simulate.slices import Slices

# How far behind the begin of a burst's effect it may take vectors: the multipliers, which take theirs 40 cycles before.
_BEHIND = 64

Vectors = NDArray[Any]
Taint = NDArray[np.bool_] | None


@dataclass(slots=True)
class Request:
    """Operands of a burst on `planes` streams from `stream` on, the first of them passing at cycle `time`."""

    stream: int
    planes: int
    time: int
    period: int
    count: int


class SpatialChip:
    """One chip's state. `now` is the cycle up to which everything has happened; `patience` how long the first vector of a reduction
    may wait for the last."""

    def __init__(self, number: int, machine: Machine, code: ChipCode, findings: Findings) -> None:
        self.number, self.machine, self.findings = number, machine, findings
        self.now = self.patience = 0
        self.maps = [np.array(m, np.int64) for m in code.maps]
        self.slices = Slices(machine, findings)
        self.results = [Line() for _ in range(machine.alus)]
        self._streams = [Line() for _ in range(2 * machine.streams)]

    # --- streams -------------------------------------------------------------------------------------------------------

    def put(self, burst: Burst, stream: int, time: int, period: int, values: NDArray[np.uint8], tainted: Taint) -> None:
        """Vectors on a stream, the first at cycle `time`, at the position of the burst's unit."""
        machine, line = self.machine, self._streams[stream]
        position = burst.queue.position
        key = machine.diagonal(stream, position, time)
        line.forget(self.now - _BEHIND - self.patience - (0 if machine.is_west(stream) else machine.last_position))
        rival = line.add(LineSegment(key, period, len(values), values, tainted, burst, position))
        if rival is not None:
            cycle = _first_common(key, period, len(values), rival) - key + time
            message = f"two producers on stream {stream_name(machine, stream)} at {burst.queue.unit}"
            self.findings.add(Faults.PRODUCERS, message, burst, cycle, other=rival.source)

    def put_planes(self, burst: Burst, stream: int, time: int, period: int, values: Vectors, tainted: Taint) -> None:
        """Elements of any type, a byte plane on each of successive streams."""
        for plane, found in enumerate(byte_planes(values)):
            self.put(burst, stream + plane, time, period, found, tainted)

    def take(self, burst: Burst, requests: list[Request]) -> tuple[list[NDArray[np.uint8]], Taint, int]:
        """What passes the burst's unit: for each request [planes, n, lanes], for the first n points for which all is there.

        What is missing at the very first point stays missing: it is reported, and taken as zeros."""
        position = burst.queue.position
        found = [
            [self._find(r.stream + plane, position, r.time, r.period, r.count) for plane in range(r.planes)] for r in requests
        ]
        if any(f.count == 0 for planes in found for f in planes):
            return self._missing(burst, requests, found)
        count = min(f.count for planes in found for f in planes)
        return [_stacked(planes, count) for planes in found], taint_of([f.tainted for p in found for f in p], count), count

    def _find(self, stream: int, position: int, time: int, period: int, count: int) -> LineFound:
        machine = self.machine
        key = machine.diagonal(stream, position, time)
        return self._streams[stream].find(key, period, count, position, machine.is_west(stream))

    def _missing(
        self, burst: Burst, requests: list[Request], found: list[list[LineFound]]
    ) -> tuple[list[NDArray[np.uint8]], Taint, int]:
        for request, planes in zip(requests, found, strict=True):
            for plane, one in enumerate(planes):
                if one.count == 0:
                    stream = stream_name(self.machine, request.stream + plane)
                    self.findings.add(Faults.OPERAND, f"no operand on {stream} at {burst.queue.unit}", burst, request.time)
                    one.values = np.zeros((1, self.machine.lanes), np.uint8)
        return [_stacked(planes, 1) for planes in found], taint_of([f.tainted for p in found for f in p], 1), 1


def stream_name(machine: Machine, stream: int) -> str:
    """A stream as the assembler writes it: `sE7`, `sW0`."""
    return f"sW{stream - machine.streams}" if machine.is_west(stream) else f"sE{stream}"


def taint_of(parts: list[Taint], count: int) -> Taint:
    """Whether any of a point's operands was never initialised."""
    total: Taint = None
    for part in parts:
        if part is not None:
            first_points = part[:count]
            total = first_points if total is None else total | first_points
    return total if total is not None and total.any() else None


def _stacked(planes: list[LineFound], count: int) -> NDArray[np.uint8]:
    arrays = [f.values[:count] for f in planes if f.values is not None]
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)


def _first_common(key: int, period: int, count: int, rival: LineSegment) -> int:
    return next(k for i in range(count) if rival.index(k := key + i * period) >= 0)
