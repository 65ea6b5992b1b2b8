"""Systematic exploration of a litmus test: every order of steps, every message a read may take, every place a store may have.

States that were reached before, by whatever order, are not gone on from; a turn of a loop that changed nothing for its thread ends
its branch, for the branch without that turn has the same ends. When no branch is left, everything has been seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress

from tilefw.sim.memory.litmus.outcomes import Tally
from tilefw.sim.memory.litmus.test import LitmusTest
from tilefw.sim.memory.litmus.threads import RunningTest
from tilefw.sim.memory.views.agents import MemoryRules
from tilefw.sim.memory.views.machine import PassedTooFar, ViewMachine


class Enumeration:
    """Takes the choices of a given prefix, then the first ones, and remembers how many there were."""

    def __init__(self, prefix: Sequence[int]):
        self._prefix = prefix
        self.counts: list[int] = []

    def _next(self, count: int) -> int:
        place = len(self.counts)
        self.counts.append(count)
        return self._prefix[place] if place < len(self._prefix) else 0

    def message(self, agent: int, location: object, options: Sequence[int]) -> int:
        return self._next(len(options)) if len(options) > 1 else 0

    def placements(self, count: int) -> Sequence[int]:
        chosen = self._next(1 << count) if count else 0
        return (chosen, 0) if chosen else (0,)

    def following(self) -> list[int] | None:
        """The prefix of the next run, None when all were made."""
        taken = [self._prefix[i] if i < len(self._prefix) else 0 for i in range(len(self.counts))]
        while taken and taken[-1] + 1 >= self.counts[len(taken) - 1]:
            taken.pop()
        return [*taken[:-1], taken[-1] + 1] if taken else None


def explore(test: LitmusTest, limit: int = 200_000, rules: MemoryRules | None = None, until_seen: bool = False) -> Tally:
    """See every end of the test, or stop after `limit` states (`Tally.complete` says which)."""
    tally = Tally()
    machine = ViewMachine(test.places, Enumeration(()), dict(test.aliases), rules)
    for address, value in test.memory.items():
        machine.initialise(address, value)
    seen: set[Hashable] = set()
    left = [RunningTest(test, machine)]
    while left:
        if tally.runs >= limit:
            return tally
        execution = left.pop()
        tally.runs += 1
        ready = execution.ready()
        if not ready:
            _count(test, execution, tally)
            if until_seen and tally.witnesses:
                return tally
        for number in ready:
            for successor in _successors(execution, number):
                key = successor.key()
                if key not in seen and not successor.stuttered:
                    seen.add(key)
                    left.append(successor)
    tally.complete = True
    return tally


def _count(test: LitmusTest, execution: RunningTest, tally: Tally) -> None:
    if not all(map(execution.ended, range(len(test.threads)))):
        tally.stuck += 1
        return
    tally.ends += 1
    if any(test.condition.witness(final) for final in execution.finals()):
        tally.witnesses += 1
        tally.first = tally.first or tally.runs


def _successors(execution: RunningTest, number: int) -> Iterator[RunningTest]:
    """The states that a step of a thread leads to, one for each way to choose in it."""
    for wait in (False, True) if execution.may_wait(number) else (False,):
        prefix: list[int] | None = []
        while prefix is not None:
            successor = execution.copy()
            choices = successor.machine.choices = Enumeration(prefix)
            with suppress(PassedTooFar):
                successor.step(number, wait)
                yield successor
            prefix = choices.following()
