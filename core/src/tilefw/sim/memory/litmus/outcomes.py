"""What running a litmus test showed: whether its condition met a witness, how many ends, and whether that was all there is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """`first`: the schedule (or state) in which a witness was first seen, 0 if none was; `impossible`: schedules that
    passed a read too far and were given up; `complete`: nothing is left to see."""

    runs: int = 0
    ends: int = 0
    witnesses: int = 0
    first: int = 0
    stuck: int = 0
    impossible: int = 0
    complete: bool = False
