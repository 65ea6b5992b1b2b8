"""List scheduling, cycle by cycle: of the instructions that can begin, the one with the longest critical path begins.

A wave issues one instruction every `issue_interval` cycles, in order. An instruction can begin when its operands are available and
its pipe is free. Where several can, the one with the longest critical path to the end of the block goes first; ties go in source
order. Loads from far memory therefore go early, and instructions that occupy their pipe for long, such as matrix instructions, are
interleaved with instructions for other pipes.

An instruction that would raise register pressure above the limit waits until enough values have died. Where no other is left, the
order continues in source order from the first instruction that is not placed. That may exceed the limit, as results that were
produced early stay live; with `headroom`, no instruction goes early where that could happen, and the limit holds.

Instructions under one predicate follow each other where they can: a chip that switches lanes off for them does so once. (The
algorithm is the textbook's: "Engineering a Compiler", §12.3; the two modes are those of Goodman and Hsu, "Code scheduling and
register allocation in large basic blocks", 1988.)
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from tilefw.machine.dependences import Dependences
from tilefw.machine.headroom import RegisterHeadroom
from tilefw.machine.pressure import Pressure
from tilefw.machine.table import InstructionTraits


def list_schedule(
    order: Dependences, traits: Sequence[InstructionTraits], guards: Sequence[object], pressure: Pressure, limits: Sequence[int],
    issue_interval: int, headroom: RegisterHeadroom | None = None,
) -> list[int]:
    """The instructions by their indexes in their new order. `guards` are their predicates, None for none; `pressure` is left as it
    is at the end of the order. `headroom` is that of the block before any instruction is placed."""
    scheduler = _Scheduler(order, traits, guards, pressure, limits, issue_interval, headroom)
    return scheduler.run()


def critical_paths(order: Dependences, traits: Sequence[InstructionTraits], issue_interval: int) -> list[int]:
    """Cycles from the beginning of each instruction to the end of everything that depends on it.

    What keeps its pipe until it is done, as matrix instructions do, also has those behind it that are nearer to the end, as the
    pipe takes them one after the other: the critical path of a loop is all its matrix work, not that of one sum.
    """
    plain = _longest_paths(order, [its.latency for its in traits])
    lines: dict[str, list[int]] = {}
    for i, its in enumerate(traits):
        if its.unit and its.issue > issue_interval and its.issue >= its.latency:
            lines.setdefault(its.unit, []).append(i)
    if all(len(line) == 1 for line in lines.values()):
        return plain
    least = [its.latency for its in traits]
    for line in lines.values():
        behind = 0
        for i in sorted(line, key=lambda i: (plain[i], -i)):
            behind += traits[i].issue
            least[i] = behind = max(behind, plain[i])
    return _longest_paths(order, least)


def _longest_paths(order: Dependences, least: list[int]) -> list[int]:
    """The longest path from each instruction to the end; instruction i takes at least `least[i]` cycles of it."""
    found = least
    for i in range(len(found) - 1, -1, -1):
        height = found[i]
        for then, delay in zip(order.successors[i], order.delays[i], strict=True):
            if delay + found[then] > height:
                height = delay + found[then]
        found[i] = height
    return found


class _ReadyQueue:
    """Instructions that could begin but for their pipe, `unit`, or for the registers of `file` that they make live; -1 for none."""

    __slots__ = ("file", "keys", "unit")

    def __init__(self, unit: int, file: int) -> None:
        self.unit = unit
        self.file = file
        self.keys: list[int] = []


class _Scheduler:
    """The state of one block's schedule. A key holds an instruction's rank and its index, so that keys sort as they should."""

    def __init__(
        self, order: Dependences, traits: Sequence[InstructionTraits], guards: Sequence[object], pressure: Pressure,
        limits: Sequence[int], issue_interval: int, headroom: RegisterHeadroom | None,
    ) -> None:
        self.order = order
        self.guards = guards
        self.guarded: dict[object, list[int]] = {guard: [] for guard in guards if guard is not None}
        self.pressure = pressure
        self.limits = limits
        self.headroom = headroom
        self.issue_interval = issue_interval
        self.count = len(traits)
        high = critical_paths(order, traits, issue_interval)
        top = max(high, default=0)
        self.keys = [(top - height) * self.count + i for i, height in enumerate(high)]
        units: dict[str, int] = {}
        self.unit = [units.setdefault(its.unit, len(units)) if its.unit else -1 for its in traits]
        self.issue = [its.issue for its in traits]
        self.free = [0] * (len(units) + 1)  # when each pipe takes its next; the last is of instructions without one
        self.waits = list(order.waits)
        self.earliest = [0] * self.count
        self.pending: list[int] = [i for i in range(self.count) if not self.waits[i]]  # keys of (time, index)
        heapify(self.pending)
        self.queues: dict[tuple[int, int], _ReadyQueue] = {}
        self.of = [self._queue(i) for i in range(self.count)]
        self.placed = bytearray(self.count)
        self.first = 0  # no instruction before this one is left
        self.result: list[int] = []

    def run(self) -> list[int]:
        clock = 0
        while len(self.result) < self.count:
            self._wake(clock)
            chosen, later = self._alike(), -1
            if chosen < 0:
                chosen, later = self._choose(clock)
            if chosen < 0:
                if later < 0 or (self.headroom is not None and self._next_could_begin(clock)):
                    chosen = self._first()
                else:
                    clock = later
                    continue
            self._issue(chosen, clock)
            clock += self.issue_interval
        return self.result

    def _queue(self, i: int) -> _ReadyQueue:
        grows = self.pressure.grows[i]
        file = max(grows, key=lambda each: each[1])[0] if grows else -1
        key = (self.unit[i], file)
        if key not in self.queues:
            self.queues[key] = _ReadyQueue(*key)
        return self.queues[key]

    def _wake(self, clock: int) -> None:
        """Queue what has its operands by now."""
        pending, count = self.pending, self.count
        bound = (clock + 1) * count
        while pending and pending[0] < bound:
            i = heappop(pending) % count
            heappush(self.of[i].keys, self.keys[i])
            if self.guards[i] is not None:
                heappush(self.guarded[self.guards[i]], self.keys[i])

    def _alike(self) -> int:
        """The best instruction under the predicate of the last one, -1 for none."""
        if not self.result or self.guards[self.result[-1]] is None:
            return -1
        keys = self.guarded[self.guards[self.result[-1]]]
        while keys and self.placed[keys[0] % self.count]:
            heappop(keys)
        return heappop(keys) % self.count if keys and self._fits(keys[0] % self.count) else -1

    def _fits(self, i: int) -> bool:
        """Whether the registers that instruction i makes live are there."""
        if self.headroom is not None:
            return self.headroom.fits(i, self._first())
        now, limits = self.pressure.now, self.limits
        return all(now[file] + more <= limits[file] for file, more in self.pressure.grows[i])

    def _choose(self, clock: int) -> tuple[int, int]:
        """The queue's instruction to begin now, or -1 and the cycle when there may be one, -1 again where only registers lack."""
        best: _ReadyQueue | None = None
        later = self.pending[0] // self.count if self.pending else -1
        placed, count = self.placed, self.count
        for queue in self.queues.values():
            keys = queue.keys
            while keys and placed[keys[0] % count]:
                heappop(keys)  # placed as it was written
            if not keys or (best is not None and best.keys[0] < keys[0]):
                continue
            free = self.free[queue.unit]
            if free > clock and 0 <= later <= free:
                continue  # whether it fits makes no difference
            if queue.file >= 0 and not self._fits(keys[0] % count):
                continue
            if free <= clock:
                best = queue
            elif later < 0 or free < later:
                later = free
        return (-1, later) if best is None else (heappop(best.keys) % count, later)

    def _first(self) -> int:
        """The first of the instructions as they were written that is not placed; all that it needs is."""
        while self.placed[self.first]:
            self.first += 1
        return self.first

    def _next_could_begin(self, clock: int) -> bool:
        """Whether the first instruction as they were written has its operands: it always has its registers."""
        first = self._first()
        return not self.waits[first] and self.earliest[first] <= clock

    def _issue(self, i: int, clock: int) -> None:
        self.placed[i] = 1
        self.result.append(i)
        self.pressure.schedule(i)
        if self.headroom is not None:
            self.headroom.schedule(i)
        unit = self.unit[i]
        if unit >= 0:
            self.free[unit] = clock + self.issue[i]
        waits, earliest = self.waits, self.earliest
        for then, delay in zip(self.order.successors[i], self.order.delays[i], strict=True):
            if clock + delay > earliest[then]:
                earliest[then] = clock + delay
            waits[then] -= 1
            if not waits[then]:
                heappush(self.pending, earliest[then] * self.count + then)
