"""What the agents of a launch, or of launches at once, know of each other: fences, barriers, strong accesses of shared memory.

An agent is a wave, or the engines of a workgroup; its knowledge is the view machine's (sim/memory/views). Checks that need it are
made of this one: weak memory, and races between ranks. Of several in one launch only one leads, so that each event counts once.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.joint_agents import places_of
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Piece
from tilefw.sim.memory.engine_copies import EngineCopy
from tilefw.sim.memory.regions import Region
from tilefw.sim.memory.views.adversary import Adversary
from tilefw.sim.memory.views.agents import Agents
from tilefw.sim.memory.views.events import EventLabel, Order, SyncScope
from tilefw.sim.memory.views.words import RememberedWords
from tilefw.sim.tracking.copies_in_flight import starting_waves

_SCOPES = {
    "wave": SyncScope.SELF, "workgroup": SyncScope.WORKGROUP, "cluster": SyncScope.DEVICE, "device": SyncScope.DEVICE,
    "system": SyncScope.SYSTEM,
}
_SEQUENTIAL = {"seq_cst": "sc"}
_BARRIER = "cluster"  # the widest scope of barriers in shared memory; who passes one does not say its own


def label(order: str, scope: str) -> EventLabel:
    """The label of an access or a fence as instructions name them. A cluster's scope is taken as the device's."""
    return EventLabel(None, cast(Order, _SEQUENTIAL.get(order, order)), _SCOPES[scope] if order != "weak" else SyncScope.SELF)


def is_shared_by_all(region: Region) -> bool:
    """Whether all workgroups share it and it can be written."""
    return bool(region.base) and not region.readonly


class AgentOrder(Check):
    """A part of the checks that need what agents know."""

    leads = True

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        self._waves = launch.geometry.waves
        if launch.memory.remembered is None:
            launch.memory.remembered = RememberedWords(
                Agents(places_of(launch, 0, 0)), Adversary(launch.options.seed)
            )

    @property
    def words(self) -> RememberedWords:
        """Those of the launch, or of all that run at once."""
        words = self.launch.memory.remembered
        assert words is not None
        return words

    def fence(self, lanes: NumpyLanes, order: str, scope: str) -> None:
        if not self.leads:
            return
        acting = np.broadcast_to(np.True_ if lanes.mask is None else lanes.mask, lanes.frame.shape)
        fence = label(order, scope)
        for agent in np.unique(self._numbers(lanes)[acting]).tolist():
            self.words.agents.fence(agent, fence.order, fence.scope)

    def barrier(self, batch: Batch, slot: int, waves: Array) -> None:
        if not self.leads:
            return
        first = self._first(batch, slot)
        self._meet([first + int(wave) for wave in waves])

    def barrier_all(self, batch: Batch) -> None:
        if not self.leads:
            return
        for slot in range(len(batch.workgroups)):
            first = self._first(batch, slot)
            self._meet([first + wave for wave in range(self._waves)])

    def barrier_passed(self, lanes: NumpyLanes, piece: Piece) -> None:
        if not self.leads:
            return
        self._meet_at(lanes, piece, label("acquire", _BARRIER), reads=True, writes=False)

    def cluster_met(self, lanes: NumpyLanes, threads: Array, order: str, passed: bool) -> None:
        if not self.leads:
            return
        batch, members = lanes.batch, self.launch.geometry.cluster_workgroups
        for number in np.unique(threads // batch.frame.shape[2]).tolist():
            slot, wave = divmod(number, self._waves)
            agent, first = (self._first(batch, place) for place in (slot, slot // members * members))
            self.words.synchronise(agent + wave, ("cluster", first), label(order, "cluster"), reads=True, writes=not passed)

    def engine_started(self, lanes: NumpyLanes, copy: EngineCopy) -> None:
        """A copy that completes on barriers keeps for those who wait for them what its wave knows now."""
        if not self.leads or copy.barriers is None:
            return
        waves = starting_waves(self.launch.memory.first_agent, lanes.batch, copy).tolist()
        known = {agent: self.words.agents.arrive(agent) for agent in dict.fromkeys(waves)}
        copy.known = np.empty(len(waves), dtype=np.object_)
        copy.known[:] = [known[agent] for agent in waves]

    def engine_landed(self, batch: Batch, copy: EngineCopy) -> None:
        """A copy has ended: of its wave, or behind its start an event of its workgroup's engines, which the barrier tells."""
        waves = starting_waves(self.launch.memory.first_agent, batch, copy)
        for wave in np.unique(waves).tolist():
            part = copy.part(waves == wave)
            if part.known is None:
                self.copy_ended(batch, part, wave)
                continue
            engines = self._engines(batch, int(part.thread[0]))
            self.words.agents.go_on_from(engines, part.known[0])
            self.copy_ended(batch, part, engines)
            if self.leads:
                self._tell_barriers(batch, part, engines)

    def copy_ended(self, batch: Batch, copy: EngineCopy, agent: int) -> None:
        """A copy of one wave has ended, as an event of an agent."""

    # -- parts

    def _tell_barriers(self, batch: Batch, copy: EngineCopy, engines: int) -> None:
        assert copy.barrier is not None and copy.barriers is not None
        made = label("release", _BARRIER)
        if copy.barriers is not batch.memory.region("shared"):
            return
        for place in np.unique(copy.barrier).tolist():
            slot, offset = divmod(place, copy.barriers.stride)
            self.words.synchronise(engines, (self._first(batch, slot), offset), made, reads=True, writes=True)

    def _engines(self, batch: Batch, thread: int) -> int:
        """The agent that is the engines of a thread's workgroup."""
        _, waves, width = batch.frame.shape
        first = self.launch.memory.first_agent + self.launch.geometry.workgroups * self._waves
        return first + int(batch.workgroups[thread // (waves * width)])

    def _first(self, batch: Batch, slot: int) -> int:
        """The agent that is the first wave of a workgroup."""
        return self.launch.memory.first_agent + int(batch.workgroups[slot]) * self._waves

    def _meet_at(self, lanes: NumpyLanes, piece: Piece, made: EventLabel, reads: bool, writes: bool) -> None:
        """A strong access of shared memory, each workgroup's at its own places."""
        region, batch = piece.region, lanes.batch
        if region is not batch.memory.region("shared"):
            return
        index = piece.offsets(lanes.frame.shape)
        for agent, place in sorted(set(zip(self._agents(lanes, piece).tolist(), index.tolist(), strict=True))):
            slot, offset = divmod(place, region.stride)
            self.words.synchronise(agent, (self._first(batch, slot), offset), made, reads, writes)

    def _meet(self, waves: list[int]) -> None:
        agents = self.words.agents
        agents.barrier([agents.arrive(wave) for wave in waves], waves)

    def _numbers(self, lanes: NumpyLanes) -> Array:
        frame = lanes.frame
        numbers = self.launch.memory.first_agent + lanes.batch.workgroups[frame.group] * self._waves + frame.wave
        return np.broadcast_to(numbers, frame.shape)

    def _agents(self, lanes: NumpyLanes, piece: Piece) -> Array:
        """The wave of each lane of a piece."""
        numbers = self._numbers(lanes)
        return numbers.reshape(-1) if piece.lanes is None else numbers[piece.lanes]
