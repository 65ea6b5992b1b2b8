"""Waves and engines of launches that run at once in one memory as agents: numbers, where they run, what they know of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.views.adversary import Adversary
from tilefw.sim.memory.views.agents import Agents
from tilefw.sim.memory.views.events import Participant, SyncScope
from tilefw.sim.memory.views.wide_clock import WideClock
from tilefw.sim.memory.views.words import RememberedWords
from tilefw.sim.program import Program
from tilefw.sim.tracking.agent_accesses import AccessRecords, PlaceAccesses
from tilefw.sim.tracking.barrier_copies import completes_on_barriers
from tilefw.sim.tracking.copies_in_flight import CopiesInFlight
from tilefw.sim.tracking.pending_reads import PendingReads

_ALL = np.iinfo(np.int64).max


class AgentMemory(Protocol):
    """What an agent's launch has of the memory that all share (`LaunchMemory`)."""

    first_agent: int
    remembered: RememberedWords | None


class AgentGeometry(Protocol):
    """How many agents a launch has (`Geometry`)."""

    @property
    def workgroups(self) -> int: ...
    @property
    def waves(self) -> int: ...
    def coordinates(self, workgroup: int) -> tuple[int, int, int]: ...


class JointLaunchState(Protocol):
    """A launch as its agents are numbered and named (`LaunchState`)."""

    @property
    def program(self) -> Program: ...
    @property
    def geometry(self) -> AgentGeometry: ...
    @property
    def memory(self) -> AgentMemory: ...


@dataclass(frozen=True, slots=True)
class JointAgent:
    """An agent in its launch: the launch's number, its rank and state, the workgroup and the wave, None for its engines."""

    launch: int
    rank: int
    state: JointLaunchState
    workgroup: int
    wave: int | None


@dataclass(slots=True)
class JointAgents:
    """The launches, whose waves are numbered one launch behind the other, and what their accesses left."""

    launches: list[JointLaunchState] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    records: AccessRecords = field(default_factory=AccessRecords)
    places: list[PlaceAccesses] = field(default_factory=list)
    copies: CopiesInFlight = field(default_factory=CopiesInFlight)
    pending_reads: PendingReads = field(default_factory=PendingReads)
    _devices: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    _groups: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    _known: Array = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    _clocks: list[object] = field(default_factory=list)
    _meets: dict[int, Array] = field(default_factory=dict)

    def begin(self, launches: Sequence[JointLaunchState], ranks: Sequence[int], seed: int) -> None:
        """The launches are about to run; those that remember words or order accesses share what their agents know."""
        self.launches, self.ranks = [*launches], [*ranks]
        places: list[Participant] = []
        for launch, rank in zip(launches, ranks, strict=True):
            launch.memory.first_agent = len(places)
            # Workgroups of several launches on one device are different ones.
            places += places_of(launch, rank, len(places))
        self._devices, self._groups = (np.array(part) for part in zip(*((p.device, p.workgroup) for p in places), strict=True))
        if not any(launch.memory.remembered is not None for launch in launches):
            return
        words = RememberedWords(Agents(places), Adversary(seed))
        for launch in launches:
            if launch.memory.remembered is not None:
                launch.memory.remembered = words

    def known(self, agents: Agents, asked: Sequence[int]) -> Array:
        """By agent, the clock of what it knows, brought up to date for those who are asked; each knows all of itself."""
        if not self._clocks:
            count = len(agents.views)
            self._known, self._clocks = np.zeros((count, count), np.int64), [None] * count
        for agent in asked:
            clock = agents.views[agent].known.clock
            if self._clocks[agent] is not clock:
                self._known[agent], self._clocks[agent] = clock.events if isinstance(clock, WideClock) else clock, clock
                self._known[agent, agent] = _ALL
        return self._known

    def meets(self, agent: int) -> Array:
        """By agent, the least scope that has it and this one."""
        found = self._meets.get(agent)
        if found is None:
            device = np.where(self._devices == self._devices[agent], int(SyncScope.DEVICE), int(SyncScope.SYSTEM))
            same = (self._groups == self._groups[agent]) & (self._devices == self._devices[agent])
            found = self._meets[agent] = np.where(same, int(SyncScope.WORKGROUP), device)
        return found

    def find(self, agent: int) -> JointAgent:
        """Who an agent is."""
        number = max(n for n, launch in enumerate(self.launches) if launch.memory.first_agent <= agent)
        launch = self.launches[number]
        at, geometry = agent - launch.memory.first_agent, launch.geometry
        if at >= geometry.workgroups * geometry.waves:
            return JointAgent(number, self.ranks[number], launch, at - geometry.workgroups * geometry.waves, None)
        return JointAgent(number, self.ranks[number], launch, *divmod(at, geometry.waves))


def places_of(launch: JointLaunchState, device: int, first: int) -> list[Participant]:
    """Where the waves of a launch run, whose workgroups are numbered from `first` on; behind them, where copies complete on
    barriers, the engines of each workgroup."""
    geometry = launch.geometry
    workgroups = [Participant(device, first + group) for group in range(geometry.workgroups)]
    waves = [workgroup for workgroup in workgroups for _ in range(geometry.waves)]
    return waves + workgroups if completes_on_barriers(launch.program) else waves
