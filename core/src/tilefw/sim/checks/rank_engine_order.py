"""What engines, and asynchronous copies of threads, read and write of memory that launches at once share, as the check of races
between ranks sees it.

A copy reads and writes as the wave that started it does: what is before the copy must be before its start. Nobody is ordered behind
it while it is on its way, whatever its wave releases meanwhile. When it has ended it is an access: of that wave, whose wait for its
group has ended it, or of the workgroup's engines, of which those learn who wait for the barrier on which it completes.

The engines of a workgroup are one agent: who waits for the barrier of one copy counts as behind those that have ended before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.agent_order import AgentOrder, is_shared_by_all
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.joint_agents import JointAgents
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access
from tilefw.sim.memory.copies import Copy
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region
from tilefw.sim.tracking.agent_accesses import NOBODY, PlaceAccesses
from tilefw.sim.tracking.copies_in_flight import CopySide, StartedCopy, starting_waves, where_in
from tilefw.sim.tracking.pending_reads import PendingRead, numbered

IN_FLIGHT = 1 << 60  # an epoch that nobody gets to know: that of a copy that has not ended


class RankEngineOrder(AgentOrder):
    """A part of the check of races between ranks."""

    if TYPE_CHECKING:
        _joint: JointAgents

        def _places(self, region: Region) -> PlaceAccesses: ...
        def _meetings(self, mine: Array, author: Array) -> Array: ...
        def _unordered_write(
            self, writes: Array, agents: Array, known: Array, scope: int, element: int = 0
        ) -> tuple[Array, Array]: ...
        def _unordered_reads(self, reads: Array, agents: Array, known: Array, scope: int) -> Array: ...
        def _note_reads(self, places: PlaceAccesses, granules: Array, numbers: Array, known: Array) -> None: ...
        def _tell(
            self, lanes: NumpyLanes, region: Region, verb: str, count: int, where: Any, offset: int, mine: int, theirs: int
        ) -> None: ...

    def engine_started(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        for side in _shared_sides(copy):
            self._check_copy(lanes, copy, side)
            self._joint.copies.started(self.launch.memory.first_agent, lanes.batch, side, len(copy.thread))
        super().engine_started(lanes, copy)

    def engine_landed(self, batch: Batch, copy: EngineCopy) -> None:
        for side in _shared_sides(copy):
            self._joint.copies.ended(side, len(copy.thread))
        super().engine_landed(batch, copy)

    def end(self, batch: Batch) -> None:
        self._joint.copies.left(batch)
        self._joint.pending_reads.left(batch)

    def copies_read(self, lanes: NumpyLanes, access: Access) -> None:
        """Copies of threads read from here on until a wait covers them."""
        for piece in access.pieces:
            if is_shared_by_all(piece.region) and piece.lanes is not None and piece.lanes.any():
                threads = lanes.batch.copies.threads(lanes.frame, piece.lanes)
                _, groups = lanes.copy_group(threads)
                site = self.launch.memory.first_agent, lanes.instruction.index
                read = PendingRead(
                    site, piece.region, piece.index, access.size, self._agents(lanes, piece), numbered(threads, groups)
                )
                self._joint.pending_reads.started(lanes.batch, read)

    def copy_landed(self, lanes: NumpyLanes, copy: Copy) -> None:
        """Who waited for copies of threads has read their sources now."""
        site = self.launch.memory.first_agent, copy.instruction.index
        views = self.words.agents.views
        for read in self._joint.pending_reads.landed(lanes.batch, site, copy):
            agents, inverse = np.unique(read.agents, return_inverse=True)
            epochs = np.array([views[agent].released for agent in agents.tolist()]) + 1
            numbers = self._joint.records.numbers(agents, epochs, site, 0)[inverse.reshape(-1)]
            places = self._places(read.region)
            known = self._joint.known(self.words.agents, agents.tolist())
            self._note_reads(places, places.granules(read.index, read.size), numbers, known)

    def copy_ended(self, batch: Batch, copy: EngineCopy, agent: int) -> None:
        """It is an access of this agent."""
        for side in _shared_sides(copy):
            places = self._places(side.region)
            granules = places.granules(side.index, copy.size)
            numbers = np.broadcast_to(self._number(copy, side.scope, agent), side.rows.shape)
            if side.writes:
                places.writes[granules] = np.broadcast_to(numbers[:, None], granules.shape)
                places.reads[granules] = NOBODY
            else:
                self._note_reads(places, granules, numbers, self._joint.known(self.words.agents, [agent]))

    def _number(self, copy: EngineCopy, scope: int, agent: int) -> Array:
        """The number of the record of a copy that has ended."""
        epoch = self.words.agents.views[agent].released + 1
        site = self.launch.memory.first_agent, copy.instruction.index
        return self._joint.records.numbers(np.array([agent]), np.array([epoch]), site, scope)

    def _check_copy(self, lanes: NumpyLanes, copy: EngineCopy, side: CopySide) -> None:
        places = self._places(side.region)
        granules = places.granules(side.index, copy.size)
        started = StartedCopy(copy, side, first := self.launch.memory.first_agent, starting_waves(first, lanes.batch, copy))
        agents, numbers = started.agents[side.rows], self._flying_numbers(started)[side.rows]
        known = self._joint.known(self.words.agents, np.unique(agents).tolist())
        bad, other = self._unordered_write(places.writes[granules], agents, known, side.scope)
        if side.writes:
            reading = self._unordered_reads(places.reads[granules], agents, known, side.scope)
            bad, other = bad | (reading != NOBODY), np.where(bad, other, reading)
        flying = self._in_flight(side.region, places, granules, agents, side.scope, side.writes)
        bad, other = bad | (flying != NOBODY), np.where(bad, other, flying)
        for number in np.unique(other[bad]).tolist():
            of_pair = bad & (other == number)
            row = int(np.argmax(of_pair.any(axis=1)))
            frame = lanes.batch.frame
            place = np.unravel_index(int(copy.thread[side.rows[row]]), frame.shape)
            self._tell(
                lanes, side.region, "copy by an engine", int(of_pair.any(axis=1).sum()),
                lanes.locate_in(frame, *(int(number) for number in place)),
                int(granules[row][int(np.argmax(of_pair[row]))]) * places.granule, int(numbers[row]), number,
            )

    def _in_flight(
        self, region: Region, places: PlaceAccesses, granules: Array, agents: Array, scope: int, writes: bool
    ) -> Array:
        """By granule of an access of agents, the record of a copy on its way that races with it: it is of another agent. NOBODY
        where there is none."""
        found = np.full(granules.shape, NOBODY, np.int64)
        for started in self._joint.copies.meeting(region, writes):
            theirs = places.granules(started.side.index, started.copy.size)  # cut, where they must be, when it started
            at = where_in(granules, theirs.reshape(-1)) if theirs.size else np.full(granules.shape, -1)
            rows = started.side.rows[at // max(1, theirs.shape[1])]
            author = started.agents[rows]
            bad = (at >= 0) & (author != agents[:, None])
            if bad.any() and scope and started.side.scope:
                mine = np.broadcast_to(agents[:, None], author.shape)
                bad &= min(scope, started.side.scope) < self._meetings(mine, author)
            found = np.where(bad, self._flying_numbers(started)[rows], found)
        return self._pending(region, places, granules, agents, found) if writes else found

    def _pending(self, region: Region, places: PlaceAccesses, granules: Array, agents: Array, found: Array) -> Array:
        """`found`, and where another agent's threads have copies on their way that read what is written."""
        for read in self._joint.pending_reads.of(region):
            theirs = places.granules(read.index, read.size)
            at = where_in(granules, theirs.reshape(-1))
            elements = at // theirs.shape[1]
            author = read.agents[elements]
            bad = (at >= 0) & (author != agents[:, None])
            if bad.any():
                authors, inverse = np.unique(read.agents, return_inverse=True)
                epochs = np.full(len(authors), IN_FLIGHT)
                numbers = self._joint.records.numbers(authors, epochs, read.site, 0, flying=True)[inverse.reshape(-1)]
                found = np.where(bad, numbers[elements], found)
        return found

    def _flying_numbers(self, started: StartedCopy) -> Array:
        """By row of a copy on its way the number of its record."""
        agents, inverse = np.unique(started.agents, return_inverse=True)
        site = started.first_agent, started.copy.instruction.index
        numbers = self._joint.records.numbers(agents, np.full(len(agents), IN_FLIGHT), site, started.side.scope, flying=True)
        return numbers[inverse.reshape(-1)]


def _shared_sides(copy: EngineCopy) -> list[CopySide]:
    """The sides of a copy in memory that all launches share."""
    regions = ((False, copy.source), (True, copy.destination))
    sides = [CopySide(copy, writes) for writes, region in regions if is_shared_by_all(region)]
    return [side for side in sides if len(side.index)]
