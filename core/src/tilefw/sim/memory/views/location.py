"""One location: its messages in a partial coherence order, the reads that were made, and where a new message may stand.

Coherence orders what one agent knew when it stored, and accesses that are strong to each other; others stay unordered, so that
agents may see them in different orders. Sets of messages are masks of bits by index. Message 0 is the initial value, before all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilefw.sim.memory.views.events import EventLabel
from tilefw.sim.memory.views.knowledge import Knowledge, KnownEvent


@dataclass(frozen=True, slots=True)
class CarriedRelease:
    """What a message carries of a release: whose, with which label (a fence's has no address), and what the releaser knew."""

    agent: int
    label: EventLabel
    known: Knowledge


@dataclass(frozen=True, slots=True)
class Message:
    """A stored value: the author and the number of its event (agent -1: the initial value), its label, what its author knew."""

    agent: int
    number: int
    value: int
    label: EventLabel
    group: int
    known: Knowledge | None = None
    releases: tuple[CarriedRelease, ...] = ()
    source: int = -1
    """Of a read-modify-write, the message that it read."""


@dataclass(frozen=True, slots=True)
class MadeRead:
    """A read: the message that it took, those that it knew, whose event it is, what its agent knew there, and how it read."""

    message: int
    known: int
    agent: int
    number: int
    knowledge: Knowledge
    label: EventLabel
    group: int


def bits(mask: int) -> Iterator[int]:
    """Indices of a mask."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(slots=True)
class MemoryLocation:
    """The messages, `before[i]` those before message i, who observed each, and the reads."""

    messages: list[Message]
    before: list[int] = field(default_factory=lambda: [0])
    observers: list[tuple[KnownEvent, ...]] = field(default_factory=lambda: [()])
    reads: list[MadeRead] = field(default_factory=list)

    def copy(self) -> MemoryLocation:
        """Independent of this one; messages do not change."""
        return MemoryLocation([*self.messages], [*self.before], [*self.observers], [*self.reads])

    def known(self, knowledge: Knowledge, label: EventLabel, group: int) -> int:
        """Messages that are before an access of this label: stored, or observed, by an event that is known on its way to memory."""
        mask = 1
        for index in range(1, len(self.messages)):
            m = self.messages[index]
            if knowledge.reaches((m.agent, m.number, m.label, m.group), label, group) or any(
                knowledge.reaches(observer, label, group) for observer in self.observers[index]
            ):
                mask |= 1 << index
        return mask

    def readable(self, known: int) -> list[int]:
        """Messages that no known one is after: fresh ones and stale ones that a read may still return."""
        hidden = 0
        for index in bits(known):
            hidden |= self.before[index]
        return [index for index in range(len(self.messages)) if not hidden >> index & 1]

    def last(self) -> list[int]:
        """Messages that none is after: what memory may hold in the end."""
        return self.readable((1 << len(self.messages)) - 1)

    def insert(self, message: Message, earlier: int, after: int, related: int) -> bool:
        """Put a message after those of `earlier` and before those of `after`, if no read or update that was made forbids it.

        `related`: the messages whose accesses and this one's are strong to each other.
        """
        for index in bits(earlier):
            earlier |= self.before[index]
        for index, before in enumerate(self.before):
            if before & after:
                after |= 1 << index
        if earlier & after or self._contradicted(earlier, after):
            return False
        order = [before | (earlier | 1 << len(self.messages) if after >> i & 1 else 0) for i, before in enumerate(self.before)]
        order.append(earlier)
        if not self._atomic(message, order, related):
            return False
        self.messages.append(message)
        self.before = order
        self.observers.append(())
        return True

    def was_read_before(self, index: int, knowledge: Knowledge) -> bool:
        """Whether a read of a message is known, which would then be before it."""
        stored = self.messages[index]
        return any(
            read.message == index
            and knowledge.reaches((read.agent, read.number, read.label, read.group), stored.label, stored.group)
            for read in self.reads
        )

    def may_follow(self, index: int, earlier: int) -> bool:
        """Whether a message may be told to be after those of `earlier`, which nobody knew until now."""
        for other in bits(earlier):
            earlier |= self.before[other]
        after = 1 << index
        for other, before in enumerate(self.before):
            if before >> index & 1:
                after |= 1 << other
        return not earlier & after and not self._contradicted(earlier, after)

    def follow(self, index: int, earlier: int) -> None:
        """Tell that a message is after those of `earlier`, and whatever is after it as well."""
        for other in bits(earlier):
            earlier |= self.before[other]
        self.before = [b | earlier if i == index or b >> index & 1 else b for i, b in enumerate(self.before)]

    def _contradicted(self, earlier: int, after: int) -> bool:
        """Whether a read that was made knew a message of `after` and took one of `earlier` that was not before it until now."""
        if not after:
            return False
        return any(
            earlier >> read.message & 1 and any(not self.before[index] >> read.message & 1 for index in bits(read.known & after))
            for read in self.reads
        )

    def _atomic(self, message: Message, order: list[int], related: int) -> bool:
        """Whether nothing that is strong to an update stands between what it read and what it stored."""
        new = len(self.messages)
        if message.source >= 0 and any(order[index] >> message.source & 1 for index in bits(related & order[new])):
            return False
        for index in bits(related):
            source = self.messages[index].source
            if source >= 0 and order[index] >> new & 1 and order[new] >> source & 1:
                return False
        return True
