"""Results that arrive later: the unfinished events of a wave, and whoever touches a register that one of them will write.

An event of an ordered kind (queue and order) is known to be finished by a wait that leaves `n` events when at least `n` later
ones of its kind were issued, one of no order only when `n` is 0 (see `program.Wait`). So a past needs of an ordered kind the newest
events, as many as the program's waits leave at most, and of all older ones and those of no order only which they are: any
wait that reaches them finishes them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tilefw.sim.program import Instruction, Issue
from tilefw.sim.steps.operand_registers import reads, writes
from tilefw.sim.tracking.history import Found

CODE = "TFW0820"
Kind = tuple[str, str]


class Event(NamedTuple):
    """What instruction number `instruction` begins with its issue number `issue`."""

    instruction: int
    issue: int


class Unfinished(NamedTuple):
    """Events of one kind: the newest in order of issue (None for one that writes no register), and all older ones."""

    kind: Kind
    older: frozenset[Event]
    newest: tuple[Event | None, ...]


Past = tuple[Unfinished, ...]


def most_left(instructions: Iterable[Instruction]) -> dict[str, int]:
    """By queue, the most events that a wait of the program leaves unfinished."""
    most: dict[str, int] = {}
    for instruction in instructions:
        for queue, count in () if instruction.waits is None else instruction.waits.limits:
            most[queue] = max(most.get(queue, 0), count)
    return most


@dataclass(slots=True)
class _Open:
    """The events of one kind while a block is gone through."""

    older: set[Event] = field(default_factory=set)
    newest: list[Event | None] = field(default_factory=list)

    def begin(self, event: Event | None, kept: int) -> None:
        self.newest.append(event)
        while len(self.newest) > kept:
            oldest = self.newest.pop(0)
            if oldest is not None:
                self.older.add(oldest)

    def leave(self, count: int, ordered: bool) -> None:
        """A wait leaves at most `count` events of the queue."""
        if ordered or count == 0:
            self.older.clear()
            self.newest = self.newest[-count:] if count else []

    def events(self) -> Iterable[tuple[Event, int]]:
        """Each event and how many later ones of its kind are known: a wait that leaves no more than these finishes it."""
        for place, event in enumerate(reversed(self.newest)):
            if event is not None:
                yield event, place
        for event in self.older:
            yield event, len(self.newest)


class Queues:
    """The tracker of unfinished events."""

    start: Past = ()

    def __init__(self, instructions: Sequence[Instruction], register_names: Sequence[str]) -> None:
        self._instructions = instructions
        self._names = register_names
        self._most = most_left(instructions)

    def through(self, instructions: Sequence[Instruction], past: Past) -> tuple[Past, list[Found]]:
        work = {u.kind: _Open(set(u.older), list(u.newest)) for u in past}
        pending = self._pending(work)
        faults: list[Found] = []
        for instruction in instructions:
            if instruction.waits is not None:
                self._wait(work, dict(instruction.waits.limits))
                pending = self._pending(work)
            if pending and not pending.keys().isdisjoint((*reads(instruction), *writes(instruction), *instruction.needs)):
                faults += self._faults(instruction, work, pending)
            for number, issue in enumerate(instruction.issues):
                idle = not issue.pending or (issue.behind and pending.keys().isdisjoint(issue.behind))
                self._begin(work, None if idle else Event(instruction.index, number), issue)
                for register in () if idle else issue.pending:
                    pending.setdefault(register, []).append((issue.queue, issue.order))
        return self._closed(work), faults

    def _issue(self, event: Event) -> Issue:
        return self._instructions[event.instruction].issues[event.issue]

    def _pending(self, work: dict[Kind, _Open]) -> dict[int, list[Kind]]:
        """Registers that unfinished events will write, and the kinds of these events."""
        pending: dict[int, list[Kind]] = {}
        for kind, unfinished in work.items():
            for event, _ in unfinished.events():
                for register in self._issue(event).pending:
                    pending.setdefault(register, []).append(kind)
        return pending

    def _wait(self, work: dict[Kind, _Open], limits: dict[str, int]) -> None:
        for (queue, order), unfinished in work.items():
            if queue in limits:
                unfinished.leave(limits[queue], bool(order))

    def _begin(self, work: dict[Kind, _Open], event: Event | None, issue: Issue) -> None:
        # Of no order, only which events there are matters.
        kept = self._most.get(issue.queue, 0) if issue.order else 0
        work.setdefault((issue.queue, issue.order), _Open()).begin(event, kept)

    def _closed(self, work: dict[Kind, _Open]) -> Past:
        """The past as one value for all ways that lead to it: events that write nothing count only behind others."""
        closed = []
        for kind, unfinished in sorted(work.items()):
            newest = unfinished.newest
            first = next((place for place, event in enumerate(newest) if event is not None), len(newest))
            if unfinished.older or newest[first:]:
                closed.append(Unfinished(kind, frozenset(unfinished.older), tuple(newest[first:])))
        return tuple(closed)

    # --- faults ----------------------------------------------------------------------------------------------------------

    def _faults(self, instruction: Instruction, work: dict[Kind, _Open], pending: dict[int, list[Kind]]) -> list[Found]:
        """The first register that the instruction touches too early: it reads it, or writes it out of order."""
        merged = sum(len(issue.merged) for issue in instruction.issues)
        read = reads(instruction)
        plain = set(read[: len(read) - merged])
        touched = [(register, "read") for register in read] + [(register, "written") for register in writes(instruction)]
        for register, verb in touched:
            allowed = () if register in plain else _own_kinds(instruction, register)
            for kind in pending.get(register, ()):
                if kind not in allowed:
                    return [self._found(instruction, register, verb, kind, work[kind])]
        needed = ((effect, kind) for effect in instruction.needs for kind in pending.get(effect, ()))
        return [self._found(instruction, effect, "needed", kind, work[kind]) for effect, kind in needed][:1]

    def _found(self, instruction: Instruction, register: int, verb: str, kind: Kind, unfinished: _Open) -> Found:
        event, later = next((e, n) for e, n in unfinished.events() if register in self._issue(e).pending)
        name = self._names[register] if register < len(self._names) else f"register {register}"
        other = self._instructions[event.instruction]
        left = "no event" if later == 0 else f"at most {later} event" + "s" * (later > 1)
        still = "it" if verb == "needed" else "a result for it"
        return Found(
            "pending", CODE, f"{name} is {verb} while {still} is still to come", instruction, other,
            f"a wait that leaves {left} in the queue {kind[0]} must stand between",
        )


def _own_kinds(instruction: Instruction, register: int) -> tuple[Kind, ...]:
    """Kinds of the instruction's events that write the register: earlier events of the same kind finish before these."""
    return tuple((i.queue, i.order) for i in instruction.issues if i.order and register in i.pending)
