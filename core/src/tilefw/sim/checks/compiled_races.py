"""The race check's accesses in compiled form: what a function is given, and what is left for NumPy's form.

Weak loads and stores, and copies of threads, have one; whatever is to be reported does not, as such a function refuses first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from tilefw.sim.compiled.pricing import LazyFunction, address_of, numbers
from tilefw.sim.compiled.shadow_memory import NOT_HERE, OK, READ, TOGETHER, WRITE, reading, writing
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import AccessKind
from tilefw.sim.tracking.last_accesses import LastAccesses
from tilefw.sim.tracking.queues import Kind

__all__ = ("NOT_HERE", "TOGETHER", "CompiledRaces", "Waves")


class Waves:
    """Waves that make an access, by number: the actor of each, its clock, and its row of what it knows of others. Lane by lane of
    the access, `threads` >> `shift` is the number of its wave, which has `lanes` lanes: one where the wave makes one access."""

    __slots__ = ("actor", "batch", "clock", "lanes", "row", "shift", "slot", "threads")

    def __init__(
        self, batch: Batch, slot: Array, wave: Array, lanes: int, threads: Array | None, stamps: Kind | None = None
    ) -> None:
        self.batch, self.slot, self.lanes = batch, slot, lanes
        self.actor = ((batch.workgroups[slot] + 1) * 64 + wave).astype(np.uint32)
        clock = batch.clocks[slot, wave, wave] if stamps is None else batch.events.stamp(stamps, slot, wave)
        self.clock = np.ascontiguousarray(clock)
        self.row = slot * batch.clocks.shape[1] + wave
        self.threads = None if threads is None else np.ascontiguousarray(threads)
        self.shift = lanes.bit_length() - 1

    @classmethod
    def of_frame(cls, batch: Batch, frame: Frame, acting: Array | None, stamps: Kind | None) -> Self:
        """Those of a frame, with lanes that are `acting` (None: all); their clocks are `stamps` of events where some are given."""
        slot, wave = (np.broadcast_to(part[:, :, 0], frame.shape[:2]).reshape(-1) for part in (frame.group, frame.wave))
        return cls(batch, slot, wave, frame.shape[2], None if acting is None else np.flatnonzero(acting), stamps)

    @classmethod
    def of_threads(cls, batch: Batch, threads: Array) -> Self:
        """All of a batch, for these threads of it."""
        groups, waves, lanes = batch.frame.shape
        slot, wave = np.divmod(np.arange(groups * waves), waves)
        return cls(batch, slot, wave, lanes, threads)

    def agree(self) -> bool:
        """Whether the waves of each workgroup have one clock."""
        last = np.zeros(len(self.batch.workgroups), dtype=np.int64)
        last[self.slot] = self.clock
        return bool((last[self.slot] == self.clock).all())


class CompiledRaces:
    """The functions of one launch, whose clocks are kept as `clock`."""

    def __init__(self, clock: type[np.integer[Any]]) -> None:
        bits = np.dtype(clock).itemsize * 8
        self._reading, self._writing = LazyFunction(reading, bits, len(READ)), LazyFunction(writing, bits, len(WRITE))

    def ready(self, kind: AccessKind) -> bool:
        """Whether accesses of a kind have compiled form, now that so much was spent on the other."""
        return (self._reading if kind == "read" else self._writing).ready()

    def plainly(self, kind: AccessKind, act: Callable[[], object]) -> None:
        """NumPy's form of an access."""
        (self._reading if kind == "read" else self._writing).plainly(act)

    def read(self, waves: Waves, places: LastAccesses, index: Array, size: int, site: int) -> bool:
        """Look at a load and note it; false where NumPy's form must, and nothing has changed."""
        granules = size // places.granule
        if not self._takes(places, granules, waves) or not waves.agree():
            return False
        count = index.size * granules
        kept = np.empty(count * 13 + 1, dtype=np.uint8)  # 8 bytes for a clock, 4 for an actor, 1 for flags; whether any is mixed
        kept[-1] = 0
        place = address_of(kept)
        words, held = self._common(waves, places, index, site)
        words += [place + 12 * count, place + 8 * count, place, place + 13 * count]
        answer = self._reading.call(words, index.size, granules)
        del held
        places.any_mixed = places.any_mixed or bool(kept[-1])
        return answer == OK

    def write(
        self, waves: Waves, places: LastAccesses, index: Array, size: int, site: int, *, checks: bool = True, notes: bool = True,
        acted: Array | None = None,
    ) -> int:
        """Look at a store or copy where it `checks`, note it where it `notes`: OK, TOGETHER, or NOT_HERE where NumPy's form must do
        it, and nothing has changed. `acted` gets the waves that store."""
        granules = size // places.granule
        if not self._takes(places, granules, waves):
            return NOT_HERE
        marks = np.empty(waves.batch.clocks.shape[:2], dtype=np.bool_) if acted is None else acted
        words, held = self._common(waves, places, index, site)
        words += [checks, notes, places.any_mixed, address_of(marks)]
        answer = self._writing.call(words, index.size, granules)
        del held
        return answer

    @staticmethod
    def _takes(places: LastAccesses, granules: int, waves: Waves) -> bool:
        return places.vectors is None and granules > 0 and 1 << waves.shift == waves.lanes

    @staticmethod
    def _common(waves: Waves, places: LastAccesses, index: Array, site: int) -> tuple[list[int], object]:
        """The words that all functions take, and what must live until they have been called."""
        if places.waves is None:
            places.waves, places.addresses = np.zeros(len(places.reader), dtype=np.uint64), None
        index, batch = np.ascontiguousarray(index), waves.batch
        threads = numbers(index.size) if waves.threads is None else waves.threads
        kinds = np.array([address_of(each) for each in batch.events.settled_arrays()] or [0], dtype=np.int64)
        words = [
            address_of(index), address_of(threads), waves.shift, address_of(waves.actor), address_of(waves.clock),
            address_of(waves.row), address_of(batch.clocks), batch.clocks.shape[1], address_of(kinds),
            places.granule.bit_length() - 1, site,
        ]
        if places.addresses is None:
            arrays = (
                places.writer, places.written, places.write_site, places.strong, places.reader, places.read, places.read_site,
                places.mixed, places.waves,
            )
            places.addresses = [address_of(array) for array in arrays]
        return words + places.addresses, (index, threads, kinds)
