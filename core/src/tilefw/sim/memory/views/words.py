"""Words of a simulator's memory that remember what they held: which of those values an agent may still read.

The simulator's own memory holds the newest value of each word, which updates work on; older ones are here, in the order of storing.
A word is four bytes: a narrower store is one of its word with the bytes beside it as they were. A read of several words takes all
as of one moment, or as much later as the agent's view demands.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from tilefw.sim.memory.views.adversary import Adversary
from tilefw.sim.memory.views.agents import Agents
from tilefw.sim.memory.views.events import EventLabel
from tilefw.sim.memory.views.knowledge import Knowledge
from tilefw.sim.memory.views.location import CarriedRelease, Message

WORD = 4
KEPT = 32
"""Values that a word remembers: where more were stored, the older ones are not shown any more."""


@dataclass(slots=True)
class RememberedValue:
    """A value that a word held from `moment` on. `observers`: of each agent that read it strongly, its event's number then."""

    moment: int
    message: Message
    observers: dict[int, int] = field(default_factory=dict)

    def known(self, knowledge: Knowledge) -> bool:
        """Whether it, or a read of it, is before the next event of an agent that knows this."""
        m, clock = self.message, knowledge.clock
        return m.agent < 0 or clock[m.agent] >= m.number or any(clock[a] >= n for a, n in self.observers.items())


class RememberedWords:
    """The words of one memory and its agents."""

    def __init__(self, agents: Agents, adversary: Adversary):
        self.agents, self._adversary = agents, adversary
        self._words: dict[int, list[RememberedValue]] = {}
        self._meetings: dict[Hashable, Message] = {}
        self._moment = 0
        self.stale = 0
        """Reads that were given an older value than the newest."""

    def unknown(self, words: Iterable[int]) -> list[int]:
        """Those of the words that nobody has stored to yet."""
        return [word for word in words if word not in self._words]

    def first(self, word: int, value: int) -> None:
        """A word that is `unknown` is about to be stored to: what it held until now."""
        self._words[word] = [RememberedValue(0, Message(-1, 0, value, EventLabel(None), -1))]

    def store(self, agent: int, words: Sequence[tuple[int, int]], label: EventLabel, updates: bool) -> None:
        """An access of an agent stored these values (word, value). Where it `updates`, it read the newest values before."""
        self._moment += 1
        agents = self.agents
        place = agents.reserve(agent)
        for word, value in words:
            held, own = self._words[word], self._labelled(label, word)
            newest = held[-1]
            continued = ()
            if updates and agents.strong(newest.message, agent, own):
                agents.meet(agent, own, newest.message.releases)
                newest.observers[agent] = place.number
                continued = newest.message.releases
            carried = _latest((*agents.carries(agents.at(place), own), *continued))
            message = Message(agent, place.number, value, own, agents.groups[agent], None, carried)
            held.append(RememberedValue(self._moment, message))
            del held[:-KEPT]

    def forget(self, words: Iterable[int]) -> None:
        """Something that is no agent has stored to words: all see what memory holds there now."""
        for word in words:
            self._words.pop(word, None)

    def synchronise(self, agent: int, place: Hashable, label: EventLabel, reads: bool, writes: bool) -> None:
        """A strong access of a place that shows no stale values, as shared memory and barriers are, reads or writes (or both):
        what releases there carry, acquires learn."""
        agents, own = self.agents, EventLabel(place, label.order, label.scope)
        event, last, continued = agents.reserve(agent), self._meetings.get(place), ()
        if reads and last is not None and agents.strong(last, agent, own):
            agents.meet(agent, own, last.releases)
            continued = last.releases
        if writes:
            carried = _latest((*agents.carries(agents.at(event), own), *continued))
            self._meetings[place] = Message(agent, event.number, 0, own, agents.groups[agent], None, carried)

    def load(self, agent: int, words: Sequence[int], label: EventLabel) -> dict[int, int]:
        """What an access of an agent reads of words: those of which it does not see the newest value, with what it sees."""
        held = {word: self._words[word] for word in words if word in self._words}
        if not held:
            return {}
        view = self.agents.views[agent]
        allowed = {word: _oldest(values, view.known) for word, values in held.items()}
        moments = sorted({v.moment for word, values in held.items() for v in values[allowed[word] :]})
        horizon = moments[self._adversary.message(agent, min(held), moments)] if len(moments) > 1 else moments[0]
        place = self.agents.reserve(agent) if label.strong else None
        found: dict[int, int] = {}
        for word, values in held.items():
            index = allowed[word]
            while index + 1 < len(values) and values[index + 1].moment <= horizon:
                index += 1
            taken = values[index]
            if index + 1 < len(values):
                self.stale += 1
                found[word] = taken.message.value
            if place is not None and self.agents.strong(taken.message, agent, own := self._labelled(label, word)):
                taken.observers[agent] = place.number
                self.agents.meet(agent, own, taken.message.releases)
        return found

    def _labelled(self, label: EventLabel, word: int) -> EventLabel:
        return EventLabel(word, label.order, label.scope) if label.strong else label


def _oldest(values: Sequence[RememberedValue], knowledge: Knowledge) -> int:
    """The index of the newest value that is known: older ones cannot be read any more."""
    for index in range(len(values) - 1, -1, -1):
        if values[index].known(knowledge):
            return index
    return 0


def _latest(releases: Iterable[CarriedRelease]) -> tuple[CarriedRelease, ...]:
    """Of each agent's releases that are made alike the last one: it knew all that those before it knew."""
    kept: dict[tuple[int, EventLabel], CarriedRelease] = {}
    for one in releases:
        old = kept.setdefault((one.agent, one.label), one)
        if one.known.clock[one.agent] > old.known.clock[one.agent]:
            kept[one.agent, one.label] = one
    return tuple(kept.values())
