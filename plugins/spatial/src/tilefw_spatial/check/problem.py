"""What the checker finds wrong, and how it names bursts."""

from __future__ import annotations

from dataclasses import dataclass

from tilefw_spatial.program import QueueInst

# By what is broken; each code has its page.
OPERAND = "TFW0850"  # a stream or result is taken that nobody put there
PRODUCERS = "TFW0851"  # two producers meet
PORT = "TFW0852"  # a slice does more in a cycle than it can
ROWS = "TFW0853"  # a row is read unwritten, or written and replaced unread
QUEUE = "TFW0854"  # a queue waits for ever, or has no cycle for an instruction
BOUNDS = "TFW0855"  # a burst leaves its bank
MATRIX = "TFW0856"  # weights or accumulators that are not there, or not yet, or no more
PROGRAM = "TFW0857"  # no program of this machine
LINK = "TFW0858"  # sends and receives do not fit
CYCLES = "TFW0859"  # the count of cycles is another


@dataclass(frozen=True, slots=True)
class Problem:
    """A constraint that a program breaks, with chip, queue, index there (from 0) and cycle of the instruction where it has one."""

    code: str
    message: str
    chip: int | None = None
    queue: str | None = None
    index: int | None = None
    cycle: int | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True, slots=True, eq=False)
class CheckedBurst:
    """One instruction at work: `count` points, the first issued at `time`, the others `period` cycles apart; point i works at row
    `address` + i · `step`. `number` counts the bursts of the program; an idle cycle more or less does not change it."""

    number: int
    chip: int
    queue: str
    unit: str
    position: int
    plane: int
    index: int
    inst: QueueInst
    time: int
    count: int
    period: int
    address: int
    step: int

    @property
    def last(self) -> int:
        """The cycle in which the last point issues."""
        return self.time + (self.count - 1) * self.period

    def __str__(self) -> str:
        dtype = f".{self.inst.dtype}" if self.inst.dtype else ""
        chip = f" of chip {self.chip}" if self.chip else ""
        return f"{self.inst.op}{dtype} of {self.queue}{chip} at cycle {self.time}"


def at(code: str, message: str, burst: CheckedBurst, cycle: int | None = None) -> Problem:
    """A problem of a burst."""
    return Problem(code, message, burst.chip, burst.queue, burst.index, burst.time if cycle is None else cycle)
