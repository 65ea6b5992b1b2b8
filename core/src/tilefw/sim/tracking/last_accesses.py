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
    which, a bit each; `vectors`: where their clocks differ, the number of the clocks by wave that `readers_clocks` gives, else 0:
    `read` is then the clock of all. `addresses`: where the arrays stand, kept by who calls compiled code until one is replaced."""

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
        self.vectors: Array | None = None
        self.addresses: list[int] | None = None
        self._clocks: list[Array] = [np.zeros(SEVERAL_WAVES, dtype=clock)]
        self._numbers: dict[bytes, int] = {}

    def refine(self, granule: int) -> None:
        """Narrower accesses have come: every granule is cut."""
        factor, self.addresses = self.granule // granule, None
        for name in ("writer", "written", "write_site", "strong", "reader", "read", "read_site", "mixed"):
            setattr(self, name, np.repeat(getattr(self, name), factor))
        if self.waves is not None:
            self.waves = np.repeat(self.waves, factor)
        if self.vectors is not None:
            self.vectors = np.repeat(self.vectors, factor)
        self.granule = granule

    def note_several(self, granules: Array, before: Array, now: Array, clock: Array) -> None:
        """Waves of one workgroup read these places, flat: actors `before`, or several waves, and actors `now` at their clocks."""
        if self.waves is None:
            self.waves, self.addresses = np.zeros(len(self.reader), dtype=np.uint64), None
        one = np.uint64(1)
        first = (before & np.uint32(63)) != SEVERAL_WAVES
        self.waves[granules[first]] = one << (before[first] & np.uint32(63)).astype(np.uint64)
        if self.vectors is None and (self.read[granules] != clock).any():
            self.vectors = np.zeros(len(self.reader), dtype=np.int32)
        wave = (now & np.uint32(63)).astype(np.int64)
        for each in np.unique(wave) if self.vectors is not None else ():
            self._note_clock(granules[wave == each], int(each), clock[wave == each])
        np.bitwise_or.at(self.waves, granules, one << wave.astype(np.uint64))

    def _note_clock(self, granules: Array, wave: int, clock: Array) -> None:
        """A wave reads these places, which others have read. Few pairs of clocks are different, whatever the number of places."""
        assert self.vectors is not None and self.waves is not None
        changed = (self.vectors[granules] > 0) | (self.read[granules] != clock)
        granules, clock = granules[changed], clock[changed]
        if not len(granules):
            return
        known = (self.vectors[granules].astype(np.uint64), self.waves[granules], self.read[granules], clock)
        rows, places = np.unique(np.stack([part.astype(np.uint64) for part in known], axis=1), axis=0, return_inverse=True)
        numbers = [self._number(int(vector), int(waves), int(old), wave, int(new)) for vector, waves, old, new in rows]
        self.vectors[granules] = np.array(numbers, dtype=np.int32)[places.reshape(-1)]
        self.waves[granules] |= np.uint64(1) << np.uint64(wave)

    def _number(self, vector: int, waves: int, read: int, wave: int, clock: int) -> int:
        """The number of the clocks of a vector, or of `read` for all of these waves, with a wave's own one."""
        made = self._clocks[vector].copy()
        if not vector:
            made[[each for each in range(SEVERAL_WAVES) if waves >> each & 1]] = read
        made[wave] = clock
        number = self._numbers.setdefault(made.tobytes(), len(self._clocks))
        if number == len(self._clocks):
            self._clocks.append(made)
        return number

    def forget_several(self, granules: Array, but: Array | None = None) -> None:
        """These places, but for those where `but` holds, have one reader, or none, from now on."""
        if self.vectors is None:
            return
        self.vectors[granules if but is None else granules[~np.isin(granules, granules[but])]] = 0

    def clocks_differ(self, granules: Array) -> Array:
        """Whether several waves have read these places at different clocks."""
        return np.zeros(granules.shape, dtype=np.bool_) if self.vectors is None else self.vectors[granules] > 0

    def readers_clocks(self, granules: Array, waves: int) -> Array:
        """By place, flat, and wave, at which clock so many waves have read them."""
        plain = np.broadcast_to(self.read[granules][:, None], (len(granules), waves))
        if self.vectors is None:
            return plain
        vectors = self.vectors[granules]
        numbers, places = np.unique(vectors, return_inverse=True)  # a few of all that the launch has seen
        clocks = np.stack([self._clocks[number][:waves] for number in numbers])[places.reshape(-1)]
        return np.where(vectors[:, None] > 0, clocks, plain)

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
