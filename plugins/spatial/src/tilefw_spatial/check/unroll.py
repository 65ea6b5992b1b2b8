"""The binary's queues as bursts at their cycles: idle words, repetitions, waits and notices worked out."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefw.api.integers import round_up
from tilefw_spatial.check.problem import QUEUE, CheckedBurst, Problem
from tilefw_spatial.isa import OPS
from tilefw_spatial.machine import Machine, Queue
from tilefw_spatial.program import QueueInst, SpatialProgram

# Repeated single vectors are one progression of cycles; what begins anew each time is so many bursts.
_ANEW = frozenset({"LW", "TRED", "IW", "SND", "RCV"})


@dataclass(slots=True)
class _QueueUnroller:
    """How far a queue has been read. `waits` is the cycle since which it waits for a notice."""

    chip: int
    queue: Queue
    words: tuple[QueueInst, ...]
    index: int = 0
    now: int = 0
    waits: int | None = None
    found: list[tuple[int, QueueInst, int, int, int, int, int]] = field(default_factory=list)
    notices: list[int] = field(default_factory=list)

    def run(self, machine: Machine) -> None:
        """Up to the end, or to a SYNC."""
        while self.waits is None and self.index < len(self.words):
            inst = self.words[self.index]
            self.index += 1
            match inst.op:
                case "NOP":
                    self.now += inst.imm
                case "REP":
                    self._repeat(inst)
                case "SYNC":
                    self.waits = self.now
                case "DSK":
                    self.now = round_up(self.now, machine.epoch)
                case "CFG.halt":
                    self.index = len(self.words)
                case _:
                    self._issue(inst, machine)

    def _issue(self, inst: QueueInst, machine: Machine) -> None:
        count = inst.burst if OPS[inst.op][0].burst else 1
        self.found.append((self.index - 1, inst, self.now, count, 1, inst.address, inst.step))
        if inst.op == "NTFY":
            self.notices.append(self.now + machine.delays["notify"])
        self.now += count

    def _repeat(self, rep: QueueInst) -> None:
        index, inst, time, count, _, address, step = self.found[-1]
        if count == 1 and OPS[inst.op][0].name not in _ANEW:
            self.found[-1] = index, inst, time, rep.burst + 1, rep.imm, address, rep.step
        else:
            self.found += [
                (index, inst, time + k * rep.imm, count, 1, address + k * rep.step, step) for k in range(1, rep.burst + 1)
            ]
        self.now = time + rep.burst * rep.imm + count


def unroll(program: SpatialProgram, machine: Machine) -> tuple[list[CheckedBurst], list[Problem]]:
    """All bursts, in the order of chips, queues and words, and what is wrong with queues alone."""
    bursts: list[CheckedBurst] = []
    problems: list[Problem] = []
    for chip, code in enumerate(program.chips):
        readers = [_QueueUnroller(chip, machine.queues[name], words) for name, words in code.queues.items()]
        _settle(readers, machine)
        for reader in readers:
            queue = reader.queue
            if reader.waits is not None:
                message = f"{queue.name} waits from cycle {reader.waits} on and is never notified"
                problems.append(Problem(QUEUE, message, chip, queue.name, reader.index - 1, reader.waits))
            for index, inst, time, count, period, address, step in reader.found:
                bursts.append(CheckedBurst(
                    len(bursts), chip, queue.name, queue.unit, queue.position, queue.number, index, inst, time, count, period,
                    address, step,
                ))
    return bursts, problems


def _settle(readers: list[_QueueUnroller], machine: Machine) -> None:
    """Run all queues; each notice, in order of time, releases those that wait by then."""
    for reader in readers:
        reader.run(machine)
    served: list[int] = []
    while True:
        notices = sorted(time for reader in readers for time in reader.notices)
        for time in served:
            notices.remove(time)
        if not notices:
            return
        served.append(notices[0])
        for reader in readers:
            if reader.waits is not None and reader.waits <= notices[0]:
                reader.now, reader.waits = notices[0], None
                reader.run(machine)
