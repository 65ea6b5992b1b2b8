"""A burst: one instruction at work on successive vectors, with the cycles at which it issues."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilefw_spatial.machine import Queue
from tilefw_spatial.program import QueueInst


@dataclass(frozen=True, slots=True, eq=False)
class Burst:
    """`count` points of one instruction, the first issued at `time`, the others `period` cycles apart; point i works at row
    `address` + i · `step`. `index` is the instruction's number in its queue."""

    chip: int
    queue: Queue
    index: int
    inst: QueueInst
    time: int
    count: int
    period: int
    address: int
    step: int

    @property
    def last(self) -> int:
        """The cycle at which the last point issues."""
        return self.time + (self.count - 1) * self.period

    def head(self, count: int) -> Burst:
        """The first points."""
        return self if count == self.count else replace(self, count=count)

    def rest(self, count: int) -> Burst:
        """All but the first points."""
        return replace(
            self, count=self.count - count, time=self.time + count * self.period, address=self.address + count * self.step
        )
