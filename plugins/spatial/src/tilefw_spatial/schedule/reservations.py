"""Reservation tables: what of the machine is taken when, and the earliest begin at which a stream operation gets all that it needs.

A stream operation needs some resources as they are (a slice's queue), and some from pools (any ALU, any aligned group of streams).
Spans are cycles counted from the stream operation's begin; those of streams are diagonals counted from it too, since a later begin
moves both equally.
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
    """What one stream operation takes: `fixed` resources, and one candidate of each of `pools`. It may not begin before `least`."""

    fixed: Mapping[Resource, Sequence[Span]]
    pools: Sequence[Pool]
    least: int = 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """When a stream operation begins, and which candidate each of its pools got."""

    begin: int
    choices: tuple[int, ...]


class Exhausted(Exception):
    """A stream operation that asks a pool for more at one time than it has; `pool` is its number in the demand."""

    def __init__(self, pool: int) -> None:
        super().__init__(pool)
        self.pool = pool


@dataclass(slots=True)
class ReservationTable:
    """The table: what is taken of each resource."""

    taken: dict[Resource, Intervals] = field(default_factory=dict)

    def reserve(self, demand: Demand) -> Reservation:
        """Take what a stream operation needs at the earliest begin that has it. Raises Exhausted where there is none."""
        reservation = self.find(demand, demand.least)
        self.claim(demand, reservation)
        return reservation

    def find(self, demand: Demand, begin: int) -> Reservation:
        """The earliest begin from `begin` on that has what a stream operation needs. Raises Exhausted where there is none."""
        while True:
            begin = self._earliest(demand.fixed.items(), begin)
            choices = self._choose(demand.pools, begin)
            if isinstance(choices, tuple):
                return Reservation(begin, choices)
            begin = choices

    def claim(self, demand: Demand, reservation: Reservation) -> None:
        """Take what was found."""
        for resource, spans in _parts(demand, reservation):
            taken = self.taken.setdefault(resource, Intervals())
            for low, high in spans:
                taken.add(reservation.begin + low, reservation.begin + high)

    def release(self, demand: Demand, reservation: Reservation) -> None:
        """Give back what a stream operation took."""
        for resource, spans in _parts(demand, reservation):
            for low, high in spans:
                self.taken[resource].remove(reservation.begin + low, reservation.begin + high)

    def _earliest(self, parts: Iterable[tuple[Resource, Sequence[Span]]], begin: int) -> int:
        wanted = [(self.taken[resource], spans) for resource, spans in parts if resource in self.taken]
        while True:
            before = begin
            for taken, spans in wanted:
                begin = _fit(taken, spans, begin)
            if begin == before:
                return begin

    def _choose(self, pools: Sequence[Pool], begin: int) -> tuple[int, ...] | int:
        """A candidate of each pool at `begin`, or the next begin to try."""
        choices: list[int] = []
        claims: dict[Resource, list[Sequence[Span]]] = {}
        for number, pool in enumerate(pools):
            soonest: int | None = None
            for choice, candidate in enumerate(pool.candidates):
                if any(overlap(claim, spans) for resource, spans in candidate for claim in claims.get(resource, ())):
                    continue
                at = self._earliest(candidate, begin)
                if at == begin:
                    choices.append(choice)
                    for resource, spans in candidate:
                        claims.setdefault(resource, []).append(spans)
                    break
                soonest = at if soonest is None else min(soonest, at)
            else:
                if soonest is None:
                    raise Exhausted(number)
                return soonest
        return tuple(choices)


def _parts(demand: Demand, reservation: Reservation) -> Iterator[tuple[Resource, Sequence[Span]]]:
    """All that a placed stream operation has."""
    yield from demand.fixed.items()
    for pool, choice in zip(demand.pools, reservation.choices, strict=True):
        yield from pool.candidates[choice]


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
