"""One instruction queue, cycle by cycle: which point it issues now, if any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefw.api import CodeError
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import Machine, Queue
from tilefw_spatial.program import QueueInst
from tilefw_spatial.tick.findings import QUEUE, TickFindings
from tilefw_spatial.tick.point import Point, TickBurst


@dataclass(slots=True)
class _Running:
    """A burst that is being issued; `base` is its first row."""

    inst: QueueInst
    inst_index: int
    base: int
    burst: TickBurst
    index: int = 0

    @property
    def count(self) -> int:
        return self.inst.burst if OPS[self.inst.op][0].burst else 1


class Sequencer:
    """A queue of one chip. `parked`: it waits in a SYNC; `ended`: nothing more comes."""

    def __init__(self, chip: int, queue: Queue, insts: Sequence[QueueInst], machine: Machine, findings: TickFindings) -> None:
        self.chip, self.queue = chip, queue
        self.parked = self.ended = False
        self._insts, self._machine, self._findings = insts, machine, findings
        self._place = self._idle = self._again = self._gap = self._increment = 0
        self._running: _Running | None = None

    def tick(self, now: int) -> Point | None:
        """The point that issues in cycle `now`. Called once a cycle, and again when a parked queue was released in it."""
        while not (self.parked or self.ended):
            if self._idle:
                self._idle -= 1
                return None
            running = self._running
            if running is not None and running.index < running.count:
                return self._issue(running, now)
            if running is not None and self._again:
                self._repeat(running)
            else:
                self._fetch(now)
        return None

    def unreleased(self, now: int) -> None:
        """The program is over and this queue waits still."""
        point = self._point(QueueInst("SYNC"), self._place - 1, now, 0, 0, TickBurst())
        self._findings.add(QUEUE, f"{self.queue.name} waits and is never notified", point, now)

    def _issue(self, running: _Running, now: int) -> Point:
        inst, index = running.inst, running.index
        running.index += 1
        return self._point(inst, running.inst_index, now, index, running.base + index * inst.step, running.burst)

    def _point(self, inst: QueueInst, inst_index: int, now: int, index: int, address: int, burst: TickBurst) -> Point:
        return Point(self.chip, self.queue, inst_index, inst, now, index, address, burst)

    def _repeat(self, running: _Running) -> None:
        self._again -= 1
        self._idle = self._gap
        self._running = _Running(running.inst, running.inst_index, running.base + self._increment, TickBurst())

    def _fetch(self, now: int) -> None:
        if self._place >= len(self._insts):
            self.ended = True
            return
        inst = self._insts[self._place]
        self._place += 1
        if inst.op == "REP":
            self._begin_repeats(inst)
            return
        self._running = None
        if inst.op == "NOP":
            self._idle = inst.imm
        elif inst.op == "SYNC":
            self.parked = True
        elif inst.op == "DSK":
            self._idle = -now % self._machine.epoch
        elif inst.op == "CFG.halt":
            self.ended = True
        elif inst.op == "IFETCH":
            raise CodeError(f"IFETCH in {self.queue.name}: this simulator runs queues that are loaded before", code="TFW0837")
        else:
            self._running = _Running(inst, self._place - 1, inst.address, TickBurst())

    def _begin_repeats(self, inst: QueueInst) -> None:
        running = self._running
        assert running is not None
        self._again, self._gap, self._increment = inst.burst, inst.imm - running.count, inst.step
