"""The heaps of a group: one piece of memory of all its processes, without a name, so that nothing is left of it after a kill."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np

from tilefw.api.integers import round_up
from tilefw.distributed.symmetric_heap import SymmetricArray, SymmetricHeap


class SharedHeaps:
    """`num_ranks` heaps of `heap_bytes` each, one behind the other: pages that nobody has written take no memory. It lives as long
    as a process has it (memfd_create(2))."""

    def __init__(self, num_ranks: int, heap_bytes: int, descriptor: int | None = None) -> None:
        """A new one, or that of a descriptor, which stays the caller's."""
        self._step = round_up(heap_bytes, mmap.PAGESIZE)
        self.nbytes, self._ranks = num_ranks * self._step, num_ranks
        self.descriptor = os.memfd_create("tilefw heaps") if descriptor is None else os.dup(descriptor)
        if descriptor is None:
            os.ftruncate(self.descriptor, self.nbytes)
        self._map = mmap.mmap(self.descriptor, self.nbytes)
        self._used = 0  # of each heap, so many bytes have been given out before: those behind them are zero, and take no memory
        self.start = ctypes.addressof(ctypes.c_ubyte.from_buffer(self._map))

    def add(
        self, heap: SymmetricHeap, shape: tuple[int, ...], dtype: np.dtype, name: str | None, clear: bool = False
    ) -> SymmetricArray:
        """The next array of all ranks' heaps, as the memory is, or zeros where somebody is to `clear` it: one process, while all
        others wait. Raises LaunchError TFW0872 where there is no room."""
        _, offset = heap.check_room(shape, dtype)
        made = heap.add(name, [self._array(rank, offset, shape, dtype) for rank in range(self._ranks)])
        if clear and offset < self._used:
            for array in made.arrays:
                array.fill(0)
        self._used = max(self._used, offset + made.nbytes)
        return made

    def _array(self, rank: int, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array whose storage is its own part of the memory alone."""
        count = int(np.prod(shape, dtype=np.int64))
        if not count:
            return np.empty(shape, dtype)
        own = (ctypes.c_ubyte * (count * dtype.itemsize)).from_buffer(self._map, rank * self._step + offset)
        return np.frombuffer(memoryview(own), dtype, count).reshape(shape)

    def close(self) -> None:
        """Give up the descriptor; arrays stay."""
        os.close(self.descriptor)

    def has(self, address: int) -> bool:
        """Whether an address of the process lies in it."""
        return self.start <= address < self.start + self.nbytes
