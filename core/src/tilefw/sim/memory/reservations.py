"""Reservations of load-reserved and store-conditional: on which bytes of global memory each thread of a launch has one."""

from __future__ import annotations

import numpy as np

from tilefw.sim.floats import Array

_GRANULE = 3  # a reservation covers the aligned 2**3 bytes around its address
_NONE = np.uint64(2**64 - 1)


class Reservations:
    """Of one launch of so many threads. Made when its first load-reserved executes: until then stores ask nothing."""

    def __init__(self, threads: int) -> None:
        self._held: Array = np.full(threads, _NONE, dtype=np.uint64)

    def begin(self, threads: Array, addresses: Array) -> None:
        """Each thread reserves the granule of its address, and gives up what it had."""
        self._held[threads] = _granules(addresses)

    def end(self, base: int, offsets: Array, size: int) -> None:
        """Somebody writes `size` bytes at each of these offsets from `base`."""
        first = _granules(offsets.reshape(-1).view(np.uint64) + np.uint64(base))
        written = first if size <= 1 << _GRANULE else np.concatenate([first, first + np.uint64(1)])
        self._held[np.isin(self._held, written)] = _NONE

    def take(self, threads: Array, addresses: Array, random: np.random.Generator | None) -> Array:
        """Whether each thread may write: it has a reservation on its address, and is the first of those that want the granule, in
        their own order or, with a generator, in a permuted one. Ends the reservations of all these threads."""
        wanted = _granules(addresses)
        able = self._held[threads] == wanted
        order = np.arange(len(threads)) if random is None else random.permutation(len(threads))
        candidates = order[able[order]]
        _, first = np.unique(wanted[candidates], return_index=True)
        chosen = np.zeros(len(threads), dtype=np.bool_)
        chosen[candidates[first]] = True
        self._held[threads] = _NONE
        return chosen


def _granules(addresses: Array) -> Array:
    return addresses.astype(np.uint64) >> np.uint64(_GRANULE)
