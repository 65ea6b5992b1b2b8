"""The view machine: loads, stores, updates, fences and barriers of agents on memory whose stale values are still there.

The rules are those that scoped memory models share: a release carries what its agent knows, an acquire that reads from it (or from
updates of it) learns that, if each one's scope has the other; fences do so for the accesses around them; sc fences that have each
other in scope are in one order. A weak access neither carries nor learns. A read takes any message that no known one is after.
An event may be given its place in program order first and be made later (`issue`): loads in flight, passed by later stores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

from tilefw.sim.memory.views.adversary import Choices
from tilefw.sim.memory.views.events import GENERIC, EventLabel, Order, Participant, SyncScope
from tilefw.sim.memory.views.knowledge import ALIAS, Knowledge, KnownEvent
from tilefw.sim.memory.views.location import CarriedRelease, MadeRead, MemoryLocation, Message

INITIAL = EventLabel(None)


class PassedTooFar(Exception):
    """A read was passed by so much that no message is left which it may take: a course of events that cannot be."""


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

    def copy(self) -> AgentView:
        return AgentView(self.known, {**self.carried}, self.fenced, self.met, {**self.flight})


class ViewMachine:
    """Memory of agents. `aliases`: address to (the location that it names, its generic address)."""

    def __init__(
        self,
        agents: Sequence[Participant],
        choices: Choices,
        aliases: dict[object, tuple[object, object]] | None = None,
        rules: MemoryRules | None = None,
    ):
        self.choices, self.rules = choices, rules or MemoryRules()
        self._aliases = aliases or {}
        groups = {agent: number for number, agent in enumerate(dict.fromkeys(agents))}
        self._groups = [groups[agent] for agent in agents]
        self._meets = [[a.meets(b) if i != j else SyncScope.SELF for j, b in enumerate(agents)] for i, a in enumerate(agents)]
        nothing = Knowledge((0,) * len(agents))
        self.agents = [AgentView(nothing) for _ in agents]
        self.locations: dict[object, MemoryLocation] = {}
        self._total: list[CarriedRelease] = []

    def copy(self) -> ViewMachine:
        """A machine in the same state, independent of this one."""
        other = object.__new__(ViewMachine)
        other.choices, other.rules, other._aliases = self.choices, self.rules, self._aliases
        other._groups, other._meets = self._groups, self._meets
        other.agents = [agent.copy() for agent in self.agents]
        other.locations = {name: location.copy() for name, location in self.locations.items()}
        other._total = [*self._total]
        return other

    # -- accesses

    def initialise(self, address: object, value: int) -> None:
        """The value that a location holds before anybody stores."""
        self.locations[self._name(address)[0]] = MemoryLocation([Message(-1, 0, value, INITIAL, -1)])

    def issue(self, agent: int) -> ReservedEvent:
        """The place of a read that is made later."""
        place = self._reserve(agent)
        self.agents[agent].flight[place.number] = ()
        return place

    def _reserve(self, agent: int) -> ReservedEvent:
        """The next place in the agent's program order."""
        view = self.agents[agent]
        number = view.known.clock[agent] + 1
        place = ReservedEvent(agent, number, view.known)
        view.known = view.known.after(agent, number)
        return place

    def load(
        self, agent: int, address: object, order: Order = "weak", scope: SyncScope = SyncScope.SELF, way: str = GENERIC,
        place: ReservedEvent | None = None,
    ) -> int:
        """Read a value that the agent may still see; `place` where the load was issued, if that was earlier."""
        name, location, label = self._target(address, order, scope, way)
        place = place or self._reserve(agent)
        known = location.known(place.known, label, self._groups[agent])
        options = self._options(location, place, label, known)
        index = options[self.choices.message(agent, name, options)]
        self._read(location, index, known, place, label)
        self._made(location, place, label)
        return location.messages[index].value

    def store(
        self, agent: int, address: object, value: int, order: Order = "weak", scope: SyncScope = SyncScope.SELF, way: str = GENERIC
    ) -> None:
        """Add a message, after all that the agent knows there; where order is free it may be put before newer ones."""
        _, location, label = self._target(address, order, scope, way)
        place = self._reserve(agent)
        known = location.known(place.known, label, self._groups[agent])
        message = Message(agent, place.number, value, label, self._groups[agent], place.known, self._carries(place, label))
        if not self._place(location, message, known):
            raise AssertionError("a store can always be the last")

    def update(
        self, agent: int, address: object, function: Callable[[int], int | None], order: Order = "relaxed",
        scope: SyncScope = SyncScope.SYSTEM, way: str = GENERIC, place: ReservedEvent | None = None,
    ) -> int:
        """Read-modify-write: the old value; nothing is stored where `function` gives None (a failed compare-and-swap)."""
        name, location, label = self._target(address, order, scope, way)
        place = place or self._reserve(agent)
        known = location.known(place.known, label, self._groups[agent])
        options = self._options(location, place, label, known)
        while options:
            chosen = self.choices.message(agent, name, options)
            index = options.pop(chosen)
            source = location.messages[index]
            value = function(source.value)
            if value is None:
                self._read(location, index, known, place, label)
                self._made(location, place, label)
                return source.value
            message = Message(agent, place.number, value, label, self._groups[agent], place.known, (), index)
            if self._place(location, message, known | 1 << index):
                self._read(location, index, known, place, label)
                # What the read learns, the store carries.
                place = replace(place, known=self.agents[agent].known)
                carried = self._carries(place, label)
                if self.rules.release_sequences and self._strong(source, agent, label):
                    carried = tuple(dict.fromkeys((*carried, *source.releases)))
                location.messages[-1] = replace(message, known=place.known, releases=carried)
                self._made(location, place, label)
                return source.value
        raise PassedTooFar

    # -- order

    def fence(self, agent: int, order: Order, scope: SyncScope) -> None:
        """A fence: learns of releases that earlier reads met, later stores carry what is known here."""
        label = EventLabel(None, order, scope)
        place = self._reserve(agent)
        view = self.agents[agent]
        for number in view.flight:
            view.flight[number] = (*view.flight[number], label)
        if label.acquires and self.rules.fences_learn:
            self._learn(agent, label, [release for release, _ in view.met])
        if order == "sc" and self.rules.total_fences:
            for earlier in self._total:
                if self._synchronises(earlier, agent, label):
                    view.known = view.known.joined(earlier.known)
            self._total.append(CarriedRelease(agent, label, view.known.after(agent, place.number)))
        if label.releases and self.rules.release:
            release = CarriedRelease(agent, label, view.known)
            view.fenced = (*(old for old in view.fenced if old.label.scope > scope), release)

    def fence_way(self, agent: int, way: str) -> None:
        """A fence between the generic way to memory and another, of the agent's workgroup."""
        view = self.agents[agent]
        self._reserve(agent)
        view.known = view.known.passed((way, self._groups[agent]))

    def fence_names(self, agent: int) -> None:
        """A fence between addresses that name one location."""
        view = self.agents[agent]
        self._reserve(agent)
        view.known = view.known.passed(ALIAS)

    def barrier(self, arrived: Sequence[Knowledge], leaving: Sequence[int]) -> None:
        """Agents leave a barrier of their workgroup: they know all that those who arrived knew."""
        for agent in leaving:
            view = self.agents[agent]
            for known in arrived:
                view.known = view.known.joined(known)

    def arrive(self, agent: int) -> Knowledge:
        """What an agent brings to a barrier."""
        self._reserve(agent)
        return self.agents[agent].known

    def finals(self, address: object) -> list[int]:
        """The values that memory may hold when all is done: of the messages that none is after."""
        location = self.locations[self._name(address)[0]]
        return sorted({location.messages[index].value for index in location.last()})

    def key(self) -> Hashable:
        """Equal for equal states, however they were reached."""
        return (
            tuple((a.known.key(), _carried(a.fenced), tuple((k, _carried(v)) for k, v in sorted(a.carried.items(), key=str)),
                   frozenset((k, _carried((r,))) for r, k in a.met), tuple(sorted(a.flight.items()))) for a in self.agents),
            tuple(_location_key(location, any(a.flight for a in self.agents)) for location in self.locations.values()),
            frozenset(_carried(self._total)),
        )

    # -- parts

    def _name(self, address: object) -> tuple[object, object]:
        return self._aliases.get(address, (address, address))

    def _target(self, address: object, order: Order, scope: SyncScope, way: str) -> tuple[object, MemoryLocation, EventLabel]:
        name, generic = self._name(address)
        return name, self.locations[name], EventLabel(generic, order, scope, way if self.rules.ways else GENERIC)

    def _options(self, location: MemoryLocation, place: ReservedEvent, label: EventLabel, known: int) -> list[int]:
        """Readable messages; of a read that others have passed, those with which all that was done since still is right."""
        options = location.readable(known)
        fences = self.agents[place.agent].flight.get(place.number)
        if fences is None:
            return options
        event = (place.agent, place.number, label, self._groups[place.agent])
        options = [index for index in options if self._late(location, index, event, fences)]
        if not options:
            raise PassedTooFar
        return options

    def _late(self, location: MemoryLocation, index: int, event: KnownEvent, fences: Sequence[EventLabel]) -> bool:
        """Whether a read that others have passed may take a message: nobody who knew of the read stored it, or read or stored there
        as if it had taken an older one, and no fence since would have learnt of it."""
        agent, _, label, _ = event
        message = location.messages[index]
        if message.known is not None and message.known.reaches(event, message.label, message.group):
            return False
        if not self._strong(message, agent, label):
            return True
        if any(fence.acquires and self._synchronises(r, agent, fence) for fence in fences for r in message.releases):
            return False
        return all(
            location.before[other] >> index & 1
            for other, stored in enumerate(location.messages)
            if stored.known is not None and stored.known.reaches(event, stored.label, stored.group)
        ) and not any(
            location.before[index] >> read.message & 1
            for read in location.reads
            if read.knowledge.reaches(event, read.label, read.group)
        )

    def _made(self, location: MemoryLocation, place: ReservedEvent, label: EventLabel) -> None:
        """A read is made: if others have passed it, those who knew of it know what it took and stored."""
        if self.agents[place.agent].flight.pop(place.number, None) is None:
            return
        event = (place.agent, place.number, label, self._groups[place.agent])
        for number, read in enumerate(location.reads):
            if read.knowledge.reaches(event, read.label, read.group):
                location.reads[number] = replace(read, known=location.known(read.knowledge, read.label, read.group))

    def _strong(self, message: Message, agent: int, label: EventLabel) -> bool:
        """Whether a message and an access are strong to each other: one address, one way, each in the other's scope."""
        mine = message.label
        if mine.address != label.address or mine.way != label.way:
            return False
        return message.agent == agent or (
            message.agent >= 0 and mine.strong and label.strong and self._within(message.agent, mine, agent, label)
        )

    def _within(self, one: int, label: EventLabel, other: int, other_label: EventLabel) -> bool:
        return not self.rules.scopes or min(label.scope, other_label.scope) >= self._meets[one][other]

    def _read(self, location: MemoryLocation, index: int, known: int, place: ReservedEvent, label: EventLabel) -> None:
        agent, message = place.agent, location.messages[index]
        location.reads.append(MadeRead(index, known, agent, place.number, place.known, label, self._groups[agent]))
        strong = self._strong(message, agent, label)
        if not strong and self.rules.weak_reads_learn_nothing:
            return
        if index:
            event = (agent, place.number, label, self._groups[agent])
            location.observers[index] = (*location.observers[index], event)
        if not label.strong:
            return
        view = self.agents[agent]
        view.met = tuple(dict.fromkeys((*view.met, *((release, label.address) for release in message.releases))))
        if label.acquires and self.rules.acquire:
            self._learn(agent, label, [release for release, address in view.met if address == label.address])

    def _learn(self, agent: int, label: EventLabel, releases: Sequence[CarriedRelease]) -> None:
        view = self.agents[agent]
        for release in releases:
            if self._synchronises(release, agent, label):
                view.known = view.known.joined(release.known)
        view.met = tuple((r, a) for r, a in view.met if r.known.joined(view.known) != view.known)

    def _synchronises(self, release: CarriedRelease, agent: int, label: EventLabel) -> bool:
        both = release.label.address is not None and label.address is not None
        if both and (release.label.address != label.address or release.label.way != label.way):
            return False
        return release.agent == agent or self._within(release.agent, release.label, agent, label)

    def _carries(self, place: ReservedEvent, label: EventLabel) -> tuple[CarriedRelease, ...]:
        """What a store carries: its own release, those of the agent's earlier stores to the address, those of fences."""
        view, agent = self.agents[place.agent], place.agent
        if not label.strong:
            return ()
        carried = view.carried.get(label.address, ())
        if label.releases and self.rules.release:
            release = CarriedRelease(agent, label, place.known.after(agent, place.number))
            carried = (*(old for old in carried if old.label.scope > label.scope), release)
            if self.rules.release_sequences:
                view.carried[label.address] = carried
        return (*carried, *view.fenced)

    def _place(self, location: MemoryLocation, message: Message, known: int) -> bool:
        related = 0
        for index, other in enumerate(location.messages):
            if self._strong(other, message.agent, message.label):
                related |= 1 << index
        forced = self._knowing(location, message)
        free = [index for index in range(len(location.messages)) if related >> index & 1 and not (known | forced) >> index & 1]
        for subset in self.choices.placements(len(free)):
            after = forced | sum(1 << index for place, index in enumerate(free) if subset >> place & 1)
            if location.insert(message, known | related & ~after, after, related):
                return True
        return False


    def _knowing(self, location: MemoryLocation, message: Message) -> int:
        """Of an update that others have passed: the messages whose authors knew of it."""
        if message.number not in self.agents[message.agent].flight:
            return 0
        event = (message.agent, message.number, message.label, message.group)
        return sum(
            1 << index for index, other in enumerate(location.messages)
            if other.known is not None and other.known.reaches(event, other.label, other.group)
        )


def _carried(releases: Sequence[CarriedRelease]) -> tuple[Hashable, ...]:
    return tuple((r.agent, r.label, r.known.key()) for r in releases)


def _location_key(location: MemoryLocation, flight: bool) -> Hashable:
    """Messages by author and number, not by the order in which they came; with reads in flight, who may know of them."""
    names = [(m.agent, m.number) for m in location.messages]

    def named(mask: int) -> frozenset[tuple[int, int]]:
        return frozenset(name for index, name in enumerate(names) if mask >> index & 1)

    return (
        frozenset(
            (names[i], m.value, named(location.before[i]), frozenset(location.observers[i]), m.known and m.known.key(),
             frozenset(_carried(m.releases)), m.source >= 0 and names[m.source])
            for i, m in enumerate(location.messages)
        ),
        frozenset((names[r.message], named(r.known), r.agent, r.number, flight and r.knowledge.key()) for r in location.reads),
    )


__all__ = ["AgentView", "MemoryRules", "ReservedEvent", "ViewMachine"]
