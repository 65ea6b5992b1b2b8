"""When the instructions of a queue issue: each after the one before it, as far as that is determined without running."""

from __future__ import annotations

from tilefw_spatial.program import QueueInst

MAX_IDLE = 65535  # what one NOP can wait


class Clock:
    """The cycle in which a queue's next instruction issues; None after SYNC and DSK, where only a run determines it."""

    def __init__(self) -> None:
        self.time: int | None = 0
        self._last = 0
        self._burst = 1

    def spend(self, inst: QueueInst) -> None:
        """Goes on past an instruction."""
        if inst.op in ("SYNC", "DSK"):
            self.time = None
        if self.time is None:
            return
        if inst.op == "NOP":
            self.time += inst.imm
        elif inst.op == "REP":
            self.time = self._last + inst.burst * inst.imm + self._burst
        else:
            self._last, self._burst = self.time, inst.burst
            self.time += inst.burst


def idle(cycles: int) -> list[QueueInst]:
    """The NOPs that wait so long: as few as can be, the last of them what is left."""
    full, rest = divmod(cycles, MAX_IDLE)
    return [QueueInst("NOP", imm=MAX_IDLE)] * full + ([QueueInst("NOP", imm=rest)] if rest else [])
