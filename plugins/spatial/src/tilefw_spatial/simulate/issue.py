"""When every instruction issues: queues unrolled into bursts. Nothing here depends on data.

A queue goes from one instruction to the next without a gap: a burst takes its queue for as many cycles as it has vectors, every
other instruction for one, NOP for as many as it says, REP until the last repetition is done. Only SYNC and DSK wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from tilefw.api import CodeError
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import Machine, Queue
from tilefw_spatial.program import ChipCode, QueueInst
from tilefw_spatial.simulate.burst import Burst
from tilefw_spatial.simulate.findings import Faults, Findings

# What the machine has and this simulator does not carry out.
_NOT_SERVED = frozenset({"IFETCH"})
# Repetitions of one vector's instruction are as good as a burst, but for rows that begin something anew each time.
_NOT_MERGED = frozenset({"LW", "TRED", "IW", "SND", "RCV", "NTFY"})


@dataclass(slots=True)
class _Cursor:
    """How far a queue has been unrolled; `parked` is the cycle since which it waits in a SYNC."""

    queue: Queue
    insts: tuple[QueueInst, ...]
    index: int = 0
    time: int = 0
    parked: int | None = None
    bursts: list[Burst] = field(default_factory=list)


class QueueIssue:
    """The bursts of one chip's queues, each in order of time. The code is one that `valid.chip_faults` finds nothing wrong with."""

    def __init__(self, code: ChipCode, machine: Machine, chip: int, findings: Findings, budget: int) -> None:
        self._machine, self._chip, self._findings = machine, chip, findings
        self._left = budget
        self._releases: list[int] = []
        self.cursors = [_Cursor(machine.queues[name], insts) for name, insts in code.queues.items()]
        self._unroll()

    @property
    def queues(self) -> Mapping[str, list[Burst]]:
        return {cursor.queue.name: cursor.bursts for cursor in self.cursors}

    def _unroll(self) -> None:
        """Advance all queues to their ends or to a SYNC, then notify in order of time: what one releases notifies only later."""
        for cursor in self.cursors:
            self._advance(cursor)
        while self._releases:
            now = heappop(self._releases)
            for cursor in self.cursors:
                if cursor.parked is not None and cursor.parked <= now:
                    cursor.parked, cursor.time = None, now
                    self._advance(cursor)
        for cursor in self.cursors:
            if cursor.parked is not None:
                waiting = self._burst(cursor, cursor.index - 1, cursor.parked)
                self._findings.add(Faults.QUEUE, f"{cursor.queue.name} waits and is never notified", waiting, cursor.parked)

    def _advance(self, cursor: _Cursor) -> None:
        while cursor.parked is None and cursor.index < len(cursor.insts):
            inst = cursor.insts[cursor.index]
            cursor.index += 1
            if inst.op == "CFG.halt":
                cursor.index = len(cursor.insts)
            else:
                self._step(cursor, inst)

    def _step(self, cursor: _Cursor, inst: QueueInst) -> None:
        if inst.op == "NOP":
            cursor.time += inst.imm
        elif inst.op == "REP":
            self._repeat(cursor, inst)
        elif inst.op == "SYNC":
            cursor.parked = cursor.time
        elif inst.op == "DSK":
            cursor.time += -cursor.time % self._machine.epoch
        else:
            self._issue(cursor, inst)

    def _issue(self, cursor: _Cursor, inst: QueueInst) -> None:
        burst = self._burst(cursor, cursor.index - 1, cursor.time)
        if inst.op in _NOT_SERVED:
            raise CodeError(f"{inst.op} in {cursor.queue.name}: this simulator runs queues that are loaded before", code="TFW0837")
        self._spend(burst.count)
        cursor.bursts.append(burst)
        if inst.op == "NTFY":
            heappush(self._releases, cursor.time + self._machine.delays["notify"])
        cursor.time += burst.count

    def _burst(self, cursor: _Cursor, index: int, time: int) -> Burst:
        inst = cursor.insts[index]
        count = inst.burst if OPS[inst.op][0].burst else 1
        return Burst(self._chip, cursor.queue, index, inst, time, count, 1, inst.address, inst.step)

    def _repeat(self, cursor: _Cursor, inst: QueueInst) -> None:
        """REP: the burst before it again and again; in one piece where it has one vector."""
        last, times, period = cursor.bursts[-1], inst.burst, inst.imm
        self._spend(times * last.count)
        if last.count == 1 and OPS[last.inst.op][0].name not in _NOT_MERGED:
            cursor.bursts[-1] = Burst(
                last.chip, last.queue, last.index, last.inst, last.time, times + 1, period, last.address, inst.step
            )
        else:
            cursor.bursts += self._copies(last, times, period, inst.step)
        cursor.time = last.time + times * period + last.count

    def _copies(self, last: Burst, times: int, period: int, increment: int) -> Iterator[Burst]:
        for i in range(1, times + 1):
            yield Burst(
                last.chip, last.queue, last.index, last.inst, last.time + i * period, last.count, 1,
                last.address + i * increment, last.step,
            )

    def _spend(self, points: int) -> None:
        self._left -= points
        if self._left < 0:
            raise CodeError(
                "the program issues more instructions than the launch's budget allows", code="TFW0810",
                help="allow more: --budget N on the command line, budget=N in a launch or a Session",
            )
