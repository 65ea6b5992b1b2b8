"""The view machine: loads, stores and updates of agents on memory whose stale values are still there.

The rules are those that scoped memory models share: a release carries what its agent knows, an acquire that reads from it (or from
updates of it) learns that, if each one's scope has the other; fences do so for the accesses around them; sc fences that have each
other in scope are in one order. A weak access neither carries nor learns. A read takes any message that no known one is after.
An event may be given its place in program order first and be made later (`issue`): loads in flight, passed by later stores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from tilefw.sim.memory.views.adversary import Choices
from tilefw.sim.memory.views.agents import Agents, MemoryRules, ReservedEvent
from tilefw.sim.memory.views.events import GENERIC, EventLabel, Order, Participant, SyncScope
from tilefw.sim.memory.views.knowledge import Knowledge, KnownEvent
from tilefw.sim.memory.views.location import MadeRead, MemoryLocation, Message

INITIAL = EventLabel(None)


class PassedTooFar(Exception):
    """A read was passed by so much that no message is left which it may take: a course of events that cannot be."""


class ViewMachine:
    """Memory of agents. `aliases`: address to (the location that it names, its generic address)."""

    def __init__(
        self,
        agents: Sequence[Participant],
        choices: Choices,
        aliases: dict[object, tuple[object, object]] | None = None,
        rules: MemoryRules | None = None,
    ):
        self.choices = choices
        self._aliases = aliases or {}
        self.agents = Agents(agents, rules)
        self.locations: dict[object, MemoryLocation] = {}

    def copy(self) -> ViewMachine:
        """A machine in the same state, independent of this one."""
        other = object.__new__(ViewMachine)
        other.choices, other._aliases = self.choices, self._aliases
        other.agents = self.agents.copy()
        other.locations = {name: location.copy() for name, location in self.locations.items()}
        return other

    # -- accesses

    def initialise(self, address: object, value: int) -> None:
        """The value that a location holds before anybody stores."""
        self.locations[self._name(address)[0]] = MemoryLocation([Message(-1, 0, value, INITIAL, -1)])

    def load(
        self, agent: int, address: object, order: Order = "weak", scope: SyncScope = SyncScope.SELF, way: str = GENERIC,
        place: ReservedEvent | None = None,
    ) -> int:
        """Read a value that the agent may still see; `place` where the load was issued, if that was earlier."""
        name, location, label = self._target(address, order, scope, way)
        place = place or self.agents.reserve(agent)
        known = location.known(place.known, label, self.agents.groups[agent])
        options = self._options(location, place, label, known)
        index = options[self.choices.message(agent, name, options)]
        event = (agent, place.number, label, self.agents.groups[agent])
        late = label.acquires and place.number in self.agents.views[agent].flight
        learnt = self._learnt(event, location.messages[index]) if late else []
        self._read(location, index, known, place, label)
        if learnt:
            self._passed_by(event, learnt)
        self._made(location, place, label)
        return location.messages[index].value

    def store(
        self, agent: int, address: object, value: int, order: Order = "weak", scope: SyncScope = SyncScope.SELF, way: str = GENERIC
    ) -> None:
        """Add a message, after all that the agent knows there; where order is free it may be put before newer ones."""
        _, location, label = self._target(address, order, scope, way)
        place = self.agents.reserve(agent)
        known = location.known(place.known, label, self.agents.groups[agent])
        carried = self.agents.carries(place, label)
        message = Message(agent, place.number, value, label, self.agents.groups[agent], place.known, carried)
        if not self._place(location, message, known):
            raise AssertionError("a store can always be the last")

    def update(
        self, agent: int, address: object, function: Callable[[int], int | None], order: Order = "relaxed",
        scope: SyncScope = SyncScope.SYSTEM, way: str = GENERIC, place: ReservedEvent | None = None,
    ) -> int:
        """Read-modify-write: the old value; nothing is stored where `function` gives None (a failed compare-and-swap)."""
        name, location, label = self._target(address, order, scope, way)
        place = place or self.agents.reserve(agent)
        known = location.known(place.known, label, self.agents.groups[agent])
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
            message = Message(agent, place.number, value, label, self.agents.groups[agent], place.known, (), index)
            # An update of what nothing orders before it may even be the older of the two, for all that the axioms say.
            after = 1 << index if self.agents.strong(source, agent, label) else 0
            if self._place(location, message, known | after):
                self._read(location, index, known, place, label)
                # What the read learns, the store carries.
                place = replace(place, known=self.agents.views[agent].known)
                carried = self.agents.carries(place, label)
                if self.agents.rules.release_sequences and self.agents.strong(source, agent, label):
                    carried = tuple(dict.fromkeys((*carried, *source.releases)))
                location.messages[-1] = replace(message, known=place.known, releases=carried)
                self._made(location, place, label)
                return source.value
        raise PassedTooFar

    def finals(self, address: object) -> list[int]:
        """The values that memory may hold when all is done: of the messages that none is after."""
        location = self.locations[self._name(address)[0]]
        return sorted({location.messages[index].value for index in location.last()})

    def key(self) -> Hashable:
        """Equal for equal states, however they were reached."""
        flight = any(view.flight for view in self.agents.views)
        return self.agents.key(), tuple(_location_key(location, flight) for location in self.locations.values())

    # -- parts

    def _name(self, address: object) -> tuple[object, object]:
        return self._aliases.get(address, (address, address))

    def _target(self, address: object, order: Order, scope: SyncScope, way: str) -> tuple[object, MemoryLocation, EventLabel]:
        name, generic = self._name(address)
        return name, self.locations[name], EventLabel(generic, order, scope, way if self.agents.rules.ways else GENERIC)

    def _options(self, location: MemoryLocation, place: ReservedEvent, label: EventLabel, known: int) -> list[int]:
        """Readable messages; of a read that others have passed, those with which all that was done since still is right."""
        options = location.readable(known)
        fences = self.agents.views[place.agent].flight.get(place.number)
        if fences is None:
            return options
        event = (place.agent, place.number, label, self.agents.groups[place.agent])
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
        if not self.agents.strong(message, agent, label):
            return True
        if any(fence.acquires and self.agents.synchronises(r, agent, fence) for fence in fences for r in message.releases):
            return False
        if label.acquires and not self._learns_late(event, message):
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

    def _learns_late(self, event: KnownEvent, message: Message) -> bool:
        """Whether an acquire that others have passed may learn from a message now: nobody else knows what passed it, and all that
        passed it would have been the same."""
        agent, number, _, group = event
        learnt = self._learnt(event, message)
        if not learnt:
            return True
        if any(view.known.clock[agent] >= number for other, view in enumerate(self.agents.views) if other != agent):
            return False
        for location in self.locations.values():
            for read in location.reads:
                if read.agent == agent and read.number > number:
                    known = location.known(_joined(read.knowledge, learnt), read.label, group)
                    if read.message not in location.readable(known):
                        return False
            for index, stored in enumerate(location.messages):
                if stored.agent == agent and stored.number > number:
                    knowledge = _joined(stored.known, learnt)
                    known = location.known(knowledge, stored.label, group) & ~(1 << index)
                    if stored.releases or location.was_read_before(index, knowledge) or not location.may_follow(index, known):
                        return False
        return True

    def _learnt(self, event: KnownEvent, message: Message) -> list[Knowledge]:
        agent, _, label, _ = event
        known = self.agents.views[agent].known
        carried = [r.known for r in message.releases if self.agents.synchronises(r, agent, label)]
        return [k for k in carried if k.joined(known) != known]

    def _passed_by(self, event: KnownEvent, learnt: Sequence[Knowledge]) -> None:
        """What passed an acquire knows what that has learnt."""
        agent, number, _, group = event
        for location in self.locations.values():
            for place, read in enumerate(location.reads):
                if read.agent == agent and read.number > number:
                    knowledge = _joined(read.knowledge, learnt)
                    location.reads[place] = replace(read, knowledge=knowledge, known=location.known(knowledge, read.label, group))
            for index, stored in enumerate(location.messages):
                if stored.agent == agent and stored.number > number:
                    location.messages[index] = replace(stored, known=_joined(stored.known, learnt))
                    location.follow(index, location.known(_joined(stored.known, learnt), stored.label, group) & ~(1 << index))

    def _made(self, location: MemoryLocation, place: ReservedEvent, label: EventLabel) -> None:
        """A read is made: if others have passed it, those who knew of it know what it took and stored."""
        if self.agents.views[place.agent].flight.pop(place.number, None) is None:
            return
        event = (place.agent, place.number, label, self.agents.groups[place.agent])
        for number, read in enumerate(location.reads):
            if read.knowledge.reaches(event, read.label, read.group):
                location.reads[number] = replace(read, known=location.known(read.knowledge, read.label, read.group))

    def _read(self, location: MemoryLocation, index: int, known: int, place: ReservedEvent, label: EventLabel) -> None:
        agent, message, agents = place.agent, location.messages[index], self.agents
        location.reads.append(MadeRead(index, known, agent, place.number, place.known, label, agents.groups[agent]))
        if not agents.strong(message, agent, label) and agents.rules.weak_reads_learn_nothing:
            return
        if index:
            event = (agent, place.number, label, agents.groups[agent])
            location.observers[index] = (*location.observers[index], event)
        if label.strong:
            agents.meet(agent, label, message.releases)

    def _place(self, location: MemoryLocation, message: Message, known: int) -> bool:
        related = 0
        for index, other in enumerate(location.messages):
            if self.agents.strong(other, message.agent, message.label):
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
        if message.number not in self.agents.views[message.agent].flight:
            return 0
        event = (message.agent, message.number, message.label, message.group)
        return sum(
            1 << index for index, other in enumerate(location.messages)
            if other.known is not None and other.known.reaches(event, other.label, other.group)
        )


def _joined(known: Knowledge | None, learnt: Sequence[Knowledge]) -> Knowledge:
    assert known is not None
    for more in learnt:
        known = known.joined(more)
    return known


def _location_key(location: MemoryLocation, flight: bool) -> Hashable:
    """Messages by author and number, not by the order in which they came; with reads in flight, who may know of them."""
    names = [(m.agent, m.number) for m in location.messages]

    def named(mask: int) -> frozenset[tuple[int, int]]:
        return frozenset(name for index, name in enumerate(names) if mask >> index & 1)

    return (
        frozenset(
            (names[i], m.value, named(location.before[i]), frozenset(location.observers[i]), m.known and m.known.key(),
             frozenset((r.agent, r.label, r.known.key()) for r in m.releases), m.source >= 0 and names[m.source])
            for i, m in enumerate(location.messages)
        ),
        frozenset((names[r.message], named(r.known), r.agent, r.number, flight and r.knowledge.key()) for r in location.reads),
    )
