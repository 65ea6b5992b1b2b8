"""A scoped memory model by its axioms: every candidate execution of a small test is judged, without the view machine.

The axioms are those of the PTX ISA, chapter "Memory Consistency Model" (causality order, coherence, fence-SC, atomicity, no thin
air, causality), for straight-line tests of loads, stores, additions and fences. An execution says which store each read takes, in
which order strong stores and sc fences stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from tilefw.sim.memory.litmus import LitmusTest
from tilefw.sim.memory.litmus.test import LitmusStep, Operand

Edges = set[tuple[int, int]]
_READS = {"acq_rel": "acquire", "acquire": "acquire", "release": "relaxed", "relaxed": "relaxed"}
_WRITES = {"acq_rel": "release", "release": "release", "acquire": "relaxed", "relaxed": "relaxed"}


@dataclass
class Event:
    """A read (R), a store (W) or a fence (F) of a thread (-1: the initial value); a store's value or, of an addition, its read."""

    kind: str
    thread: int
    step: LitmusStep
    order: str
    value: Operand = 0
    source: int = -1


@dataclass
class Events:
    """The events of a test and what does not depend on the execution: program order, dependences, pairs of additions."""

    test: LitmusTest
    events: list[Event] = field(default_factory=list)
    program: Edges = field(default_factory=set)
    needs: Edges = field(default_factory=set)
    updates: Edges = field(default_factory=set)

    def __post_init__(self) -> None:
        for name, value in sorted(self.test.memory.items()):
            self.events.append(Event("W", -1, LitmusStep("store", address=name), "weak", value))
        for thread, steps in enumerate(self.test.threads):
            mine: list[int] = []
            for step in steps:
                mine += self._add(thread, step, mine)
            self.program |= set(combinations(mine, 2))

    def _add(self, thread: int, step: LitmusStep, mine: Sequence[int]) -> list[int]:
        here = len(self.events)
        if step.kind == "update":
            self.events.append(Event("R", thread, step, _READS[step.order]))
            self.events.append(Event("W", thread, step, _WRITES[step.order], step.operands[0], here))
            self.updates.add((here, here + 1))
            self.needs.add((here, here + 1))
            return [here, here + 1]
        kind = {"load": "R", "store": "W", "fence": "F"}[step.kind]
        self.events.append(Event(kind, thread, step, step.order, step.operands[0] if step.operands else 0))
        for register in step.needs:
            self.needs.add((max(i for i in mine if self.events[i].step.register == register), here))
        return [here]

    def of(self, kind: str) -> list[int]:
        return [i for i, event in enumerate(self.events) if event.kind == kind]

    def same(self, i: int, j: int) -> bool:
        return self.events[i].step.address == self.events[j].step.address

    def strong(self, i: int, j: int) -> bool:
        """Whether two events are morally strong."""
        one, other = self.events[i], self.events[j]
        if i == j or ("F" not in one.kind + other.kind and not self.same(i, j)):
            return False
        if (i, j) in self.program or (j, i) in self.program:
            return True
        if -1 in (one.thread, other.thread) or "weak" in (one.order, other.order):
            return False
        meets = self.test.places[one.thread].meets(self.test.places[other.thread])
        return one.thread != other.thread and min(one.step.scope, other.step.scope) >= meets

    def patterns(self, kind: str, order: str) -> Iterator[tuple[int, int]]:
        """Release patterns (kind W) or acquire patterns (kind R): the event that synchronises, and the access that is observed."""
        for i, event in enumerate(self.events):
            if event.kind == kind and event.order == order:
                yield i, i
            if event.kind == "F" or (event.kind == kind and event.order == order):
                for j in self.of(kind):
                    ordered = (i, j) if kind == "W" else (j, i)
                    if ordered in self.program and self.events[j].order != "weak" and (event.kind == "F" or self.same(i, j)):
                        yield i, j


def closure(edges: Iterable[tuple[int, int]]) -> Edges:
    found = set(edges)
    while more := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= more
    return found


def outcomes(test: LitmusTest) -> set[tuple[tuple[str, int], ...]]:
    """The registers of every execution that the axioms allow."""
    found: set[tuple[tuple[str, int], ...]] = set()
    events = Events(test)
    reads, writes = events.of("R"), events.of("W")
    options = [[w for w in writes if events.same(w, r) and (r, w) not in events.program] for r in reads]
    for taken in product(*options):
        source = dict(zip(reads, taken, strict=True))
        if any(a == b for a, b in closure({(w, r) for r, w in source.items()} | events.needs)):
            continue
        registers = tuple(sorted(
            (f"{events.events[r].thread}:{events.events[r].step.register}", _value(events, source, r)) for r in reads
        ))
        if registers not in found and _allowed(events, source):
            found.add(registers)
    return found


def _value(events: Events, source: dict[int, int], i: int) -> int:
    event = events.events[i]
    if event.kind == "R":
        return _value(events, source, source[i])
    if event.source >= 0:
        return _value(events, source, event.source) + int(event.value)
    if isinstance(event.value, str):
        return _value(events, source, next(a for a, b in events.needs if b == i))
    return event.value


def _orders(pairs: Sequence[tuple[int, int]]) -> Iterator[Edges]:
    for swapped in product((False, True), repeat=len(pairs)):
        yield {(b, a) if swap else (a, b) for (a, b), swap in zip(pairs, swapped, strict=True)}


def _allowed(events: Events, source: dict[int, int]) -> bool:
    observed = {(w, r) for r, w in source.items() if events.strong(w, r)} | events.updates
    chains = closure(observed)
    acquires = list(events.patterns("R", "acquire"))
    synchronised = {
        (a, d) for a, b in events.patterns("W", "release") for d, c in acquires if (b, c) in chains and events.strong(a, d)
    }
    fences = [i for i in events.of("F") if events.events[i].order == "sc"]
    total = [(a, b) for a, b in combinations(fences, 2) if events.strong(a, b)]
    for order in _orders([pair for pair in total if pair not in events.program]):
        fixed = {pair for pair in total if pair in events.program}
        base = closure(events.program | synchronised | order | fixed)
        cause = base | {(w, d) for w, r in observed for c, d in base if c == r}
        if any((b, a) in cause for a, b in order | fixed) or any((r, w) in cause for r, w in source.items()):
            continue
        if _coherent(events, source, cause):
            return True
    return False


def _coherent(events: Events, source: dict[int, int], cause: Edges) -> bool:
    """Whether some order of the stores keeps coherence, atomicity and causality."""
    pairs = [(a, b) for a, b in combinations(events.of("W"), 2) if events.same(a, b)]
    known = {p for a, b in pairs for p in ((a, b), (b, a)) if p in cause or events.events[p[0]].thread < 0}
    free = [(a, b) for a, b in pairs if events.strong(a, b) and (a, b) not in known and (b, a) not in known]
    for order in _orders(free):
        after = closure(known | order)
        if any(a == b for a, b in after):
            continue
        stale = any((w, m) in after and (m, r) in cause for r, w in source.items() for m in events.of("W"))
        torn = any(
            (source[r], x) in after and (x, w) in after and events.strong(r, x) and events.strong(x, w)
            for r, w in events.updates for x in events.of("W") if x != w
        )
        if not (stale or torn):
            return True
    return False
