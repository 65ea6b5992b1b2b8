"""The memory slices of a chip: rows of bytes, which of them were ever written, and who accesses a bank in which cycle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.machine import Machine
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.findings import Faults, Findings
from tilefw_spatial.simulate.line import LineSegment

_NOTHING = np.empty((0, 0), np.uint8)


class MemorySlice:
    """Rows of both banks, `[banks · rows, lanes]` bytes; `written` says which hold something."""

    __slots__ = ("accesses", "data", "written")

    def __init__(self, machine: Machine) -> None:
        rows = machine.banks * machine.rows
        self.data = np.zeros((rows, machine.lanes), np.uint8)
        self.written = np.zeros(rows, bool)
        self.accesses: list[_BankAccess] = []


@dataclass(frozen=True, slots=True)
class _BankAccess:
    """Cycles in which a bank is read or written."""

    cycles: LineSegment
    bank: int
    writes: bool

    def clashes(self, other: _BankAccess) -> bool:
        """A slice does one read and one write a cycle, of different banks."""
        return (self.bank == other.bank or self.writes == other.writes) and self.cycles.overlaps(other.cycles)


class Slices:
    """A chip's slices by unit name; each takes storage when it is first accessed."""

    def __init__(self, machine: Machine, findings: Findings) -> None:
        self._machine, self._findings = machine, findings
        self._slices: dict[str, MemorySlice] = {}

    def __getitem__(self, unit: str) -> MemorySlice:
        found = self._slices.get(unit)
        if found is None:
            found = self._slices[unit] = MemorySlice(self._machine)
        return found

    def rows(self, burst: Burst) -> NDArray[np.int64]:
        """The rows that a burst accesses, [count]; -1 where it leaves its bank, which is reported."""
        rows = burst.address + burst.step * np.arange(burst.count)
        begin = burst.inst.address // self._machine.rows * self._machine.rows
        outside = (rows < begin) | (rows >= begin + self._machine.rows)
        if not outside.any():
            return rows
        first = int(np.argmax(outside))
        message = f"row {int(rows[first]) - begin} of a bank of {self._machine.rows} in {burst.queue.unit}"
        self._findings.add(Faults.ROW, message, burst, burst.time + first * burst.period)
        return np.where(outside, -1, rows)

    def access(self, burst: Burst, cycle: int, writes: bool) -> None:
        """Note that a burst reads or writes its bank from a cycle on; a conflict is reported."""
        slice_ = self[burst.queue.unit]
        cycles = LineSegment(cycle, burst.period, burst.count, _NOTHING, None, burst)
        access = _BankAccess(cycles, burst.inst.address // self._machine.rows, writes)
        # Accesses come in the order of their first cycles: what ended before this one overlaps no later one either.
        slice_.accesses = [a for a in slice_.accesses if a.cycles.last >= cycle]
        rival = next((a for a in slice_.accesses if a.clashes(access)), None)
        slice_.accesses.append(access)
        if rival is not None:
            what = f"{'write' if writes else 'read'} and {'write' if rival.writes else 'read'} of one bank"
            if access.bank != rival.bank:
                what = f"two {'writes' if writes else 'reads'}"
            message = f"bank conflict in {burst.queue.unit}, bank {access.bank}: {what} in one cycle"
            self._findings.add(Faults.BANK, message, burst, max(cycle, rival.cycles.start), other=rival.cycles.source)
