"""What engines and counting barriers are to the race check: an engine's copy reads and writes as the wave that started it does, at
its start, and a barrier orders who has arrived, and what it was told the arrival of, before who has passed.

Threads and engines have views of their own of shared memory. What a thread wrote there an engine reads, or writes over, only
behind a fence of views, of the thread or of one that knows of the write (TFW0827). """

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.checks.within_workgroups import WithinWorkgroups
from tilefw.sim.engine.batch import Batch
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region, common_alignment, gather, same_bytes
from tilefw.sim.report import first_true
from tilefw.sim.tracking.events import KIND_SHIFT
from tilefw.sim.tracking.last_accesses import LastAccesses

RACE_CODE, VIEW_CODE = "TFW0804", "TFW0827"
# In keys of what is released: all addresses of a region, where one instruction has many, and the phases of clusters' barriers as
# regions, downwards from this one.
EVERY_ADDRESS, _CLUSTERS = -1, -1

Knowledge = dict[int, Array]
"""By workgroup, the clocks of its waves up to which all accesses are known to be ordered before; of events, by kind and wave, the
stamps up to which they are finished."""
Actor = tuple[Array, Array, Array, Array]
"""Of each lane, as a column: its actor number, clock, number of the workgroup in the batch, and wave."""


class EngineOrder(Check):
    """A part of the race check."""

    orders_accesses = True

    if TYPE_CHECKING:
        _released: dict[tuple[int, int], Knowledge]
        _own: dict[tuple[int, int], Knowledge]
        _within: WithinWorkgroups
        _known: dict[int, Knowledge]
        _fenced: dict[int, Knowledge]
        _clock: Any
        _touched: list[Region]

        def _read(self, batch: Batch, slot: int, wave: int, key: tuple[int, int], acquires: bool, near: bool) -> None: ...
        def _conflicts_with_writer(
            self, lanes: NumpyLanes, places: LastAccesses, granules: Array, me: Actor, strong: bool
        ) -> tuple[Array, Array]: ...
        def _conflicts_with_readers(self, lanes: NumpyLanes, places: LastAccesses, granules: Array, me: Actor) -> Array: ...
        def _note_read(self, lanes: NumpyLanes, places: LastAccesses, granules: Array, me: Actor, site: int) -> None: ...
        def _note_write(self, places: LastAccesses, granules: Array, me: Actor, site: int, strong: bool) -> None: ...
        def _report(
            self, lanes: NumpyLanes, piece: Piece, bad: Array, other: Array, kind: str, places: LastAccesses, granules: Array
        ) -> None: ...

    def begin(self, batch: Batch) -> None:
        self._fenced_views[id(batch)] = np.zeros_like(batch.clocks[:, 0, :])

    def end(self, batch: Batch) -> None:
        self._fenced_views.pop(id(batch), None)
        # Nobody comes back to the memory of a batch that has ended, and memory of a later one may have its identity.
        ended = {id(region) for region in batch.memory}
        self._touched[:] = [region for region in self._touched if id(region) not in ended]
        self._within.end(batch, ended)
        for known in (self._released, self._own, self._told_events, self._makers):
            for key in [key for key in known if key[0] in ended]:
                del known[key]

    @property
    def _fenced_views(self) -> dict[int, Array]:
        """By batch, up to which clock of each wave fences of views have covered its writes."""
        return self.__dict__.setdefault("fenced_views", {})

    # --- views ---------------------------------------------------------------------------------------------------------

    def view_fence(self, lanes: NumpyLanes) -> None:
        batch, fenced = lanes.batch, self._fenced_views[id(lanes.batch)]
        acting = lanes.acting_lanes().any(axis=2)
        slots, waves = (np.broadcast_to(a[:, :, 0], acting.shape)[acting] for a in (lanes.frame.group, lanes.frame.wave))
        np.maximum.at(fenced, slots, batch.clocks[slots, waves])
        batch.clocks[slots, waves, waves] += 1

    def engine_reads(self, lanes: NumpyLanes, access: Access) -> None:
        """An engine reads at once what an access says."""
        for piece in access.pieces:
            places, granules = self._granules(piece.region, piece.index.reshape(-1), access.size)
            self._check_views(lanes, places, granules.reshape(-1), "reads")

    def _check_views(self, lanes: NumpyLanes, places: LastAccesses, granules: Array, verb: str) -> None:
        """Reports what threads wrote there with no fence of views behind it."""
        region = lanes.batch.memory.region("shared")
        writer = places.writer[granules]
        slot = np.minimum(granules * places.granule // max(1, region.stride), len(lanes.batch.workgroups) - 1)
        wave = np.minimum((writer & np.uint32(63)).astype(np.int64), lanes.batch.clocks.shape[1] - 1)
        mine = (writer >> np.uint32(6)).astype(np.int64) - 1 == lanes.batch.workgroups[slot]
        site = places.write_site[granules]
        plain = ~np.isin(site, list(self._engine_sites))
        clock = places.written[granules].astype(np.int64) & 0xFFFFFFFF
        bad = (writer != 0) & mine & plain & (clock > self._fenced_views[id(lanes.batch)][slot, wave])
        if not bad.any():
            return
        row = int(np.argmax(bad))
        instruction = self.launch.program.instructions[int(site[row])]
        code = f" ({instruction.code})" if instruction.code else ""
        offset = int(granules[row] * places.granule) % max(1, region.stride)
        self.launch.diagnostics.reporter.add(
            "races", VIEW_CODE, f"an engine {verb} shared memory that a thread wrote, with no fence between their views",
            lanes.instruction, count=int(bad.sum()), where=lanes.locate(*first_true(lanes.acting_lanes())), address=offset,
            other=f"`{instruction.text}`{code} by wave {int(wave[row])}", other_site=instruction.index,
            note="the writer fences its writes for engines, then synchronises with the thread that starts the engine",
        )

    @property
    def _told_events(self) -> dict[tuple[int, int], Knowledge]:
        """By barrier, the events of each workgroup that those who have arrived know to be finished."""
        return self.__dict__.setdefault("told_events", {})

    @property
    def _known_events(self) -> dict[int, Knowledge]:
        """By workgroup, the events of others that it knows to be finished."""
        return self.__dict__.setdefault("known_events", {})

    def _tell_events(self, batch: Batch, slot: int, wave: int, key: tuple[int, int]) -> None:
        """A wave releases to a place what it knows of events."""
        if batch.events.watching:
            group, told = int(batch.workgroups[slot]), self._told_events.setdefault(key, {})
            told[group] = batch.events.told(slot, wave, int(batch.clocks[slot, wave, wave]), told.get(group))
            join_clocks(told, self._known_events.get(group, {}))

    def _learn_events(self, batch: Batch, slot: int, wave: int, key: tuple[int, int]) -> None:
        """A wave knows what was told to a place."""
        group = int(batch.workgroups[slot])
        for other, events in self._told_events.get(key, {}).items():
            if other == group:
                batch.events.learn(slot, wave, events)
            else:
                join_clocks(self._known_events.setdefault(group, {}), {other: events})

    def _knows(self, mine: int, group: int, waves: Array, clock: int) -> bool:
        """Whether a workgroup knows that accesses of another one's waves are over, up to a clock or the stamp of an event."""
        kind, stamp = clock >> KIND_SHIFT, clock & ((1 << KIND_SHIFT) - 1)
        known = (self._known_events if kind else self._known).get(mine, {}).get(group)
        return known is not None and bool(((known[kind - 1] if kind else known)[waves] >= stamp).all())

    @property
    def _engine_sites(self) -> set[int]:
        """The instructions by which engines have written so far."""
        return self.__dict__.setdefault("engine_sites", set())

    # --- copies --------------------------------------------------------------------------------------------------------

    def engine_started(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        batch = lanes.batch
        me = self._starters(batch, copy, None)
        _, waves, width = batch.frame.shape
        slots, wave = copy.thread // (waves * width), copy.thread // width % waves
        shared = batch.memory.region("shared")
        for kind, region in (("read", copy.source), ("write", copy.destination)):
            rows, chosen = copy.elements(kind == "write")
            if not len(chosen) or self.launch.shares_with_others(region):
                continue
            places, granules = self._granules(region, chosen, copy.size)
            mine: Any = tuple(part[rows] for part in me)
            if region is shared:
                self._check_views(lanes, places, granules.reshape(-1), "reads" if kind == "read" else "writes over")
            bad, other = self._conflicts_with_writer(lanes, places, granules, mine, False)
            if kind == "write":
                bad &= ~_stand_there(copy, places.granule)
                reading = self._conflicts_with_readers(lanes, places, granules, mine)
                other = np.where(reading & ~bad, -1 - places.read_site[granules], other)
                bad |= reading
            if copy.reduction is not None and kind == "write":
                bad &= ~places.strong[granules]
            if bad.any():
                self._report_row(lanes, region, copy, rows, bad, other, kind, places, granules)
            if kind == "read":
                self._note_read(lanes, places, granules, mine, copy.instruction.index)
        batch.clocks[slots, wave, wave] += 1

    def engine_landed(self, batch: Batch, copy: EngineCopy) -> None:
        """Its bytes count as written by the wave that started it, at its start; a barrier tells so."""
        rows, chosen = copy.elements(writes=True)
        self._engine_sites.add(copy.instruction.index)
        if len(chosen) and not self.launch.shares_with_others(copy.destination):
            places, granules = self._granules(copy.destination, chosen, copy.size)
            at = copy if copy.barriers is not None else None
            mine: Any = tuple(part[rows] for part in self._starters(batch, copy, at))
            self._note_write(places, granules, mine, copy.instruction.index, copy.reduction is not None)
        if copy.barriers is None or copy.barrier is None:
            return
        _, waves, width = batch.frame.shape
        for thread, place, clock in zip(copy.thread.tolist(), copy.barrier.tolist(), copy.clock, strict=True):
            group = int(batch.workgroups[thread // (waves * width)])
            self._tell((id(copy.barriers), place), group, clock)

    def _tell(self, key: tuple[int, int], group: int, clock: Array) -> None:
        knowledge = self._released.setdefault(key, {})
        join_clocks(knowledge, {group: clock})
        join_clocks(knowledge, self._known.get(group, {}))

    def _starters(self, batch: Batch, copy: EngineCopy, at: EngineCopy | None) -> tuple[Array, Array, Array, Array]:
        """The wave that started each row, with its clock: now, or as it was then."""
        _, waves, width = batch.frame.shape
        slot, wave = copy.thread // (waves * width), copy.thread // width % waves
        actor = ((batch.workgroups[slot] + 1) * 64 + wave).astype(np.uint32)
        now = batch.clocks[slot, wave, wave] if at is None else at.clock[np.arange(len(wave)), wave]
        return actor[:, None], now.astype(self._clock)[:, None], slot[:, None], wave[:, None]

    def _granules(self, region: Region, index: Array, size: int) -> tuple[LastAccesses, Array]:
        places = region.races
        if not isinstance(places, LastAccesses):
            places = region.races = LastAccesses(region, min(4, size), self._clock)
            self._touched.append(region)
        part = common_alignment(index, min(size, places.granule))
        if part < places.granule:
            places.refine(part)
        return places, (index // places.granule)[:, None] + np.arange(max(1, size // places.granule))

    def _report_row(
        self, lanes: NumpyLanes, region: Region, copy: EngineCopy, rows: Array, bad: Array, other: Array, kind: str,
        places: LastAccesses, granules: Array,
    ) -> None:
        """One finding of the first element that is wrong, as that of its thread."""
        row = int(np.argmax(bad.any(axis=1)))
        mask = np.zeros(lanes.batch.frame.shape, dtype=np.bool_)
        mask.reshape(-1)[copy.thread[rows[row]]] = True
        piece = Piece(region, np.zeros(1, dtype=np.int64), mask)
        one = slice(row, row + 1)
        self._report(lanes, piece, bad[one], np.broadcast_to(other, bad.shape)[one], kind, places, granules[one])

    # --- barriers ------------------------------------------------------------------------------------------------------

    @property
    def _makers(self) -> dict[tuple[int, int], tuple[int, int, int]]:
        """By barrier: who has made it, at which clock, and with which instruction."""
        return self.__dict__.setdefault("makers", {})

    def barrier_made(self, lanes: NumpyLanes, piece: Piece) -> None:
        slots, waves = self._waves(lanes, piece)
        batch = lanes.batch
        for slot, wave, place in zip(slots.tolist(), waves.tolist(), piece.index.tolist(), strict=True):
            actor = (int(batch.workgroups[slot]) + 1) * 64 + wave
            self._makers[id(piece.region), place] = actor, int(batch.clocks[slot, wave, wave]), lanes.instruction.index

    def barrier_used(self, lanes: NumpyLanes, piece: Piece) -> None:
        """Reports who uses a barrier that another wave has made, where nothing orders the two."""
        for slot, wave, place in self._users(lanes, piece):
            made = self._makers.get((id(piece.region), place))
            if made is None or self._after_making(lanes.batch, slot, wave, *made[:2]):
                continue
            instruction = self.launch.program.instructions[made[2]]
            code = f" ({instruction.code})" if instruction.code else ""
            self.launch.diagnostics.reporter.add(
                "races", RACE_CODE, "race: this use of a barrier is not ordered with its making by another wave", lanes.instruction,
                where=(lanes.batch.workgroup(slot), wave, 0), address=place % max(1, piece.region.stride),
                other=f"`{instruction.text}`{code} by wave {made[0] % 64}", other_site=instruction.index,
                note="all threads of the workgroup, or of the cluster, meet between the making of a barrier and its first use",
            )

    def _after_making(self, batch: Batch, slot: int, wave: int, actor: int, clock: int) -> bool:
        group, maker = actor // 64 - 1, actor % 64
        mine = int(batch.workgroups[slot])
        if group != mine:
            return self._knows(mine, group, np.array([maker]), clock)
        return maker == wave or bool(batch.clocks[slot, wave, maker] >= clock)

    def barrier_passed(self, lanes: NumpyLanes, piece: Piece) -> None:
        """Waves know what was told to the barrier."""
        for slot, wave, place in self._users(lanes, piece):
            for key in ((id(piece.region), place), (id(piece.region), EVERY_ADDRESS)):
                self._read(lanes.batch, slot, wave, key, acquires=True, near=False)
                self._learn_events(lanes.batch, slot, wave, key)

    def cluster_met(self, lanes: NumpyLanes, threads: Array, order: str, passed: bool) -> None:
        batch, members = lanes.batch, self.launch.geometry.cluster_workgroups
        _, waves, width = batch.frame.shape
        phases = batch.met.reshape(-1, width).max(axis=1)
        for number in np.unique(threads // width).tolist():
            slot, wave = number // waves, number % waves
            cluster, group = (int(batch.workgroups[place]) for place in (slot // members * members, slot))
            phase = _CLUSTERS - int(phases[number])
            key = (phase, cluster)
            if passed:
                told = self._released.get(key, {})
                self._learn(batch, slot, wave, told)
                self._learn_events(batch, slot, wave, key)
                if group in told:  # from here on the clocks of those who do the same are the same, as behind a workgroup's barrier
                    batch.clocks[slot, wave, wave] = max(batch.clocks[slot, wave, wave], told[group].max() + 1)
                continue
            for known in (self._released, self._told_events):  # all have passed the phase before the last
                known.pop((phase + 2, cluster), None)
            if order == "relaxed":  # what fences before it have released it tells as well
                join_clocks(self._released.setdefault(key, {}), self._fenced.get(group, {}))
            else:
                self._tell(key, group, batch.clocks[slot, wave])
                self._tell_events(batch, slot, wave, key)
                batch.clocks[slot, wave, wave] += 1

    def _learn(self, batch: Batch, slot: int, wave: int, knowledge: Knowledge) -> None:
        group = int(batch.workgroups[slot])
        for other, clocks in knowledge.items():
            if other == group:
                batch.clocks[slot, wave] = np.maximum(batch.clocks[slot, wave], clocks)
                continue
            join_clocks(self._known.setdefault(group, {}), {other: clocks})

    def _users(self, lanes: NumpyLanes, piece: Piece) -> Iterable[tuple[int, int, int]]:
        """The workgroups (numbers in the batch) and waves that use barriers, and at which places; each once. Lanes of a wave, which
        are neighbours, mostly name one barrier."""
        slots, waves = self._waves(lanes, piece)
        users = np.stack([slots, waves, piece.index])
        other = np.ones(users.shape[1], dtype=np.bool_)
        other[1:] = (users[:, 1:] != users[:, :-1]).any(axis=0)
        return dict.fromkeys(zip(*users[:, other].tolist(), strict=True))

    def _waves(self, lanes: NumpyLanes, piece: Piece) -> tuple[Array, Array]:
        assert piece.lanes is not None
        shape = lanes.frame.shape
        return np.broadcast_to(lanes.frame.group, shape)[piece.lanes], np.broadcast_to(lanes.frame.wave, shape)[piece.lanes]


def _stand_there(copy: EngineCopy, granule: int) -> Array:
    """Of the granules that a copy writes, those that hold its source's bytes already: nobody sees who wrote them."""
    if copy.reduction is not None or copy.filling:
        return np.zeros((1, 1), dtype=np.bool_)
    values = gather(copy.source, copy.read_from, copy.size)
    return same_bytes(copy.destination, copy.written, values, copy.size, granule)


def join_clocks(into: Knowledge, other: Knowledge, but: int | None = None) -> None:
    """Know what `other` knows, too, of all workgroups `but` one."""
    for group, clocks in other.items():
        if group == but:
            continue
        known = into.get(group)
        into[group] = clocks.copy() if known is None else np.maximum(known, clocks)
