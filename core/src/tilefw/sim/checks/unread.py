"""leftovers, second half: shared memory that is written is also read, before it is written again and before the workgroup ends.

A store that nobody reads is legal, and in compiled code almost always the shadow of a mistake elsewhere: a load at a wrong
address reads some bytes twice and leaves others. It is looked for when races are, at their cost. Bytes that an asynchronous
copy fills with zeros beyond its source do not count: pipelines prefetch past their end that way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory import Region
from tilefw.sim.program import Instruction

CODE = "TFW0815"


class Unread:
    """For each granule of one batch's shared memory, the instruction (number + 1) that wrote it and was not read yet."""

    def __init__(self, region: Region, instructions: Any) -> None:
        self.region = region
        self._instructions = instructions
        self._granule = 4
        self._sites = np.zeros(len(region.data) // 4, dtype=np.int32)

    def _granules(self, index: Array, size: int) -> Array:
        if size < self._granule:
            self._sites = np.repeat(self._sites, self._granule // size)
            self._granule = size
        return index[..., None] // self._granule + np.arange(max(1, size // self._granule))

    def access(self, lanes: Any, piece: Any, size: int, kind: str) -> None:
        """A load or atomic reads; a store must not find its own place unread."""
        granules = self._granules(piece.index, size)
        if kind != "write":
            self._sites[granules] = 0
            return
        self.written(lanes, granules, lanes.instruction.index)

    def copied(self, lanes: Any, index: Array, size: int, site: int, filled: Array) -> None:
        """An asynchronous copy has landed; `filled` marks elements that are zeros from beyond its source."""
        self.written(lanes, self._granules(index[~filled], size), site)
        self._sites[self._granules(index[filled], size)] = 0

    def written(self, lanes: Any, granules: Array, site: int) -> None:
        lost = self._sites[granules]
        if lanes.launch.random is not None:
            # Waves that hold copies store the same bytes by one instruction, under a seed one after the other.
            lost = np.where(lost == site + 1, 0, lost)
        if lost.any():
            self._report(lanes, granules[lost != 0], lost[lost != 0], "overwritten")
        self._sites[granules] = site + 1

    def finish(self, lanes: Any) -> None:
        """The batch has ended."""
        left = np.nonzero(self._sites)[0]
        if len(left):
            self._report(lanes, left, self._sites[left], "left at the end")

    def _report(self, lanes: Any, granules: Array, sites: Array, how: str) -> None:
        for site in np.unique(sites).tolist():
            instruction: Instruction = self._instructions[site - 1]
            first = int(granules[np.argmax(sites == site)]) * self._granule
            slot = first // max(1, self.region.stride)
            lanes.launch.reporter.add(
                "leftovers", CODE, f"what this writes to shared memory is {how} without having been read", instruction,
                count=int((sites == site).sum()), where=(lanes.batch.workgroup(slot), 0, 0),
                address=first % max(1, self.region.stride), severity="warning",
            )

