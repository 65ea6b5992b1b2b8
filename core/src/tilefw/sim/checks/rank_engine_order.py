"""What engines copy to and from memory that launches at once share, as the check of races between ranks sees it.

A copy reads and writes as the wave that started it does: what is before the copy must be before its start. Nobody is ordered behind
it while it is on its way, whatever its wave releases meanwhile. When it has ended it is an access of that wave: who waited for it
by its group goes on from there, who waits for the barrier on which it completes learns of it there.

Some races are missed: the barrier tells all that the wave has done when the copy ends, not only what it had done at its start; and
where a wave has several copies of one place on their way, or accesses the place itself meanwhile, the first to end, or that access,
stands for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.agent_order import AgentOrder, is_shared_by_all
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.joint_agents import JointAgents
from tilefw.sim.floats import Array
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region
from tilefw.sim.memory.views.events import SyncScope
from tilefw.sim.tracking.agent_accesses import NOBODY, PlaceAccesses

IN_FLIGHT = 1 << 60  # an epoch that nobody gets to know: that of a copy that has not ended


class RankEngineOrder(AgentOrder):
    """A part of the check of races between ranks."""

    if TYPE_CHECKING:
        _joint: JointAgents

        def _places(self, region: Region) -> PlaceAccesses: ...
        def _unordered_write(self, writes: Array, agents: Array, known: Array, scope: int) -> tuple[Array, Array]: ...
        def _unordered_reads(self, reads: Array, agents: Array, known: Array, scope: int) -> Array: ...
        def _note_reads(self, places: PlaceAccesses, granules: Array, numbers: Array, known: Array) -> None: ...
        def _tell(
            self, lanes: NumpyLanes, region: Region, verb: str, count: int, where: Any, offset: int, mine: int, theirs: int
        ) -> None: ...

    def engine_started(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        for part in _shared_parts(copy):
            self._check_copy(lanes, copy, part)
            self._note_copy(lanes.batch, copy, part, flying=True)

    def engine_landed(self, batch: Batch, copy: EngineCopy) -> None:
        for part in _shared_parts(copy):
            self._note_copy(batch, copy, part, flying=False)
        super().engine_landed(batch, copy)

    def _check_copy(self, lanes: NumpyLanes, copy: EngineCopy, part: _Part) -> None:
        places = self._places(part.region)
        granules = places.granules(part.index, copy.size)
        agents, numbers = self._starters(lanes.batch, copy, part, flying=True)
        known = self._joint.known(self.words.agents, np.unique(agents).tolist())
        bad, other = self._unordered_write(places.writes[granules], agents, known, part.scope)
        if part.writes:
            reading = self._unordered_reads(places.reads[granules], agents, known, part.scope)
            bad, other = bad | (reading != NOBODY), np.where(bad, other, reading)
        for number in np.unique(other[bad]).tolist():
            of_pair = bad & (other == number)
            row = int(np.argmax(of_pair.any(axis=1)))
            frame = lanes.batch.frame
            place = np.unravel_index(int(copy.thread[part.rows[row]]), frame.shape)
            self._tell(
                lanes, part.region, "copy by an engine", int(of_pair.any(axis=1).sum()),
                lanes.locate_in(frame, *(int(number) for number in place)),
                int(granules[row][int(np.argmax(of_pair[row]))]) * places.granule, int(numbers[row]), number,
            )

    def _note_copy(self, batch: Batch, copy: EngineCopy, part: _Part, flying: bool) -> None:
        places = self._places(part.region)
        granules = places.granules(part.index, copy.size)
        agents, numbers = self._starters(batch, copy, part, flying)
        if part.writes:
            places.writes[granules] = np.broadcast_to(numbers[:, None], granules.shape)
            places.reads[granules] = NOBODY
        else:
            self._note_reads(places, granules, numbers, self._joint.known(self.words.agents, np.unique(agents).tolist()))

    def _starters(self, batch: Batch, copy: EngineCopy, part: _Part, flying: bool) -> tuple[Array, Array]:
        """By element the agent that started its copy, and the number of the record."""
        _, waves, width = batch.frame.shape
        slot, wave = copy.thread // (waves * width), copy.thread // width % waves
        agents, inverse = np.unique(
            self.launch.memory.first_agent + batch.workgroups[slot] * self._waves + wave, return_inverse=True
        )
        views = self.words.agents.views
        epochs = np.array([IN_FLIGHT if flying else views[agent].released + 1 for agent in agents.tolist()])
        site = self.launch.memory.first_agent, copy.instruction.index
        numbers = self._joint.records.numbers(agents, epochs, site, part.scope, flying)
        rows = inverse.reshape(-1)[part.rows]
        return agents[rows], numbers[rows]


class _Part:
    """One side of a copy: the elements of a region that it reads or `writes`, at byte offsets `index`, each with its row."""

    def __init__(self, copy: EngineCopy, writes: bool) -> None:
        self.writes, self.region = writes, copy.destination if writes else copy.source
        self.rows, self.index = copy.elements(writes)
        # Each addition of a reduction is relaxed, of the device's scope.
        self.scope = int(SyncScope.DEVICE) if writes and copy.reduction is not None else 0


def _shared_parts(copy: EngineCopy) -> Iterator[_Part]:
    """The sides of a copy that all launches share."""
    for writes, region in ((False, copy.source), (True, copy.destination)):
        if is_shared_by_all(region):
            part = _Part(copy, writes)
            if len(part.index):
                yield part
