"""Memory for the lane interpreter: bytes at addresses, with the checks that a lowering to lanes must pass.

Global memory is a table of buffers at addresses far apart. Shared memory knows which bytes are written, which wait for an
asynchronous copy, and which wave touched a byte since the last barrier: two waves, at least one of them writing other bytes
than stand there, are a race.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.multicast_window import MulticastWindow
from tilefw.tile import numbers
from tilefw.tile.reference.value import Array

_NOBODY, _SEVERAL = -1, -2


class LaneFault(AssertionError):
    """The lowered code did what no lowering may do; the text says where and what."""


class LaneGlobalMemory:
    """Buffers by index; buffer k owns the addresses from (k + 1) << `slot_bits`. Those of `multicast` are nobody's: each stands for
    one place of several copies."""

    def __init__(self, buffers: Sequence[Array], slot_bits: int, multicast: MulticastWindow | None = None) -> None:
        self.buffers = [b.reshape(-1).view(np.uint8) for b in buffers]
        self.slot_bits = slot_bits
        self.multicast = multicast

    def address(self, index: int) -> int:
        """Where buffer `index` begins."""
        return (index + 1) << self.slot_bits

    def copies(self, address: int) -> tuple[int, ...]:
        """The places for which a multicast address stands."""
        if self.multicast is None or not self.multicast.holds(address):
            raise LaneFault(f"{address:#x} is no multicast address")
        return tuple(address + distance for distance in self.multicast.distances)

    def read(self, addresses: Array, count: int) -> Array:
        """`count` bytes at each address, as (addresses, count)."""
        result = np.empty((len(addresses), count), np.uint8)
        for index, rows in self._owners(addresses):
            at = self._inside(index, addresses[rows], count)
            result[rows] = self.buffers[index][at]
        return result

    def write(self, addresses: Array, data: Array) -> None:
        """The bytes of each row of `data` at its address; of equal addresses the last row wins."""
        for index, rows in self._owners(addresses):
            self.buffers[index][self._inside(index, addresses[rows], data.shape[1])] = data[rows]

    def _owners(self, addresses: Array) -> list[tuple[int, Array]]:
        slots = addresses >> self.slot_bits
        return [(int(s) - 1, np.flatnonzero(slots == s)) for s in np.unique(slots)]

    def _inside(self, index: int, addresses: Array, count: int) -> Array:
        if not 0 <= index < len(self.buffers):
            raise LaneFault(f"address {int(addresses[0]):#x} belongs to no buffer")
        at = (addresses - self.address(index))[:, None] + np.arange(count)
        size = len(self.buffers[index])
        if at.min() < 0 or at.max() >= size:
            worst = int(at.min()) if at.min() < 0 else int(at.max())
            raise LaneFault(f"byte {worst} of buffer {index}, which has {size}")
        if (addresses % count).any() and count & (count - 1) == 0:
            raise LaneFault(f"an access of {count} bytes at {int(addresses[(addresses % count) != 0][0]):#x} is not aligned")
        return at


class LaneSharedMemory:
    """One workgroup's shared bytes."""

    def __init__(self, size: int) -> None:
        self.data = np.full(size, 0xA5, np.uint8)
        self.written = np.zeros(size, np.bool_)
        self.pending = np.zeros(size, np.bool_)
        self.writer = np.full(size, _NOBODY)
        self.reader = np.full(size, _NOBODY)
        self.engaged = np.zeros(size, np.int64)  # by how many products under way
        self.unfenced = np.zeros(size, np.bool_)
        self.reserved = np.zeros(size, np.bool_)  # for counting barriers

    def reserve(self, address: int, count: int) -> None:
        """These bytes are a counting barrier from here on."""
        at = self._inside(np.array([address]), count)
        self._own(at, np.zeros(at.shape, np.int64), None)
        self.writer[at] = _NOBODY
        self.reserved[at] = True

    def land(self, at: Array, data: Array) -> None:
        """What an engine copied is there, for all who waited."""
        self.pending[at] = False
        self.data[at] = data
        self.written[at] = True
        self.writer[at] = _NOBODY

    def fence(self) -> None:
        """Matrix units see what was written."""
        self.unfenced[:] = False

    def engage(self, addresses: Array, count: int, wave: int | None = None) -> None:
        """A matrix unit, or an engine that a thread of `wave` has started, reads these bytes by itself from now on."""
        at = self._inside(addresses.reshape(-1), count)
        others = at[(self.writer[at] != _NOBODY) & (self.writer[at] != wave)]
        if wave is not None and len(others):
            raise LaneFault(f"an engine reads shared byte {int(others[0])}, which another wave wrote, without a barrier")
        if self.unfenced[at].any():
            raise LaneFault(f"a matrix unit reads shared byte {int(at[self.unfenced[at]][0])}, written without a fence behind")
        np.add.at(self.engaged, at, 1)

    def disengage(self, at: Array) -> None:
        """It has read them: before others write there they meet it at a barrier."""
        np.subtract.at(self.engaged, at, 1)
        self.reader[at] = _SEVERAL

    def barrier(self) -> None:
        """A new epoch: what came before is seen by all."""
        self.writer[:] = _NOBODY
        self.reader[:] = _NOBODY

    def read(self, addresses: Array, count: int, waves: Array) -> Array:
        """`count` bytes at each address, read by the wave of each row."""
        at = self._inside(addresses, count)
        wave = np.broadcast_to(waves[:, None], at.shape)
        if self.pending[at].any():
            raise LaneFault(f"shared byte {int(at[self.pending[at]][0])} is read before the wait for its copy")
        if not self.written[at].all():
            raise LaneFault(f"shared byte {int(at[~self.written[at]][0])} is read but was never written")
        foreign = (self.writer[at] != _NOBODY) & (self.writer[at] != wave)
        if foreign.any():
            raise LaneFault(
                f"wave {int(wave[foreign][0])} reads shared byte {int(at[foreign][0])}, which another wave wrote, without a barrier"
            )
        before = self.reader[at]
        self.reader[at] = np.where((before == _NOBODY) | (before == wave), wave, _SEVERAL)
        self.reader[at[self.reader[at] != wave]] = _SEVERAL  # waves that met in one byte within this very read
        return self.data[at]

    def write(self, addresses: Array, data: Array, waves: Array) -> None:
        """The bytes of each row of `data`, written by the wave of each row; of equal addresses the last row wins."""
        at = self._inside(addresses, data.shape[1])
        if self.pending[at].any():
            raise LaneFault(f"shared byte {int(at[self.pending[at]][0])} is written while a copy to it is under way")
        wave = np.broadcast_to(waves[:, None], at.shape)
        self._own(at, wave, data)
        self.data[at] = data
        self.written[at] = self.unfenced[at] = True
        clash = (self.writer[at] != wave) & (self.data[at] != data)
        if clash.any():
            raise LaneFault(f"two waves write different bytes to shared byte {int(at[clash][0])} at once")

    def begin_copy(self, addresses: Array, count: int, waves: Array) -> None:
        """An asynchronous copy to these bytes is under way: nobody may touch them."""
        at = self._inside(addresses, count)
        self._own(at, np.broadcast_to(waves[:, None], at.shape), None)
        self.pending[at] = True

    def end_copy(self, addresses: Array, data: Array, waves: Array) -> None:
        """The copy lands at its wave's wait."""
        at = self._inside(addresses, data.shape[1])
        self.pending[at] = False
        self.data[at] = data
        self.written[at] = self.unfenced[at] = True
        self.writer[at] = waves[:, None]

    def _own(self, at: Array, wave: Array, data: Array | None) -> None:
        if self.engaged[at].any():
            raise LaneFault(f"shared byte {int(at[self.engaged[at] > 0][0])} is written while a matrix unit reads it")
        for what, who in (("wrote", self.writer[at]), ("read", self.reader[at])):
            other = (who != _NOBODY) & (who != wave)
            if data is not None:
                other &= (self.data[at] != data) | ~self.written[at]
            if other.any():
                byte, mine = int(at[other][0]), int(wave[other][0])
                raise LaneFault(f"wave {mine} writes shared byte {byte}, which another wave {what}, without a barrier")
        self.writer[at] = wave

    def _inside(self, addresses: Array, count: int) -> Array:
        at = addresses[:, None] + np.arange(count)
        if at.size and (at.min() < 0 or at.max() >= len(self.data)):
            raise LaneFault(f"shared byte {int(at.max() if at.min() >= 0 else at.min())} of {len(self.data)}")
        if self.reserved[at].any():
            raise LaneFault(f"shared byte {int(at[self.reserved[at]][0])} belongs to a counting barrier")
        if (addresses % count).any() and count & (count - 1) == 0:
            raise LaneFault(f"a shared access of {count} bytes at {int(addresses[(addresses % count) != 0][0])} is not aligned")
        return at


@dataclass(slots=True)
class LaneAsyncCopy:
    """One asynchronous copy: where it goes, what it brings."""

    addresses: Array
    data: Array
    waves: Array


def element_bytes(values: Array, dtype: DType, n: int) -> Array:
    """The bytes of so many elements a lane."""
    values = np.broadcast_to(values, (values.shape[0], n))
    return numbers.to_bytes(np.ascontiguousarray(values).reshape(-1), dtype).reshape(values.shape[0], -1).copy()


def grown(shared: LaneSharedMemory, size: int) -> LaneSharedMemory:
    """The same memory with room for more: allocations that are not placed yet may exceed what the chip has."""
    larger = LaneSharedMemory(size)
    for name in ("data", "written", "pending", "writer", "reader", "engaged", "unfenced", "reserved"):
        old = getattr(shared, name)
        getattr(larger, name)[: len(old)] = old
    return larger
