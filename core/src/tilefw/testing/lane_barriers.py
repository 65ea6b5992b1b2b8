"""Counting barriers in the lane interpreter: phases of arrivals and bytes, and the copies that complete on them.

Threads run in lock step, so a wait that nothing can end is a fault at once. Copies land as late as they may: at a wait that needs
them. A phase that wants no arrival any more takes none before the wait for it: whether it is over is a matter of time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefw.testing.lane_memory import LaneFault, LaneSharedMemory
from tilefw.tile.reference.value import Array


@dataclass(slots=True)
class LandingCopy:
    """Bytes on their way to shared memory."""

    at: Array
    data: Array


@dataclass(slots=True)
class _Barrier:
    """`count` arrivals a phase, of which `pending` are to come, besides `bytes`; what is `landing` at its wait."""

    count: int
    pending: int
    bytes: int = 0
    parity: int = 0
    landing: list[LandingCopy] = field(default_factory=list)


class LaneBarriers:
    """One workgroup's, by address."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barriers: dict[int, _Barrier] = {}
        self.fresh: set[int] = set()  # made since the last barrier of the workgroup
        self.hidden: set[int] = set()  # not shown to engines

    def begin(self, shared: LaneSharedMemory, address: int, number: int, count: int) -> None:
        """Make barriers."""
        if not self.size:
            raise LaneFault("the chip has no barriers that count")
        if address % self.size:
            raise LaneFault(f"a barrier at {address}, no multiple of {self.size}")
        for at in range(address, address + number * self.size, self.size):
            if at in self.barriers:
                raise LaneFault(f"the barrier at {at} is made twice")
            shared.reserve(at, self.size)
            self.barriers[at] = _Barrier(count, count)
            self.fresh.add(at)
            self.hidden.add(at)

    def barrier(self) -> None:
        """All threads have met: those that were made are there for all."""
        self.fresh.clear()

    def show(self) -> None:
        """Engines see those that were made."""
        self.hidden.clear()

    def arrive(self, address: int, threads: int, bytes: int) -> None:
        """So many threads arrive, with so many bytes to come."""
        found = self._at(address)
        if threads > found.pending:
            raise LaneFault(f"{threads} arrivals at the barrier at {address}, whose phase wants {found.pending}")
        found.pending -= threads
        found.bytes += bytes
        self._advance(found)

    def copy(self, address: int, copy: LandingCopy) -> None:
        """A copy completes on a barrier."""
        found = self._at(address)
        if address in self.hidden:
            raise LaneFault(f"an engine completes a copy on the barrier at {address}, which was not shown to it")
        found.landing.append(copy)

    def wait(self, shared: LaneSharedMemory, address: int, parity: int) -> None:
        """Until the phase of that parity is over."""
        found = self._at(address)
        if parity not in (0, 1):
            raise LaneFault(f"a parity of {parity}")
        if found.parity != parity:
            return
        for copy in found.landing:
            shared.land(copy.at, copy.data)
            found.bytes -= copy.data.size
        found.landing.clear()
        self._advance(found)
        if found.parity == parity:
            wanted = f"{found.pending} arrivals and {found.bytes} bytes"
            raise LaneFault(f"nobody ends the wait for the barrier at {address}, whose phase wants {wanted}")

    def finish(self) -> None:
        if any(found.landing for found in self.barriers.values()):
            raise LaneFault("the kernel ends while copies are under way")

    @staticmethod
    def _advance(found: _Barrier) -> None:
        if not found.pending and not found.bytes and not found.landing:
            found.pending, found.parity = found.count, 1 - found.parity

    def _at(self, address: int) -> _Barrier:
        found = self.barriers.get(address)
        if found is None:
            raise LaneFault(f"there is no barrier at {address}")
        if address in self.fresh:
            raise LaneFault(f"the barrier at {address} is used without a barrier of the workgroup behind its making")
        return found
