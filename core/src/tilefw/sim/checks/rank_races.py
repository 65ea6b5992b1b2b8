"""races between ranks: two accesses of memory that launches at once share, one of them a write, which nothing orders.

Every wave of every launch is an agent of the view machine; an access is before another one if releases, acquires, fences and
barriers say so, each with the scope that it has: a release of the device's scope orders nobody on another rank. Accesses that are
strong and have each other in scope do not race, but for atomics of different widths; stores of equal bytes do not. What a strong
read meets is what memory holds, or with weak memory the value that it was given. A wave's accesses between two of its releases are
one epoch (tracking/agent_accesses.py). What engines copy is in rank_engine_order.py.
A load whose value nobody uses counts as any other: a compiler's speculative load of what another rank writes would be reported.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.agent_order import is_shared_by_all, label
from tilefw.sim.checks.engine_order import RACE_CODE
from tilefw.sim.checks.rank_engine_order import IN_FLIGHT, RankEngineOrder
from tilefw.sim.engine.joint_agents import JointAgents
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece
from tilefw.sim.memory.regions import Region, gather
from tilefw.sim.memory.views.events import SyncScope
from tilefw.sim.memory.views.words import WORD
from tilefw.sim.report import first_true
from tilefw.sim.tracking.agent_accesses import NOBODY, AccessRecord, PlaceAccesses, ReadGroups

_VERBS = {"read": "load", "write": "store", "atomic": "atomic operation"}


class RankRaces(RankEngineOrder):
    """The race check of one of several launches at once."""

    name = "races"

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        assert launch.joint is not None
        self._joint: JointAgents = launch.joint
        self.leads = "weak_memory" not in launch.options.checks

    @classmethod
    def made_for(cls, launch: LaunchState) -> Self | None:
        return cls(launch) if launch.joint is not None else None

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        scope = int(label(access.order, access.scope).scope)
        for piece in access.pieces:
            if is_shared_by_all(piece.region):
                self._check(lanes, piece, access, scope)

    def copy_read(self, lanes: NumpyLanes, access: Access) -> None:
        self.access(lanes, access)
        self.copies_read(lanes, access)

    def accessed(self, lanes: NumpyLanes, access: Access) -> None:
        """What strong accesses learn and tell, in memory of a workgroup and in that of all."""
        if not self.leads:
            return
        made, reads, writes = label(access.order, access.scope), access.kind != "write", access.kind != "read"
        for piece in access.pieces:
            self._meet_at(lanes, piece, made, reads, writes)
            if is_shared_by_all(piece.region):
                agents, index = self._agents(lanes, piece), piece.offsets(lanes.frame.shape)
                for agent, offset in dict.fromkeys(zip(agents.tolist(), index.tolist(), strict=True)):
                    self.words.synchronise(agent, (piece.region.base + offset) // WORD, made, reads, writes)

    # -- parts

    def _places(self, region: Region) -> PlaceAccesses:
        """Kept until all launches have ended (`run.kept_regions`): the end of one orders nobody."""
        if not isinstance(region.races, PlaceAccesses):
            region.races = PlaceAccesses(region)
            self._joint.places.append(region.races)
        return region.races

    def _check(self, lanes: NumpyLanes, piece: Piece, access: Access, scope: int) -> None:
        index = piece.offsets(lanes.frame.shape)
        if not len(index):
            return
        places = self._places(piece.region)
        granules = places.granules(index, access.size)
        rows, by_row, acting = self._rows(lanes, piece)
        agents = by_row[rows]
        known = self._joint.known(self.words.agents, by_row[acting].tolist())
        bad, other = self._unordered_write(places.writes[granules], agents, known, scope, access.element)
        if access.kind != "read":
            if bad.any() and access.values is not None:
                bad &= ~self._equal(lanes, piece, access, index, places.granule)
            reading = self._unordered_reads(places.reads[granules], agents, known, scope)
            bad, other = bad | (reading != NOBODY), np.where(bad, other, reading)
        flying = self._in_flight(piece.region, places, granules, agents, scope, access.kind != "read")
        bad, other = bad | (flying != NOBODY), np.where(flying != NOBODY, flying, other)
        numbers = self._numbers_of(lanes, by_row, acting, scope, access.element)[rows]
        if bad.any():
            self._report(lanes, piece, access, bad, other, numbers, granules * places.granule)
        if access.kind == "read":
            self._note_reads(places, granules, numbers, known)
        else:
            self._note_writes(lanes, piece, access, places, granules, numbers)

    def _rows(self, lanes: NumpyLanes, piece: Piece) -> tuple[Array, Array, Array]:
        """By lane of a piece its wave, as a row of the frame; by row the agent; the rows that act."""
        frame = lanes.frame
        group, wave = (np.broadcast_to(part[:, :, 0], frame.shape[:2]).reshape(-1) for part in (frame.group, frame.wave))
        agents = self.launch.memory.first_agent + lanes.batch.workgroups[group] * self._waves + wave
        every = np.arange(len(agents))
        if piece.lanes is None:
            return np.repeat(every, frame.shape[2]), agents, every
        rows = np.broadcast_to(every.reshape(*frame.shape[:2], 1), frame.shape)[piece.lanes]
        return rows, agents, np.flatnonzero(piece.lanes.any(axis=2))

    def _numbers_of(self, lanes: NumpyLanes, agents: Array, acting: Array, scope: int, element: int) -> Array:
        """By row, the number of the record of its agent's access."""
        views, chosen = self.words.agents.views, agents[acting]
        epochs = np.array([views[agent].released for agent in chosen.tolist()]) + 1
        numbers = np.zeros(len(agents), np.int64)
        numbers[acting] = self._joint.records.numbers(chosen, epochs, self._site(lanes), scope, element)
        return numbers

    def _site(self, lanes: NumpyLanes) -> tuple[int, int]:
        return self.launch.memory.first_agent, lanes.instruction.index

    def _unordered_write(
        self, writes: Array, agents: Array, known: Array, scope: int, element: int = 0
    ) -> tuple[Array, Array]:
        """Where another agent wrote last, which is not before now, and the number of its record. `element`: that of an atomic."""
        records, mine = self._joint.records, agents[:, None]
        if not writes.any():
            return np.zeros(writes.shape, np.bool_), writes
        author = records.agent[writes]
        bad = (known[mine, author] < records.epoch[writes]) & (author != mine)
        if scope and bad.any():
            alike = (records.element[writes] == element) | (records.element[writes] == 0) | (element == 0)
            bad &= (np.minimum(records.scope[writes], scope) < self._meetings(mine, author)) | ~alike
        return bad, writes

    def _meetings(self, mine: Array, author: Array) -> Array:
        """The least scope that has both agents, by pair."""
        mine = np.broadcast_to(mine, author.shape)
        found = np.zeros(author.shape, np.int64)
        for agent in np.unique(mine).tolist():
            chosen = mine == agent
            found[chosen] = self._joint.meets(agent)[author[chosen]]
        return found

    def _unordered_reads(self, reads: Array, agents: Array, known: Array, scope: int) -> Array:
        """By granule, the record of a read that may race with this write, NOBODY where none does."""
        if not reads.any():
            return reads
        pairs, inverse = np.unique(reads.astype(np.int64) << 32 | agents[:, None], return_inverse=True)
        found = [
            self._joint.records.unordered(pair >> 32, agent := pair & 0xFFFFFFFF, known[agent], scope, self._joint.meets(agent))
            for pair in pairs.tolist()
        ]
        return np.array(found, np.int64)[inverse.reshape(reads.shape)]

    def _note_reads(self, places: PlaceAccesses, granules: Array, numbers: Array, known: Array) -> None:
        groups = ReadGroups(granules, numbers, places.reads)
        places.reads[groups.granules] = groups.behind(self._joint.records, known)
        self._joint.records.sweep(self._joint.places)

    def _note_writes(
        self, lanes: NumpyLanes, piece: Piece, access: Access, places: PlaceAccesses, granules: Array, numbers: Array
    ) -> None:
        mine = np.broadcast_to(numbers[:, None], granules.shape)
        places.writes[granules] = mine
        places.reads[granules] = NOBODY
        kept = places.writes[granules]
        lost = kept != mine
        if not lost.any():
            return
        records = self._joint.records
        if access.strong or access.kind == "atomic":
            scope = np.minimum(records.scope[kept], records.scope[mine])
            lost &= scope < self._meetings(records.agent[mine], records.agent[kept])
        elif access.values is not None:
            lost &= self._unequal_to_last(lanes, piece, access, granules)
        if lost.any():
            self._report(lanes, piece, access, lost, kept, numbers, granules * places.granule)

    def _values(self, lanes: NumpyLanes, piece: Piece, access: Access, parts: int) -> Array:
        """The bytes that the lanes of a piece store, by granule."""
        assert access.values is not None
        values = np.broadcast_to(access.values, lanes.frame.shape)
        flat = values.reshape(-1) if piece.lanes is None else values[piece.lanes]
        return np.ascontiguousarray(flat)[:, None].view(np.uint8).reshape(len(flat), parts, -1)

    def _equal(self, lanes: NumpyLanes, piece: Piece, access: Access, index: Array, granule: int) -> Array:
        """Where what memory holds is what is stored."""
        now = gather(piece.region, np.ascontiguousarray(index), access.size)
        held = np.ascontiguousarray(now)[..., None].view(np.uint8).reshape(len(index), -1, min(granule, access.size))
        return (held == self._values(lanes, piece, access, held.shape[1])).all(axis=2)

    def _unequal_to_last(self, lanes: NumpyLanes, piece: Piece, access: Access, granules: Array) -> Array:
        """Where the last lane that stores to the same granule stores something else."""
        values = self._values(lanes, piece, access, granules.shape[1])
        parts, flat = values.reshape(granules.size, -1), granules.reshape(-1)
        order = np.argsort(flat, kind="stable")
        last = order[np.searchsorted(flat[order], flat, side="right") - 1]
        return (parts != parts[last]).any(axis=1).reshape(granules.shape)

    def _report(
        self, lanes: NumpyLanes, piece: Piece, access: Access, bad: Array, other: Array, numbers: Array, offsets: Array
    ) -> None:
        """One finding for each access on the other side."""
        for number in np.unique(other[bad]).tolist():
            of_pair = bad & (other == number)
            row = int(np.argmax(of_pair.any(axis=1)))
            element = np.zeros(lanes.frame.shape, np.bool_)
            element[... if piece.lanes is None else piece.lanes] = (
                of_pair.any(axis=1).reshape(lanes.frame.shape) if piece.lanes is None else of_pair.any(axis=1)
            )
            self._tell(
                lanes, piece.region, _VERBS[access.kind], int(of_pair.any(axis=1).sum()), lanes.locate(*first_true(element)),
                int(offsets[row][int(np.argmax(of_pair[row]))]), int(numbers[row]), number,
            )

    def _tell(
        self, lanes: NumpyLanes, region: Region, verb: str, count: int, where: Any, offset: int, mine: int, theirs: int
    ) -> None:
        """A finding of the access with the record number `mine` and another one."""
        me, other = self._joint.records.record(mine), self._joint.records.record(theirs)
        told = self._joint.find(other.agent)
        instruction = told.state.program.instructions[other.site[1]]
        on = f" on {region.label}" if region.label else ""
        at = instruction.source or instruction.code
        rank = self._joint.find(me.agent).rank
        self.launch.diagnostics.reporter.add(
            self.name, RACE_CODE,
            f"race{on}: nothing orders this {_scoped(me)}{verb} of rank {rank} and an access of rank {told.rank}",
            lanes.instruction, count=count, where=where, address=region.base + offset,
            other=f"{_scoped(other)}`{instruction.text}`{f' ({at})' if at else ''} by rank {told.rank}, program "
            f"{told.state.geometry.coordinates(told.workgroup)} of {told.state.program.name}, "
            + ("by an engine" if told.wave is None else f"wave {told.wave}"),
            other_site=other.site[0] << 32 | other.site[1], note=self._missing(me, other, rank, told.rank),
        )

    def _missing(self, mine: AccessRecord, theirs: AccessRecord, rank: int, other: int) -> str:
        """What there is of an order, and what it lacks."""
        views = self.words.agents.views
        if theirs.epoch == IN_FLIGHT:
            return f"the copy of rank {other} has not ended: its wave waits for it before it releases it"
        if mine.element and theirs.element and mine.element != theirs.element:
            return f"an atomic of {8 * mine.element} bits is none to one of {8 * theirs.element} bits: both must be of one width"
        met = [r for r, _ in views[mine.agent].met if r.known.clock[theirs.agent] >= theirs.epoch]
        needed = SyncScope(int(self._joint.meets(mine.agent)[theirs.agent])).name.lower()
        if met:
            scope = max(release.label.scope for release in met).name.lower()
            return (
                f"rank {other} has released it (scope {scope}), and rank {rank} has seen the release without acquiring it: an "
                f"acquire of scope {needed}, and a release of as wide a one, must be between them"
            )
        if views[theirs.agent].released >= theirs.epoch:
            return f"rank {other} has released it since, in a scope or at a place that rank {rank} has acquired nothing from"
        return f"rank {other} has not released it since"


def _scoped(record: AccessRecord) -> str:
    return f"{SyncScope(record.scope).name.lower()}-scope " if record.scope else ""
