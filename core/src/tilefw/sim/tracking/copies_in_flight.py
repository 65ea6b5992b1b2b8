"""Copies of engines on their way in memory that launches at once share: what each reads and writes there, until it has ended.

They are looked up in the batches that have started them, since several of one wave may be under way to one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.engine_copies import EngineCopies, EngineCopy
from tilefw.sim.memory.regions import Region
from tilefw.sim.memory.views.events import SyncScope


class _Frame(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...


class CopyingBatch(Protocol):
    """What is asked of a batch of workgroups that starts copies."""

    @property
    def workgroups(self) -> Array: ...
    @property
    def frame(self) -> _Frame: ...
    @property
    def engines(self) -> EngineCopies: ...


class CopySide:
    """One side of a copy: the elements of a region that it reads or `writes`, at byte offsets `index`, each with its row."""

    def __init__(self, copy: EngineCopy, writes: bool) -> None:
        self.writes, self.region = writes, copy.destination if writes else copy.source
        self.rows, self.index = copy.elements(writes)
        # Each addition of a reduction is relaxed, of the device's scope.
        self.scope = int(SyncScope.DEVICE) if writes and copy.reduction is not None else 0


@dataclass(frozen=True, slots=True)
class StartedCopy:
    """A copy on its way, one side of it, and by row the wave that started it: the number of the agent in all launches."""

    copy: EngineCopy
    side: CopySide
    first_agent: int
    agents: Array


@dataclass(slots=True)
class CopiesInFlight:
    """Of all launches at once. `_rows`: how many rows of copies are under way in a region (its identity), reading or writing."""

    _batches: dict[int, tuple[int, CopyingBatch]] = field(default_factory=dict)
    _rows: Counter[tuple[int, bool]] = field(default_factory=Counter)

    def started(self, first_agent: int, batch: CopyingBatch, side: CopySide, rows: int) -> None:
        """A batch of the launch whose agents begin at `first_agent` starts a copy."""
        self._batches[id(batch)] = first_agent, batch
        self._rows[id(side.region), side.writes] += rows

    def ended(self, side: CopySide, rows: int) -> None:
        """So many rows of a copy have ended."""
        self._rows[id(side.region), side.writes] -= rows

    def left(self, batch: CopyingBatch) -> None:
        """A batch has ended."""
        self._batches.pop(id(batch), None)

    def meeting(self, region: Region, writes: bool) -> Iterator[StartedCopy]:
        """Sides of copies under way in a region that write, or that read what an access `writes`."""
        kinds = [kind for kind in ((True, False) if writes else (True,)) if self._rows[id(region), kind] > 0]
        if not kinds:
            return
        for first, batch in self._batches.values():
            for copy in batch.engines.flying:
                for kind in kinds:
                    if (copy.destination if kind else copy.source) is region:
                        yield StartedCopy(copy, CopySide(copy, kind), first, starting_waves(first, batch, copy))


def starting_waves(first_agent: int, batch: CopyingBatch, copy: EngineCopy) -> Array:
    """By row of a copy the agent of the wave that started it."""
    _, waves, width = batch.frame.shape
    return first_agent + batch.workgroups[copy.thread // (waves * width)] * waves + copy.thread // width % waves


def where_in(granules: Array, chosen: Array) -> Array:
    """By granule the place of it among the `chosen` ones, -1 where it is none of them."""
    order = np.argsort(chosen, kind="stable")
    at = np.minimum(np.searchsorted(chosen[order], granules), len(chosen) - 1)
    return np.where(chosen[order][at] == granules, order[at], -1)
