"""Streams and results of ALUs: no two values at one point, and each value that is taken has been put by one upstream."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from tilefw_spatial.check.effects import RESULT, STREAM, Effect, EffectLine, puts, takes
from tilefw_spatial.check.flow import Edge
from tilefw_spatial.check.problem import OPERAND, PRODUCERS, CheckedBurst, Problem, at
from tilefw_spatial.check.progression import ProgressionSpan, meetings
from tilefw_spatial.machine import Machine


class _Produced:
    """All that is put on one line, in order of the first numbers."""

    def __init__(self, effects: list[Effect]) -> None:
        self.effects = sorted(effects, key=lambda e: e.numbers.start)
        self._starts = [effect.numbers.start for effect in self.effects]
        # The furthest last number of all up to each: where to stop looking back.
        self._reach: list[int] = []
        for effect in self.effects:
            self._reach.append(max(effect.numbers.last, self._reach[-1] if self._reach else effect.numbers.last))

    def holding(self, number: int, taker: Effect, machine: Machine) -> Effect | None:
        """The one that has a number and lies upstream of the taker."""
        index = bisect_right(self._starts, number) - 1
        while index >= 0 and self._reach[index] >= number:
            effect = self.effects[index]
            if effect.numbers.index(number) >= 0 and _upstream(effect, taker, machine):
                return effect
            index -= 1
        return None

    def next(self, number: int) -> int | None:
        """The first number from here on at which any begins: for messages."""
        index = bisect_left(self._starts, number)
        return self._starts[index] if index < len(self._starts) else None


def _upstream(put: Effect, taker: Effect, machine: Machine) -> bool:
    if put.line.kind == RESULT:
        return True
    return machine.passes(put.line.number, put.burst.position, taker.burst.position) is not None


def check_lines(machine: Machine, bursts: list[CheckedBurst]) -> tuple[list[Problem], list[Edge]]:
    """Problems of all lines, and from where each value that is taken comes."""
    produced: defaultdict[EffectLine, list[Effect]] = defaultdict(list)
    for burst in bursts:
        for effect in puts(machine, burst):
            produced[effect.line].append(effect)
    problems = [problem for line, effects in produced.items() for problem in _conflicts(machine, line, effects)]
    lines = {line: _Produced(effects) for line, effects in produced.items()}
    edges: list[Edge] = []
    for burst in bursts:
        for effect in takes(machine, burst):
            _follow(machine, effect, lines.get(effect.line), problems, edges)
    return problems, edges


def _conflicts(machine: Machine, line: EffectLine, effects: list[Effect]) -> Iterator[Problem]:
    for first, second, number in meetings([ProgressionSpan(effect.numbers, effect) for effect in effects]):
        burst = second.owner.burst
        cycle = _cycle(machine, line, burst.position, number)
        where = f"{line.name(machine)} at {burst.unit}" if line.kind == STREAM else f"the results of {line.name(machine)}"
        yield at(PRODUCERS, f"{burst} meets {first.owner.burst} on {where} in cycle {cycle}", burst, cycle)


def _cycle(machine: Machine, line: EffectLine, position: int, number: int) -> int:
    """The cycle at which a line's number passes a position."""
    if line.kind == RESULT:
        return number
    return number - position if machine.is_west(line.number) else number + position


def _follow(
    machine: Machine, effect: Effect, produced: _Produced | None, problems: list[Problem], edges: list[Edge]
) -> None:
    """Every value that is taken, run by run, to the burst that made it."""
    numbers, done = effect.numbers, 0
    while done < numbers.count:
        number = numbers.start + done * numbers.period
        source = None if produced is None else produced.holding(number, effect, machine)
        if source is None:
            problems.append(_missing(machine, effect, number))
            return
        first = source.numbers.index(number)
        stride, rest = divmod(numbers.period, source.numbers.period)
        run = 1 if rest else min(numbers.count - done, 1 + (source.numbers.count - 1 - first) // stride)
        edges.append(Edge(effect.burst.number, effect.field, done, run, source.burst.number, first, stride if run > 1 else 0))
        done += run


def _missing(machine: Machine, effect: Effect, number: int) -> Problem:
    line, burst = effect.line, effect.burst
    if line.kind == RESULT:
        return at(OPERAND, f"{burst} takes a result of {line.name(machine)} that would appear in cycle {number}: none does", burst)
    cycle = _cycle(machine, line, burst.position, number)
    return at(OPERAND, f"{burst} takes {line.name(machine)} at {burst.unit} in cycle {cycle}: nothing passes", burst, cycle)
