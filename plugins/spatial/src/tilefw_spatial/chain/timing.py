"""When each step of a segment issues, so that results wait little: what waits longer than an ALU keeps it costs a MOV.

Times count in ticks, the machine's `delay_step`: all latencies and delays are multiples. A result that appears at tick a can be
taken for `kept` ticks, the machine's `delay_steps`: at a to a + 3 if that is 4; a MOV, which takes one tick, hands it on
from a + 4 to a + 7, and so on. A stream passes once: whoever reads it later reads a MOV.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilefw.api.integers import ceil_div

_ROUNDS = 3


@dataclass(slots=True)
class TimingProblem:
    """The problem: `latency[v]` of each step in ticks, `takes[v]` the steps that it reads, `streams[v]` the reads; `kept`: ticks
    during which an ALU's result can be taken. Steps are in an
    order with operands first."""

    latency: Sequence[int]
    takes: Sequence[tuple[int, ...]]
    streams: Sequence[tuple[int, ...]]
    reads: int
    kept: int


def moves_after(latest: int, stream: bool, kept: int) -> int:
    """MOVs that carry a value to a reader `latest` ticks after it appeared."""
    return ceil_div(latest, kept) if stream else ceil_div(max(0, latest - (kept - 1)), kept)


def times(problem: TimingProblem, enough: int) -> list[int]:
    """The tick of each step, from 0; looked for until at most `enough` MOVs are needed, or nothing gets better."""
    search = _TickSearch(problem)
    best = min((search.improved(start, enough) for start in search.starts()), key=search.moves)
    first = min(best, default=0)
    return [t - first for t in best]


def least_moves(problem: TimingProblem) -> int:
    """MOVs that the problem needs at any times: a value waits for a reader at least as long as the longest path to it takes."""
    total, kept = 0, problem.kept
    readers: list[list[int]] = [[] for _ in range(problem.reads)]
    for v, streams in enumerate(problem.streams):
        for r in streams:
            readers[r].append(v)
    paths = _longest_paths(problem)
    for u, latency in enumerate(problem.latency):
        last = max((paths[w].get(u, 0) for w, takes in enumerate(problem.takes) if u in takes), default=latency)
        total += moves_after(last - latency, stream=False, kept=kept)
    for found in readers:
        last = max((paths[w].get(v, 0) for w in found for v in found), default=0)
        total += moves_after(last, stream=True, kept=kept)
    return total


def _longest_paths(problem: TimingProblem) -> list[dict[int, int]]:
    """For each step those that it depends on, and how many ticks after them it can issue at the earliest."""
    paths: list[dict[int, int]] = []
    for takes in problem.takes:
        found: dict[int, int] = {}
        for u in takes:
            latency = problem.latency[u]
            found[u] = max(found.get(u, 0), latency)
            for below, ticks in paths[u].items():
                found[below] = max(found.get(below, 0), ticks + latency)
        paths.append(found)
    return paths


class _TickSearch:
    def __init__(self, problem: TimingProblem) -> None:
        self.p = problem
        steps = range(len(problem.latency))
        self.users: list[list[int]] = [[] for _ in steps]
        self.readers: list[list[int]] = [[] for _ in range(problem.reads)]
        for v in steps:
            for u in problem.takes[v]:
                self.users[u].append(v)
            for r in problem.streams[v]:
                self.readers[r].append(v)

    def starts(self) -> list[list[int]]:
        """All as late as can be, and all as early."""
        early = [0] * len(self.p.latency)
        for v, takes in enumerate(self.p.takes):
            early[v] = max((early[u] + self.p.latency[u] for u in takes), default=0)
        end = max((early[v] + self.p.latency[v] for v in range(len(early))), default=0)
        late = [0] * len(early)
        for v in reversed(range(len(early))):
            late[v] = min((late[w] for w in self.users[v]), default=end) - self.p.latency[v]
        return [late, early]

    def moves(self, at: list[int]) -> int:
        return sum(self._result_moves(v, at) for v in range(len(at))) + sum(self._stream_moves(r, at) for r in range(self.p.reads))

    def improved(self, at: list[int], enough: int) -> list[int]:
        """Each step, one after the other, to where the values around it wait least."""
        for round_ in range(_ROUNDS):
            before = self.moves(at)
            if before <= enough:
                return at
            for v in reversed(range(len(at))) if round_ % 2 == 0 else range(len(at)):
                at[v] = self._place(v, at)
            if self.moves(at) == before and round_:
                break
        return at

    def _place(self, v: int, at: list[int]) -> int:
        low = max((at[u] + self.p.latency[u] for u in self.p.takes[v]), default=None)
        high = min((at[w] for w in self.users[v]), default=None)
        high = None if high is None else high - self.p.latency[v]
        if low is None and high is None:
            low, high = min(at), max(at)
        elif low is None:
            assert high is not None
            low = min(high, min(at))
        elif high is None:
            high = max(low, max(at))
        assert low is not None and high is not None
        costs = self._costs(v, at)
        found, least = at[v], costs(at[v])
        for t in range(low, high + 1):
            cost = costs(t)
            if cost < least:
                found, least = t, cost
        return found

    def _costs(self, v: int, at: list[int]) -> Callable[[int], int]:
        """MOVs of the values around a step, by its tick."""
        until = max((at[w] for w in self.users[v]), default=None)
        made = [(at[u] + self.p.latency[u], max((at[w] for w in self.users[u] if w != v), default=at[u])) for u in self.p.takes[v]]
        read = [[at[w] for w in self.readers[r] if w != v] for r in self.p.streams[v]]
        bounds = [(min(others), max(others)) for others in read if others]
        latency, kept = self.p.latency[v], self.p.kept

        def cost(t: int) -> int:
            total = 0 if until is None else moves_after(until - t - latency, stream=False, kept=kept)
            for appears, latest in made:
                total += moves_after((t if t > latest else latest) - appears, stream=False, kept=kept)
            for first, latest in bounds:
                total += moves_after(max(t, latest) - min(t, first), stream=True, kept=kept)
            return total

        return cost

    def _result_moves(self, v: int, at: list[int]) -> int:
        users = self.users[v]
        return moves_after(max(at[w] for w in users) - at[v] - self.p.latency[v], stream=False, kept=self.p.kept) if users else 0

    def _stream_moves(self, r: int, at: list[int]) -> int:
        when = [at[v] for v in self.readers[r]]
        return moves_after(max(when) - min(when), stream=True, kept=self.p.kept) if when else 0
