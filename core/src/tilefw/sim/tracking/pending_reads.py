"""What asynchronous copies of threads read of memory that launches at once share, until a wait covers them: they may read so late.

The simulator reads at the start of a copy. For the check of races between ranks it is an access from there to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.copies import Copy
from tilefw.sim.memory.regions import Region
from tilefw.sim.tracking.agent_accesses import Site

_GROUPS = 1 << 32


@dataclass(frozen=True, slots=True)
class PendingRead:
    """Elements of `size` bytes at byte offsets `index` that copies of one instruction read, each by a thread of an agent; `copies`
    tells thread and group of each as one number."""

    site: Site
    region: Region
    index: Array
    size: int
    agents: Array
    copies: Array

    def part(self, chosen: Array) -> PendingRead:
        """Only the chosen elements."""
        return PendingRead(self.site, self.region, self.index[chosen], self.size, self.agents[chosen], self.copies[chosen])


class PendingReads:
    """Of all launches at once, by the batch (its identity) whose threads have started the copies."""

    def __init__(self) -> None:
        self._reads: dict[int, list[PendingRead]] = {}

    def started(self, batch: object, read: PendingRead) -> None:
        """A copy may read this from now on."""
        self._reads.setdefault(id(batch), []).append(read)

    def landed(self, batch: object, site: Site, copy: Copy) -> list[PendingRead]:
        """A wait has covered a copy: what it has read, which nobody waits for any more."""
        kept: list[PendingRead] = []
        ended: list[PendingRead] = []
        copies = numbered(copy.thread, copy.group)
        for read in self._reads.get(id(batch), ()):
            done = np.isin(read.copies, copies) if read.site == site else np.zeros(len(read.copies), np.bool_)
            for chosen, parts in ((done, ended), (~done, kept)):
                if chosen.any():
                    parts.append(read if chosen.all() else read.part(chosen))
        self._reads[id(batch)] = kept
        return ended

    def left(self, batch: object) -> None:
        """A batch has ended."""
        self._reads.pop(id(batch), None)

    def of(self, region: Region) -> Iterator[PendingRead]:
        """What may still be read of a region."""
        return (read for reads in self._reads.values() for read in reads if read.region is region)


def numbered(threads: Array, groups: Array) -> Array:
    """Thread and group of copies as one number each."""
    return threads.astype(np.int64) * _GROUPS + groups.astype(np.int64)
