"""Reservation tables: what of the machine is taken when, and the earliest begin at which a sweep gets all that it needs.

A sweep needs some resources as they are (a slice's queue), and some from pools (any ALU, any aligned group of streams). Spans are
cycles counted from the sweep's begin; those of streams are diagonals counted the same way, since a later begin moves both alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilefw_spatial.schedule.intervals import Intervals, Span, overlap

Resource = str
"""A name: a queue's, a bank's (`MEM.E12/0`), a stream's (`s33`), an accumulator bank's or a weight buffer's."""


Candidate = Sequence[tuple[Resource, Sequence[Span]]]


@dataclass(frozen=True, slots=True)
class Pool:
    """One of `candidates` is needed; each is a set of resources that are taken together, with the spans of each."""

    candidates: Sequence[Candidate]


@dataclass(slots=True)
class Demand:
    """What one sweep takes: `fixed` resources, and one candidate of each of `pools`. It may not begin before `least`."""

    fixed: Mapping[Resource, Sequence[Span]]
    pools: Sequence[Pool]
    least: int = 0


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """When a sweep begins, and which candidate each of its pools got."""

    begin: int
    picks: tuple[int, ...]


class Exhausted(Exception):
    """A sweep that asks a pool for more at one time than it has; `pool` is its number in the demand."""

    def __init__(self, pool: int) -> None:
        super().__init__(pool)
        self.pool = pool


@dataclass(slots=True)
class ScheduleReservations:
    """The table: what is taken of each resource."""

    taken: dict[Resource, Intervals] = field(default_factory=dict)

    def place(self, demand: Demand) -> PlacedItem:
        """Take what a sweep needs at the earliest begin that has it. Raises Exhausted where there is none."""
        placed = self.find(demand, demand.least)
        self.claim(demand, placed)
        return placed

    def find(self, demand: Demand, begin: int) -> PlacedItem:
        """The earliest begin from `begin` on that has what a sweep needs. Raises Exhausted where there is none."""
        while True:
            begin = self._earliest(demand.fixed.items(), begin)
            picks = self._pick(demand.pools, begin)
            if isinstance(picks, tuple):
                return PlacedItem(begin, picks)
            begin = picks

    def claim(self, demand: Demand, placed: PlacedItem) -> None:
        """Take what was found."""
        for resource, spans in _parts(demand, placed):
            taken = self.taken.setdefault(resource, Intervals())
            for low, high in spans:
                taken.add(placed.begin + low, placed.begin + high)

    def release(self, demand: Demand, placed: PlacedItem) -> None:
        """Give back what a sweep took."""
        for resource, spans in _parts(demand, placed):
            for low, high in spans:
                self.taken[resource].remove(placed.begin + low, placed.begin + high)

    def _earliest(self, parts: Iterable[tuple[Resource, Sequence[Span]]], begin: int) -> int:
        wanted = [(self.taken[resource], spans) for resource, spans in parts if resource in self.taken]
        while True:
            before = begin
            for taken, spans in wanted:
                begin = _fit(taken, spans, begin)
            if begin == before:
                return begin

    def _pick(self, pools: Sequence[Pool], begin: int) -> tuple[int, ...] | int:
        """A candidate of each pool at `begin`, or the next begin to try."""
        picks: list[int] = []
        claims: dict[Resource, list[Sequence[Span]]] = {}
        for number, pool in enumerate(pools):
            soonest: int | None = None
            for pick, candidate in enumerate(pool.candidates):
                if any(overlap(claim, spans) for resource, spans in candidate for claim in claims.get(resource, ())):
                    continue
                at = self._earliest(candidate, begin)
                if at == begin:
                    picks.append(pick)
                    for resource, spans in candidate:
                        claims.setdefault(resource, []).append(spans)
                    break
                soonest = at if soonest is None else min(soonest, at)
            else:
                if soonest is None:
                    raise Exhausted(number)
                return soonest
        return tuple(picks)


def _parts(demand: Demand, placed: PlacedItem) -> Iterator[tuple[Resource, Sequence[Span]]]:
    """All that a placed sweep has."""
    yield from demand.fixed.items()
    for pool, pick in zip(demand.pools, placed.picks, strict=True):
        yield from pool.candidates[pick]


def _fit(taken: Intervals, spans: Sequence[Span], begin: int) -> int:
    """The least begin from `begin` on at which none of the spans is taken."""
    if not taken or begin + spans[0][0] >= taken.ends[-1]:
        return begin
    while True:
        before = begin
        for low, high in spans:
            begin = taken.earliest(begin + low, high - low) - low
        if begin == before:
            return begin
