"""races: two accesses to one byte, one of them a write, by different waves with nothing ordering them. Both sides are named.

Order comes from barriers (vector clocks per workgroup: a barrier joins the clocks of the waves that take part) and from
release/acquire pairs of atomics and fences on one address; of these those of the workgroup's scope order no other workgroup.
Between waves of one workgroup they are each wave's (within_workgroups.py); between workgroups they are kept per workgroup: a
receiving workgroup is taken to know at once what one of its waves has acquired, so some races are missed. What several workgroups
have read is ordered before a store when its workgroup has acquired from all of the launch, or of its cluster where that is the
cluster's shared memory: there a race may be reported that is none. An access to shared memory that an event finishes
is ordered by a barrier only when its wave has waited for the event before it. Lanes of one wave never race: within an
instruction the highest lane wins, between instructions the wave's own order holds. Stores of equal bytes do not race. A place
keeps its last writer and its readers since, as one wave, several waves of one workgroup, or several workgroups.
A load whose value no wave uses is in no race (tracking/unused_loads.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.compiled_races import NOT_HERE, TOGETHER, CompiledRaces, Waves
from tilefw.sim.checks.engine_order import RACE_CODE, Actor, EngineOrder, Knowledge
from tilefw.sim.checks.synchronisation import Synchronisation
from tilefw.sim.checks.within_workgroups import WithinWorkgroups
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.frame import Frame
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, AccessKind, Piece
from tilefw.sim.memory.copies import Copy
from tilefw.sim.memory.regions import Region, common_alignment, same_bytes
from tilefw.sim.memory.spaces import owners_of
from tilefw.sim.program import Instruction
from tilefw.sim.report import first_true
from tilefw.sim.tracking.events import KIND_SHIFT, later, settled_by
from tilefw.sim.tracking.last_accesses import SEVERAL_GROUPS, SEVERAL_WAVES, LastAccesses
from tilefw.sim.tracking.unused_loads import UnusedLoads


class Races(Synchronisation, EngineOrder):
    """The race check of one launch."""

    name = "races"
    orders_accesses = True
    bytes_per_byte = 7

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        instructions = self._instructions = launch.program.instructions
        # By place: what workgroups have released there of what they know of others, and each of its own.
        self._released: dict[tuple[int, int], Knowledge] = {}
        self._own: dict[tuple[int, int], Knowledge] = {}
        self._within = WithinWorkgroups()
        self._known: dict[int, Knowledge] = {}
        # By workgroup: what its fences have released, and what its strong loads have seen released and no fence acquired.
        self._fenced: dict[int, Knowledge] = {}
        self._seen: dict[int, Knowledge] = {}
        self._touched: list[Region] = []
        self._unshared = {"param", "const", *(space for space, owner in owners_of(launch.chip).items() if owner != "workgroup")}
        settled = {i.index: settled_by(i) for i in instructions if i.issues}
        self._settled = {index: kind for index, kind in settled.items() if kind is not None}
        self._clock = np.int64 if self._settled else np.uint32
        self._units = any(issue.grouped for instruction in instructions for issue in instruction.issues)
        self._unused = UnusedLoads(launch.program, launch.diagnostics.reporter)
        self._compiled = CompiledRaces(self._clock)

    def begin(self, batch: Batch) -> None:
        super().begin(batch)
        self._unused.begin(batch)

    def end(self, batch: Batch) -> None:
        super().end(batch)
        self._unused.end(batch)

    def close(self) -> None:
        """The launch is over: what follows it is ordered behind it."""
        self._unused.close()
        for region in self._touched:
            region.races = None

    # --- accesses ------------------------------------------------------------------------------------------------------

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        if access.space in self._unshared:
            return
        if access.engine:
            self.engine_reads(lanes, access)
        for piece in self._here(access):
            self._access(lanes, piece, access.size, access.kind, access.strong, access.values)

    def copy_read(self, lanes: NumpyLanes, access: Access) -> None:
        if access.space in ("global", "shared", "generic"):
            for piece in self._here(access):
                self._access(lanes, piece, access.size, "read", False, None)

    def _here(self, access: Access) -> Iterator[Piece]:
        """The pieces that this check is for: memory that launches at once share is for the check of races between ranks."""
        return (piece for piece in access.pieces if not self.launch.shares_with_others(piece.region))

    def _access(self, lanes: NumpyLanes, piece: Piece, size: int, kind: AccessKind, strong: bool, values: Array | None) -> None:
        """A load, store or atomic of `size` bytes at each lane of a piece; `values` are those of the access."""
        atomic = kind == "atomic"
        if not (strong or atomic):
            if self._compiled_access(lanes, piece, size, kind, values):
                return
            self._compiled.plainly(kind, lambda: self._plain_access(lanes, piece, size, kind, strong, values))
            return
        self._plain_access(lanes, piece, size, kind, strong, values)

    def _compiled_access(self, lanes: NumpyLanes, piece: Piece, size: int, kind: AccessKind, values: Array | None) -> bool:
        """A weak load or store in compiled form; false where it has none, and nothing has changed."""
        places, site = piece.region.races, lanes.instruction.index
        if not self._has_compiled_form(kind, lanes.batch, piece.region) or not isinstance(places, LastAccesses):
            return False
        event = self._settled.get(site)
        stamps = event if event is not None and piece.region is lanes.batch.memory.region("shared") else None
        waves = Waves.of_frame(lanes.batch, lanes.frame, piece.lanes, stamps)
        index = piece.index if piece.lanes is not None else np.broadcast_to(piece.index, lanes.frame.shape)
        if kind == "read":
            return self._compiled.read(waves, places, index, size, site)
        acted = self._unused.acted(lanes.batch, site)
        answer = self._compiled.write(waves, places, index, size, site, acted=acted)
        if answer == TOGETHER:
            places, granules = self._last_accesses(piece.region, lanes.frame, piece, size)
            actor, clock, group, wave = self._actors(lanes, piece)
            me = (actor[:, None], clock[:, None], group[:, None], wave[:, None])
            self._check_together(lanes, piece, size, kind, _by_lane(lanes, piece, values), places, granules, me)
        return answer != NOT_HERE

    def _has_compiled_form(self, kind: AccessKind, batch: Batch, region: Region) -> bool:
        """Compiled forms know nothing of what workgroups have acquired of each other; in shared memory only a cluster's meet."""
        alone = region is batch.memory.region("shared") and self.launch.geometry.cluster_workgroups == 1
        if self._units or (self._known and not alone):
            return False
        return self._compiled.ready(kind)

    def _plain_access(
        self, lanes: NumpyLanes, piece: Piece, size: int, kind: AccessKind, strong: bool, values: Array | None
    ) -> None:
        atomic, values = kind == "atomic", _by_lane(lanes, piece, values)
        places, granules = self._last_accesses(piece.region, lanes.frame, piece, size)
        actor, clock, group, wave = self._actors(lanes, piece)
        kind_of_event = self._settled.get(lanes.instruction.index)
        if kind_of_event is not None and piece.region is lanes.batch.memory.region("shared"):
            clock = lanes.batch.events.stamp(kind_of_event, group, wave)
        me = (actor[:, None], clock[:, None], group[:, None], wave[:, None])
        bad, other = self._conflicts_with_writer(lanes, places, granules, me, strong or atomic)
        if kind != "read":
            reading = self._conflicts_with_readers(lanes, places, granules, me)
            if values is not None:
                index = piece.offsets(lanes.frame.shape)
                bad &= ~same_bytes(piece.region, index, values.reshape(-1), size, places.granule)
            other = np.where(reading & ~bad, -1 - places.read_site[granules], other)
            bad |= reading
        site = lanes.instruction.index
        if bad.any():
            bad = self._keep_unused(lanes, piece, bad, other, kind, places, granules, me)
        if bad.any():
            self._report(lanes, piece, bad, other, kind, places, granules)
        if kind == "write":
            self._unused.stored(lanes.batch, site, group, wave)
        if kind == "read":
            if not strong:
                self._note_read(lanes, places, granules, me, site)
        else:
            self._note_write(places, granules, me, site, atomic or strong, piece.turns)
            if not (atomic or strong):
                self._check_together(lanes, piece, size, kind, values, places, granules, me)

    def _check_together(
        self, lanes: NumpyLanes, piece: Piece, size: int, kind: AccessKind, values: Array | None, places: LastAccesses,
        granules: Array, me: Actor,
    ) -> None:
        """Several waves wrote one place in this very step: the last one stands there, and the others wrote something else."""
        lost = places.writer[granules] != me[0]
        if not lost.any():
            return
        flat = granules.reshape(-1)
        order = np.argsort(flat, kind="stable")
        winner = order[np.searchsorted(flat[order], flat, side="right") - 1]
        if values is not None:
            parts = np.ascontiguousarray(values)[..., None].view(np.uint8).reshape(len(flat), -1)
            lost &= (parts != parts[winner]).any(axis=1).reshape(lost.shape)
        if lost.any():
            self._report(lanes, piece, lost, places.write_site[granules], kind, places, granules)

    def copy_started(self, lanes: NumpyLanes, copy: Copy) -> None:
        """An asynchronous write begins: whoever read or wrote there must be ordered before it."""
        if not self._compiled_copy(lanes.batch, copy, False):
            self._compiled.plainly("write", lambda: self._plain_copy_started(lanes, copy))

    def _plain_copy_started(self, lanes: NumpyLanes, copy: Copy) -> None:
        piece, me, places, granules = self._copy_parts(lanes, copy)
        bad, other = self._conflicts_with_writer(lanes, places, granules, me, False)
        reading = self._conflicts_with_readers(lanes, places, granules, me)
        other = np.where(reading & ~bad, -1 - places.read_site[granules], other)
        bad |= reading
        if bad.any():
            self._report(lanes, piece, bad, other, "write", places, granules)

    def copy_landed(self, lanes: NumpyLanes, copy: Copy) -> None:
        """Its bytes count as written by the thread that started it, at the wait."""
        if not self._compiled_copy(lanes.batch, copy, True):
            self._compiled.plainly("write", lambda: self._plain_copy_landed(lanes, copy))

    def _plain_copy_landed(self, lanes: NumpyLanes, copy: Copy) -> None:
        _, me, places, granules = self._copy_parts(lanes, copy)
        self._note_write(places, granules, me, copy.instruction.index, False)

    def _compiled_copy(self, batch: Batch, copy: Copy, lands: bool) -> bool:
        """A copy that begins or `lands` in compiled form; false where it has none, and nothing has changed."""
        places = copy.destination.races
        if not self._has_compiled_form("write", batch, copy.destination) or not isinstance(places, LastAccesses):
            return False
        waves, site = Waves.of_threads(batch, copy.thread), copy.instruction.index
        return self._compiled.write(waves, places, copy.index, copy.size, site, checks=not lands, notes=lands) != NOT_HERE

    def _copy_parts(self, lanes: NumpyLanes, copy: Copy) -> tuple[Piece, Actor, LastAccesses, Array]:
        batch = lanes.batch
        _, waves, width = batch.frame.shape
        slot, wave = copy.thread // (waves * width), copy.thread // width % waves
        group = batch.workgroups[slot]
        actor = ((group + 1) * 64 + wave).astype(np.uint32)
        clock = batch.clocks[slot, wave, wave].astype(self._clock)
        mask = np.zeros(batch.frame.shape, dtype=np.bool_)
        mask.reshape(-1)[copy.thread] = True
        piece = Piece(copy.destination, copy.index, mask)
        places, granules = self._last_accesses(copy.destination, batch.frame, piece, copy.size)
        return piece, (actor[:, None], clock[:, None], slot[:, None], wave[:, None]), places, granules

    def _last_accesses(self, region: Region, frame: Frame, piece: Piece, size: int) -> tuple[LastAccesses, Array]:
        places = region.races
        if not isinstance(places, LastAccesses):
            places = region.races = LastAccesses(region, min(4, size), self._clock)
            self._touched.append(region)
        part = common_alignment(piece.index, min(size, places.granule))
        if part < places.granule:
            places.refine(part)
        index = piece.offsets(frame.shape)
        first = index // places.granule
        return places, first[:, None] + np.arange(max(1, size // places.granule))

    def _actors(self, lanes: NumpyLanes, piece: Piece) -> tuple[Array, Array, Array, Array]:
        frame, batch = lanes.frame, lanes.batch
        slot = np.broadcast_to(frame.group, frame.shape)
        wave = np.broadcast_to(frame.wave, frame.shape)
        slot, wave = (slot.reshape(-1), wave.reshape(-1)) if piece.lanes is None else (slot[piece.lanes], wave[piece.lanes])
        actor = ((batch.workgroups[slot] + 1) * 64 + wave).astype(np.uint32)
        return actor, batch.clocks[slot, wave, wave].astype(self._clock), slot, wave

    def _conflicts_with_writer(
        self, lanes: NumpyLanes, places: LastAccesses, granules: Array, me: Actor, strong: bool
    ) -> tuple[Array, Array]:
        actor = me[0]
        writer = places.writer[granules]
        bad = (writer != 0) & (writer != actor)
        if strong:
            bad &= ~places.strong[granules]
        if bad.any():
            bad &= ~self._ordered(lanes, writer, places.written[granules], me, bad)
        return bad, places.write_site[granules]

    def _conflicts_with_readers(self, lanes: NumpyLanes, places: LastAccesses, granules: Array, me: Actor) -> Array:
        reader = places.reader[granules]
        bad = (reader != 0) & (reader != me[0])
        if self._units:
            bad |= (reader != 0) & lanes.batch.events.of_units(places.read[granules])
        if bad.any():
            bad &= ~self._ordered(lanes, reader, places.read[granules], me, bad, (places, granules))
        return bad

    def _ordered(
        self, lanes: NumpyLanes, actor: Array, clock: Array, me: Actor, asked: Array, read: tuple[LastAccesses, Array] | None = None
    ) -> Array:
        """Whether the access (actor, clock) happens before what `me` does now, where asked; `read`: the places that it reads."""
        _, _, slot, wave = me
        batch = lanes.batch
        slot, wave = np.broadcast_to(slot, actor.shape), np.broadcast_to(wave, actor.shape)
        group = (actor >> np.uint32(6)).astype(np.int64) - 1
        other = (actor & np.uint32(63)).astype(np.int64)
        mine = (group == batch.workgroups[slot]) & (actor != SEVERAL_GROUPS)
        several = other == SEVERAL_WAVES
        one = np.where(several, 0, np.minimum(other, batch.clocks.shape[1] - 1))
        known = batch.clocks[slot, wave, one]
        if several.any():
            known = np.where(several, batch.clocks.min(axis=2)[slot, wave], known)
        result = known >= clock
        if self._settled and not (result | ~asked | ~mine).all():
            result |= batch.events.settled(clock, slot, wave, one, several)
        result &= mine
        if read is not None and several.any():
            result &= ~read[0].clocks_differ(read[1])
        if read is not None and (left := asked & several & mine & ~result).any():
            readers = read[0].several(read[1][left], batch.clocks.shape[1])
            clocks = read[0].readers_clocks(read[1][left], batch.clocks.shape[1])
            result[left] = self._readers_ordered(batch, readers, clocks, slot[left], wave[left])
        if self._known:
            foreign = asked & ~mine & (actor != SEVERAL_GROUPS)
            for place in zip(*np.nonzero(foreign), strict=True):
                waves = other[place][None] if read is None else read[0].reading_waves(read[1][place][None], int(actor[place]), 0)
                result[place] = self._knows(int(batch.workgroups[slot[place]]), int(group[place]), waves, int(clock[place]))
            if (of_all := asked & (actor == SEVERAL_GROUPS)).any():
                acting = list(zip(slot[of_all].tolist(), wave[of_all].tolist(), strict=True))
                near = read is not None and read[0] is batch.memory.region("shared").races
                least = {one: self._least_known(batch, *one, near) for one in dict.fromkeys(acting)}
                result[of_all] = np.array([least[one] for one in acting]) >= clock[of_all]
        return result

    def _least_known(self, batch: Batch, slot: int, wave: int, near: bool) -> int:
        """The clock that a wave knows all others to have reached, of its cluster (`near`: its shared memory is what they have read)
        or of the launch: whichever they are that have read a place."""
        mine, geometry = int(batch.workgroups[slot]), self.launch.geometry
        members = geometry.cluster_workgroups if near else geometry.workgroups
        first = slot // members * members
        cluster = set(batch.workgroups[first : first + members].tolist()) if near else None
        known = self._known.get(mine, {}).items()
        others = [clocks for group, clocks in known if group != mine and (cluster is None or group in cluster)]
        if len(others) < members - 1:
            return -1
        return min(int(clocks.min()) for clocks in (*others, np.delete(batch.clocks[slot, wave], wave)) if clocks.size)

    def _readers_ordered(self, batch: Batch, readers: Array, clocks: Array, slot: Array, wave: Array) -> Array:
        """The same of several waves of one workgroup, `readers` [places, waves] at `clocks`, whatever is known of others."""
        slots, mine = (np.broadcast_to(part[:, None], readers.shape) for part in (slot, wave))
        others = np.broadcast_to(np.arange(readers.shape[1]), readers.shape)
        known = batch.clocks[slots, mine, others] >= clocks
        own = others == mine  # its own loads are before what it does now; those of a unit need not be
        known |= own & ~batch.events.of_units(clocks) if self._units else own
        if self._settled:
            known |= batch.events.settled(clocks, slots, mine, others, np.zeros(readers.shape, dtype=np.bool_))
        return (known | ~readers).all(axis=1)

    def _note_write(
        self, places: LastAccesses, granules: Array, me: Actor, site: int, strong: bool, turns: Array | None = None
    ) -> None:
        """Of several that write one place, the last one stays: in the order `turns`, or in that of their lanes."""
        actor, clock = me[0], me[1]
        if turns is not None:
            granules, actor, clock = granules[turns], actor[turns], clock[turns]
        places.writer[granules] = np.broadcast_to(actor, granules.shape)
        places.written[granules] = np.broadcast_to(clock, granules.shape)
        places.write_site[granules] = site
        places.strong[granules] = strong
        places.reader[granules] = 0
        places.forget_several(granules)
        if places.any_mixed:
            places.mixed[granules] = False

    def _note_read(self, lanes: NumpyLanes, places: LastAccesses, granules: Array, me: Actor, site: int) -> None:
        actor, clock, _, _ = me
        actor, clock = np.broadcast_to(actor, granules.shape), np.broadcast_to(clock, granules.shape)
        seen = places.reader[granules] != 0
        if seen.any():
            seen &= places.read_site[granules] != site
            if seen.any():
                places.mixed[granules] |= seen
                places.any_mixed = True
        # Lanes of several waves may read one place in this very step: the first pass claims it, the second sees who else does.
        for _ in range(2):
            reader = places.reader[granules]
            foreign = (reader != 0) & (reader != actor)
            if foreign.any():
                foreign &= ~self._ordered(lanes, reader, places.read[granules], me, foreign, (places, granules))
            places.forget_several(granules, foreign)
            if not foreign.any():
                places.reader[granules], places.read[granules] = actor, clock
                continue
            one_group = (reader >> np.uint32(6)) == (actor >> np.uint32(6))
            several = np.where(one_group & (reader != SEVERAL_GROUPS), actor | np.uint32(SEVERAL_WAVES), SEVERAL_GROUPS)
            shared = foreign & (several != SEVERAL_GROUPS)
            if shared.any():
                places.note_several(granules[shared], reader[shared], actor[shared], clock[shared])
            combined = np.where(foreign, several, actor)
            both = later(clock, places.read[granules]) if self._settled else np.maximum(clock, places.read[granules])
            latest = np.where(foreign, both, clock)
            order = np.argsort(foreign.reshape(-1), kind="stable")
            flat = granules.reshape(-1)[order]
            places.reader[flat] = combined.reshape(-1)[order]
            places.read[flat] = latest.reshape(-1)[order]
        places.read_site[granules] = site

    def _report(
        self, lanes: NumpyLanes, piece: Piece, bad: Array, other: Array, kind: str, places: LastAccesses, granules: Array
    ) -> None:
        for of_pair in _pairs(bad, other):
            self.launch.diagnostics.reporter.add(**self._finding(lanes, piece, of_pair, other, kind, places, granules))

    def _finding(
        self, lanes: NumpyLanes, piece: Piece, bad: Array, other: Array, kind: str, places: LastAccesses, granules: Array
    ) -> dict[str, Any]:
        """The arguments of `Reporter.add` for the accesses in `bad`."""
        element = bad.any(axis=1)
        frame = lanes.batch.frame if piece.lanes is not None and piece.lanes.shape == lanes.batch.frame.shape else lanes.frame
        full = np.zeros(frame.shape, dtype=np.bool_)
        if piece.lanes is None:
            full[...] = element.reshape(frame.shape)
        else:
            full[piece.lanes] = element
        a, b, lane = first_true(full)
        row = int(np.argmax(element))
        column = int(np.argmax(bad[row]))
        granule = granules[row, column]
        site = int(other[row, column])
        reading = site < 0
        instruction: Instruction = self._instructions[-1 - site if reading else site]
        actor = places.reader[granule] if reading else places.writer[granule]
        where = lanes.locate_in(frame, a, b, lane)
        address = piece.region.base + int(granule * places.granule) % max(1, piece.region.stride)
        verb = {"read": "load", "write": "store", "atomic": "atomic operation"}[kind]
        name = f" on {piece.region.label}" if piece.region.label else ""
        place = f" ({instruction.code})" if instruction.code else ""
        note = self._missing_wait(places.read[granule] if reading else places.written[granule], instruction)
        return {
            "check": self.name, "code": RACE_CODE, "instruction": lanes.instruction, "count": int(element.sum()), "where": where,
            "message": f"race{name}: this {verb} is not ordered with {'a load' if reading else 'a write'} of another wave",
            "address": address, "other": f"`{instruction.text}`{place} by {_who(lanes, int(actor))}",
            "other_site": instruction.index,
            "note": note or self._missing_fence(lanes, frame, (a, b, lane), int(actor), places, granule, reading),
        }

    def _keep_unused(
        self, lanes: NumpyLanes, piece: Piece, bad: Array, other: Array, kind: AccessKind, places: LastAccesses, granules: Array,
        me: Actor,
    ) -> Array:
        """`bad` without the races of loads whose value may never be used: these are kept until it is known."""
        if kind == "read":
            loads = np.broadcast_to(np.int64(lanes.instruction.index), bad.shape)
            reader, reading = np.broadcast_to(me[0], bad.shape), bad
        else:
            loads = -1 - np.broadcast_to(other, bad.shape).astype(np.int64)
            reader, reading = places.reader[granules], bad & (loads >= 0) & ~places.mixed[granules]
        acting = np.broadcast_to(me[0], bad.shape)
        for load in np.unique(loads[reading]).tolist():
            for actor in np.unique(reader[reading & (loads == load)]).tolist():
                group = actor // 64 - 1
                if actor == int(SEVERAL_GROUPS) or not self._unused.may_be_unused(load, group):
                    continue
                chosen = reading & (loads == load) & (reader == actor)
                for own in np.unique(acting[chosen]).tolist():
                    part = chosen & (acting == own)
                    waves = places.reading_waves(granules[part], actor, own if kind != "read" else 0)
                    for of_pair in _pairs(part, other):
                        self._unused.keep(load, group, waves, self._finding(lanes, piece, of_pair, other, kind, places, granules))
                bad = bad & ~chosen
        return bad

    def _missing_fence(
        self, lanes: NumpyLanes, frame: Frame, where: tuple[int, int, int], actor: int, places: LastAccesses, granule: int,
        reading: bool,
    ) -> str | None:
        """That the other access was released and seen, and nothing has acquired it yet."""
        if actor == int(SEVERAL_GROUPS):
            return None
        slot = int(np.broadcast_to(frame.group, frame.shape)[where])
        mine, group, wave = int(lanes.batch.workgroups[slot]), actor // 64 - 1, actor % 64
        clock = int(places.read[granule] if reading else places.written[granule])
        if group == mine or not _covers(self._seen.get(mine, {}), group, wave, clock):
            return None
        return "the other access was released, and this workgroup has seen it without acquiring it: a fence must be between them"

    def _missing_wait(self, clock: Any, instruction: Instruction) -> str | None:
        """What besides a barrier the other access needs before it counts as made."""
        if not clock >> KIND_SHIFT:
            return None
        queue, _ = self._settled[instruction.index]
        return f"a wait for its event in the queue {queue}, and a barrier after that, must be between them"


def _by_lane(lanes: NumpyLanes, piece: Piece, values: Array | None) -> Array | None:
    """What the lanes of a piece store, flat."""
    if values is None:
        return None
    values = np.broadcast_to(values, lanes.frame.shape)
    return values.reshape(-1) if piece.lanes is None else values[piece.lanes]


def _covers(knowledge: Knowledge, group: int, wave: int, clock: int) -> bool:
    """Whether all accesses of a wave up to a clock are known to be ordered before."""
    clocks = knowledge.get(group)
    if clocks is None:
        return False
    return bool((clocks.min() if wave == SEVERAL_WAVES else clocks[wave]) >= clock)


def _pairs(bad: Array, other: Array) -> Iterator[Array]:
    """`bad` in parts, one for each instruction on the other side: one finding is of two instructions."""
    other = np.broadcast_to(other, bad.shape)
    for site in np.unique(other[bad]):
        yield bad & (other == site)


def _who(lanes: NumpyLanes, actor: int) -> str:
    if actor == int(SEVERAL_GROUPS):
        return "several workgroups"
    group, wave = lanes.launch.geometry.coordinates(actor // 64 - 1), actor % 64
    return f"workgroup {group}, " + ("several waves" if wave == SEVERAL_WAVES else f"wave {wave}")
