"""When each step of a piece issues, so that results wait little: what waits longer than an ALU keeps it costs a MOV.

Times count in ticks of 4 cycles: all latencies and delays are multiples. A result that appears at tick a can be taken at a to
a + 3; a MOV that takes it at a + 3 hands it on from a + 4 to a + 7, and so on. A stream passes once: whoever reads it later reads
a MOV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TICK = 4
KEPT = 4  # ticks during which an ALU's result can be taken
_ROUNDS = 3


@dataclass(slots=True)
class Timed:
    """The problem: `latency[v]` of each step in ticks, `takes[v]` the steps that it reads, `streams[v]` the reads. Steps are in an
    order with operands first."""

    latency: Sequence[int]
    takes: Sequence[tuple[int, ...]]
    streams: Sequence[tuple[int, ...]]
    reads: int


def moves_after(latest: int, stream: bool) -> int:
    """MOVs that carry a value to a reader `latest` ticks after it appeared."""
    return -(-latest // KEPT) if stream else -(-max(0, latest - (KEPT - 1)) // KEPT)


def times(problem: Timed, enough: int) -> list[int]:
    """The tick of each step, from 0; looked for until at most `enough` MOVs are needed, or nothing gets better."""
    search = _Search(problem)
    best = min((search.improved(start, enough) for start in search.starts()), key=search.moves)
    first = min(best, default=0)
    return [t - first for t in best]


class _Search:
    def __init__(self, problem: Timed) -> None:
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
        return sum(self._held(v, at) for v in range(len(at))) + sum(self._carried(r, at) for r in range(self.p.reads))

    def improved(self, at: list[int], enough: int) -> list[int]:
        """Each step in turn to where the values around it wait least."""
        for turn in range(_ROUNDS):
            before = self.moves(at)
            if before <= enough:
                return at
            for v in reversed(range(len(at))) if turn % 2 == 0 else range(len(at)):
                at[v] = self._place(v, at)
            if self.moves(at) == before and turn:
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
        found, least = at[v], self._around(v, at)
        for t in range(low, high + 1):
            at[v] = t
            cost = self._around(v, at)
            if cost < least:
                found, least = t, cost
        return found

    def _around(self, v: int, at: list[int]) -> int:
        total = self._held(v, at)
        for u in self.p.takes[v]:
            total += self._held(u, at)
        for r in self.p.streams[v]:
            total += self._carried(r, at)
        return total

    def _held(self, v: int, at: list[int]) -> int:
        users = self.users[v]
        return moves_after(max(at[w] for w in users) - at[v] - self.p.latency[v], stream=False) if users else 0

    def _carried(self, r: int, at: list[int]) -> int:
        when = [at[v] for v in self.readers[r]]
        return moves_after(max(when) - min(when), stream=True) if when else 0
