"""The last writer of each place of a region and its readers since: what the race check compares an access with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.regions import Region

SEVERAL_WAVES = 63
SEVERAL_GROUPS = np.uint32(0xFFFFFFFF)


class LastAccesses:
    """Last writer and readers of each granule of a region. Actors are (workgroup + 1) * 64 + wave; 0 is nobody. Their clocks
    are stamps of events where those finish the access (see events.py). `mixed`: several instructions have read, and `read_site` is
    one of them; `any_mixed` tells whether there are such at all. `waves`: of a place that several waves of a workgroup have read,
    which, a bit each."""

    def __init__(self, region: Region, granule: int, clock: type[np.integer[Any]]) -> None:
        count = len(region.data) // granule
        self.granule = granule
        self.writer = np.zeros(count, dtype=np.uint32)
        self.written = np.zeros(count, dtype=clock)
        self.write_site = np.zeros(count, dtype=np.int32)
        self.strong = np.zeros(count, dtype=np.bool_)
        self.reader = np.zeros(count, dtype=np.uint32)
        self.read = np.zeros(count, dtype=clock)
        self.read_site = np.zeros(count, dtype=np.int32)
        self.mixed = np.zeros(count, dtype=np.bool_)
        self.any_mixed = False
        self.waves: Array | None = None

    def refine(self, granule: int) -> None:
        """Narrower accesses have come: every granule is cut."""
        factor = self.granule // granule
        for name in ("writer", "written", "write_site", "strong", "reader", "read", "read_site", "mixed"):
            setattr(self, name, np.repeat(getattr(self, name), factor))
        if self.waves is not None:
            self.waves = np.repeat(self.waves, factor)
        self.granule = granule

    def note_several(self, granules: Array, before: Array, now: Array) -> None:
        """Waves of one workgroup read these places, flat: actors `before`, or several waves, and actors `now`."""
        if self.waves is None:
            self.waves = np.zeros(len(self.reader), dtype=np.uint64)
        one = np.uint64(1)
        first = (before & np.uint32(63)) != SEVERAL_WAVES
        self.waves[granules[first]] = one << (before[first] & np.uint32(63)).astype(np.uint64)
        np.bitwise_or.at(self.waves, granules, one << (now & np.uint32(63)).astype(np.uint64))

    def several(self, granules: Array, waves: int) -> Array:
        """Which of so many waves have read each of these places, flat, that several waves of a workgroup have read."""
        assert self.waves is not None
        return (self.waves[granules][:, None] >> np.arange(waves, dtype=np.uint64) & np.uint64(1)).astype(np.bool_)

    def reading_waves(self, granules: Array, reader: int, writer: int) -> Array:
        """The waves whose loads of these places, by actor `reader`, race with a store of actor `writer`: of several readers all but
        the writer, whose own load is ordered before its store."""
        if reader % 64 != SEVERAL_WAVES or self.waves is None:
            return np.array([reader % 64])
        several = int(np.bitwise_or.reduce(self.waves[granules]))
        if reader // 64 == writer // 64:
            several &= ~(1 << writer % 64)
        return np.flatnonzero([several >> wave & 1 for wave in range(SEVERAL_WAVES)])
