"""leftovers, second half: of what a wave writes to shared memory by one instruction, all is read, or nothing.

A store that nobody reads is legal, and compilers make such stores: the last wave's share of a scan, a buffer that another path
fills again. What is read in part is almost always the shadow of a mistake elsewhere: a load at a wrong address reads some
bytes twice and leaves others. So a store is told of only where the same wave's stores by the same instruction are read as well.
It is looked for when races are, at their cost. Bytes that an asynchronous copy fills with zeros beyond its source do not count:
pipelines prefetch past their end that way. It is not looked for on chips whose code masks lanes itself: compilers move a load
under the mask where its value is needed there, and leave the rest of what was stored unread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.regions import Region, common_alignment
from tilefw.sim.program import Instruction

CODE = "TFW0815"


class Unread:
    """For each granule of one batch's shared memory, who wrote it and was not read yet: instruction * waves + wave + 1."""

    def __init__(self, region: Region, instructions: Any, waves: int) -> None:
        self.region = region
        self._instructions = instructions
        self._waves = waves
        self._granule = 4
        self._writers = np.zeros(len(region.data) // 4, dtype=np.int32)
        self._read = np.zeros(len(instructions) * waves + 1, dtype=np.bool_)
        self._lost: dict[int, list[int]] = {}
        """By writer: how many granules nobody read, and the first of them."""

    def _granules(self, index: Array, size: int) -> Array:
        part = common_alignment(index, min(size, self._granule))
        if part < self._granule:
            factor = self._granule // part
            self._writers = np.repeat(self._writers, factor)
            self._lost = {writer: [n, first * factor] for writer, (n, first) in self._lost.items()}
            self._granule = part
        return index[..., None] // self._granule + np.arange(max(1, size // self._granule))

    def access(self, lanes: Any, piece: Any, size: int, kind: str) -> None:
        """A load or atomic reads; a store must not find its own place unread."""
        granules = self._granules(piece.index, size)
        if kind != "write":
            self._mark_read(granules)
            return
        wave = np.broadcast_to(lanes.frame.wave, lanes.frame.shape)
        if piece.lanes is not None:
            wave = wave[piece.lanes]
        granules = np.broadcast_to(granules, (*wave.shape, granules.shape[-1]))
        self._written(lanes, granules, lanes.instruction.index, wave[..., None])

    def copied(self, lanes: Any, index: Array, size: int, site: int, wave: Array, filled: Array) -> None:
        """An asynchronous copy of the waves `wave` has landed; `filled` marks elements that are zeros from beyond its source."""
        self._written(lanes, self._granules(index[~filled], size), site, wave[~filled][:, None])
        self._writers[self._granules(index[filled], size)] = 0

    def _mark_read(self, granules: Array) -> None:
        self._read[self._writers[granules]] = True
        self._writers[granules] = 0

    def _written(self, lanes: Any, granules: Array, site: int, wave: Array) -> None:
        lost = self._writers[granules]
        if lanes.launch.random is not None:
            # Waves that hold copies store the same bytes by one instruction, under a seed one after the other.
            lost = np.where((lost - 1) // self._waves == site, 0, lost)
        if lost.any():
            self._lose(granules[lost != 0], lost[lost != 0])
        self._writers[granules] = site * self._waves + wave + 1

    def _lose(self, granules: Array, writers: Array) -> None:
        for writer, count in zip(*np.unique(writers, return_counts=True), strict=True):
            known = self._lost.setdefault(int(writer), [0, int(granules[np.argmax(writers == writer)])])
            known[0] += int(count)

    def finish(self, lanes: Any) -> None:
        """The batch has ended."""
        left = np.nonzero(self._writers)[0]
        self._lose(left, self._writers[left])
        for writer, (count, granule) in self._lost.items():
            if not self._read[writer]:
                continue
            site, wave = divmod(writer - 1, self._waves)
            instruction: Instruction = self._instructions[site]
            slot, address = divmod(granule * self._granule, max(1, self.region.stride))
            lanes.launch.reporter.add(
                "leftovers", CODE, "part of what this writes to shared memory is never read", instruction, count=count,
                where=(lanes.batch.workgroup(slot), wave, 0), address=address, severity="warning",
            )
