"""The multicast mapping of a node's heaps: addresses each of which stands for the same place of every rank's heap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True, slots=True)
class MulticastWindow:
    """`nbytes` addresses from `start` on, and where each rank's heap begins that they stand for."""

    start: int
    nbytes: int
    bases: tuple[int, ...]

    @property
    def distances(self) -> tuple[int, ...]:
        """From a multicast address to each rank's copy."""
        return tuple(base - self.start for base in self.bases)

    def holds(self, address: Any) -> Any:
        """Whether it is an address of the window, for each of an array of integers."""
        offset = np.asarray(address).astype(np.uint64) - np.uint64(self.start)
        return offset < np.uint64(self.nbytes)


@runtime_checkable
class MulticastingDevice(Protocol):
    """A device that knows multicast addresses."""

    def map_multicast(self, window: MulticastWindow | None) -> None:
        """From now on the node has this mapping, or none."""
        ...
