"""The queue of a link, in which sends and receives interleave, one vector of each per interval."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush

from tilefw.api import InternalError
from tilefw.api.integers import ceil_div
from tilefw_spatial.program import QueueInst
from tilefw_spatial.schedule import DemandedIssue

MAX_IDLE = 65535  # what the word's field can name

_Entry = tuple[int, int, DemandedIssue]


def words(issues: Iterable[DemandedIssue], now: int) -> Iterator[QueueInst]:
    """The instructions of a queue from cycle `now` on. No more than two transmissions overlap, and those have one period."""
    heap: list[_Entry] = [(issue.cycle, number, issue) for number, issue in enumerate(issues)]
    heapify(heap)
    while heap:
        cycle, number, issue = heappop(heap)
        yield from idle(cycle - now)
        apart = heap[0][0] - cycle if heap else issue.last - cycle + 1
        if not apart:
            raise InternalError(f"{issue.queue} has two instructions in cycle {cycle}")
        if apart > issue.last - cycle:
            yield from _alone(issue)
            now = issue.last + 1
        elif apart >= issue.period:
            before = ceil_div(apart, issue.period)
            yield from _alone(replace(issue, repeats=before))
            heappush(heap, _from(issue, before, number))
            now = cycle + (before - 1) * issue.period + 1
        else:
            now = yield from _both(issue, number, heap)


def idle(cycles: int) -> Iterator[QueueInst]:
    """NOPs for so many cycles."""
    while cycles > 0:
        yield QueueInst("NOP", imm=min(cycles, MAX_IDLE))
        cycles -= MAX_IDLE


def _alone(issue: DemandedIssue) -> Iterator[QueueInst]:
    yield issue.inst
    if issue.repeats > 1:
        yield QueueInst("REP", burst=issue.repeats - 1, imm=issue.period, step=issue.jump)


def _both(issue: DemandedIssue, number: int, heap: list[_Entry]) -> Generator[QueueInst, None, int]:
    """The two earliest transmissions, alternating until one of them ends; the cycle behind."""
    _, other_number, other = heappop(heap)
    apart = other.cycle - issue.cycle
    if other.period not in (0, issue.period):
        raise InternalError(f"{issue.queue} has transmissions of periods {issue.period} and {other.period} at one time")
    rounds = min(issue.repeats, other.repeats)
    pair = (issue.inst, *idle(apart - 1), other.inst)
    yield from (*pair, *idle(issue.period - apart - 1)) * (rounds - 1)
    yield from pair
    for transmission, own in ((issue, number), (other, other_number)):
        if transmission.repeats > rounds:
            heappush(heap, _from(transmission, rounds, own))
    return other.cycle + (rounds - 1) * issue.period + 1


def _from(issue: DemandedIssue, first: int, number: int) -> _Entry:
    """What is left of a transmission from repetition `first` on."""
    cycle = issue.cycle + first * issue.period
    return cycle, number, replace(issue, cycle=cycle, repeats=issue.repeats - first)
