"""Agents and what they know: program order, releases and acquires with scopes, fences, barriers. Memory itself is the caller's."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from tilefw.sim.memory.views.events import EventLabel, Order, Participant, SyncScope
from tilefw.sim.memory.views.knowledge import ALIAS, Knowledge, first_clock
from tilefw.sim.memory.views.location import CarriedRelease, Message


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """The rules of the model, each of which a negative control may take away."""

    scopes: bool = True
    acquire: bool = True
    release: bool = True
    fences_learn: bool = True
    total_fences: bool = True
    release_sequences: bool = True
    weak_reads_learn_nothing: bool = True
    ways: bool = True


@dataclass(frozen=True, slots=True)
class ReservedEvent:
    """A place in an agent's program order: the event's number and what was known there."""

    agent: int
    number: int
    known: Knowledge


@dataclass(slots=True)
class AgentView:
    """An agent: what it knows, what its stores carry (by address, and by fences), what its reads met and no acquire took yet."""

    known: Knowledge
    carried: dict[object, tuple[CarriedRelease, ...]] = field(default_factory=dict)
    fenced: tuple[CarriedRelease, ...] = ()
    met: tuple[tuple[CarriedRelease, object], ...] = ()
    flight: dict[int, tuple[EventLabel, ...]] = field(default_factory=dict)
    """Reads that are issued and not made: the number of each, and the fences that passed it."""
    released: int = 0
    """The number of the agent's last event by which others may learn what it did before."""

    def copy(self) -> AgentView:
        return AgentView(self.known, {**self.carried}, self.fenced, self.met, {**self.flight}, self.released)


class Agents:
    """The agents of a memory, by number."""

    def __init__(self, places: Sequence[Participant], rules: MemoryRules | None = None):
        self.rules = rules or MemoryRules()
        groups = {place: number for number, place in enumerate(dict.fromkeys(places))}
        self._places = places
        self.groups = [groups[place] for place in places]
        nothing = Knowledge(first_clock(len(places)))
        self.views = [AgentView(nothing) for _ in places]
        self._total: list[CarriedRelease] = []

    def copy(self) -> Agents:
        """In the same state, independent of these."""
        other = object.__new__(Agents)
        other.rules, other._places, other.groups = self.rules, self._places, self.groups
        other.views = [view.copy() for view in self.views]
        other._total = [*self._total]
        return other

    def issue(self, agent: int) -> ReservedEvent:
        """The place of a read that is made later."""
        place = self.reserve(agent)
        self.views[agent].flight[place.number] = ()
        return place

    def at(self, place: ReservedEvent) -> ReservedEvent:
        """The place with what its agent has learnt there."""
        return ReservedEvent(place.agent, place.number, self.views[place.agent].known)

    def reserve(self, agent: int) -> ReservedEvent:
        """The next place in the agent's program order."""
        view = self.views[agent]
        number = view.known.clock[agent] + 1
        place = ReservedEvent(agent, number, view.known)
        view.known = view.known.after(agent, number)
        return place

    def fence(self, agent: int, order: Order, scope: SyncScope) -> None:
        """A fence: learns of releases that earlier reads met, later stores carry what is known here."""
        label = EventLabel(None, order, scope)
        place = self.reserve(agent)
        view = self.views[agent]
        for number in view.flight:
            view.flight[number] = (*view.flight[number], label)
        if label.acquires and self.rules.fences_learn:
            self._learn(agent, label, [release for release, _ in view.met])
        if order == "sc" and self.rules.total_fences:
            for earlier in self._total:
                if self.synchronises(earlier, agent, label):
                    view.known = view.known.joined(earlier.known)
            others = [fence for fence in self._total if fence.agent != agent or fence.label.scope > scope]
            self._total = [*others, CarriedRelease(agent, label, view.known.after(agent, place.number))]
        if label.releases and self.rules.release:
            release = CarriedRelease(agent, label, view.known)
            view.released = place.number
            view.fenced = (*(old for old in view.fenced if old.label.scope > scope), release)

    def fence_way(self, agent: int, way: str) -> None:
        """A fence between the generic way to memory and another, of the agent's workgroup."""
        view = self.views[agent]
        self.reserve(agent)
        view.known = view.known.passed((way, self.groups[agent]))

    def fence_names(self, agent: int) -> None:
        """A fence between addresses that name one location."""
        view = self.views[agent]
        self.reserve(agent)
        view.known = view.known.passed(ALIAS)

    def barrier(self, arrived: Sequence[Knowledge], leaving: Sequence[int]) -> None:
        """Agents leave a barrier of their workgroup: they know all that those who arrived knew."""
        if not arrived:
            return
        together = arrived[0]
        for known in arrived[1:]:
            together = together.joined(known)
        for agent in leaving:
            view = self.views[agent]
            view.known = view.known.joined(together)

    def arrive(self, agent: int) -> Knowledge:
        """What an agent brings to a barrier."""
        self.views[agent].released = self.reserve(agent).number
        return self.views[agent].known

    def go_on_from(self, agent: int, known: Knowledge) -> None:
        """An agent's next event is behind `known` and its own last one, and behind nothing else: an engine ends another's copy."""
        view = self.views[agent]
        view.known, view.met = known.after(agent, view.known.clock[agent]), ()

    def key(self) -> Hashable:
        """Equal for equal states."""
        views = tuple(
            (v.known.key(), _key(v.fenced), tuple((at, _key(carried)) for at, carried in sorted(v.carried.items(), key=str)),
             frozenset((address, _key((release,))) for release, address in v.met), tuple(sorted(v.flight.items())))
            for v in self.views
        )
        return views, frozenset(_key(self._total))

    def _meets(self, one: int, other: int) -> SyncScope:
        return SyncScope.SELF if one == other else self._places[one].meets(self._places[other])

    def strong(self, message: Message, agent: int, label: EventLabel) -> bool:
        """Whether a message and an access are strong to each other: one address, one way, each in the other's scope."""
        mine = message.label
        if mine.address != label.address or mine.way != label.way:
            return False
        return message.agent == agent or (
            message.agent >= 0 and mine.strong and label.strong and self._within(message.agent, mine, agent, label)
        )

    def _within(self, one: int, label: EventLabel, other: int, other_label: EventLabel) -> bool:
        return not self.rules.scopes or min(label.scope, other_label.scope) >= self._meets(one, other)

    def meet(self, agent: int, label: EventLabel, releases: Sequence[CarriedRelease]) -> None:
        """A strong read met what a message carries: an acquire learns it, others keep it for a fence."""
        view = self.views[agent]
        view.met = tuple(dict.fromkeys((*view.met, *((release, label.address) for release in releases))))
        if label.acquires and self.rules.acquire:
            self._learn(agent, label, [release for release, address in view.met if address == label.address])

    def _learn(self, agent: int, label: EventLabel, releases: Sequence[CarriedRelease]) -> None:
        view = self.views[agent]
        for release in releases:
            if self.synchronises(release, agent, label):
                view.known = view.known.joined(release.known)
        view.met = tuple((r, a) for r, a in view.met if r.known.joined(view.known) != view.known)

    def synchronises(self, release: CarriedRelease, agent: int, label: EventLabel) -> bool:
        both = release.label.address is not None and label.address is not None
        if both and (release.label.address != label.address or release.label.way != label.way):
            return False
        return release.agent == agent or self._within(release.agent, release.label, agent, label)

    def carries(self, place: ReservedEvent, label: EventLabel) -> tuple[CarriedRelease, ...]:
        """What a store carries: its own release, those of the agent's earlier stores to the address, those of fences."""
        view, agent = self.views[place.agent], place.agent
        if not label.strong:
            return ()
        carried = view.carried.get(label.address, ())
        if label.releases and self.rules.release:
            release = CarriedRelease(agent, label, place.known.after(agent, place.number))
            view.released = max(view.released, place.number)
            carried = (*(old for old in carried if old.label.scope > label.scope), release)
            if self.rules.release_sequences:
                view.carried[label.address] = carried
        return (*carried, *view.fenced)


def _key(releases: Sequence[CarriedRelease]) -> tuple[Hashable, ...]:
    return tuple((r.agent, r.label, r.known.key()) for r in releases)
