"""Fused segments of a region: each is a vector stream operation without its arrays and its domain."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tilefw_spatial.stream_program import AluStep


@dataclass(frozen=True, slots=True)
class Temporary:
    """A value that one segment writes and later ones read, of element type `dtype`. It has a vector for each point of the domain;
    if `reduced`, for each of the domain without its innermost loop. Hashable: a key like those of the caller."""

    number: int
    dtype: str
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class SegmentRead:
    """A stream into the segment: the array `key` names (an `Input`'s key, a `NodeResult`'s key that an earlier segment wrote, or a
    Temporary), whose first vector is at the vector unit at `time`. `constant`: the same vector at every point of the innermost loop
    (a reduced value in a segment that is not `reduced`): its access pattern has stride 0 there."""

    key: Hashable
    dtype: str
    time: int = 0
    constant: bool = False
    drained: bool = False


@dataclass(frozen=True, slots=True)
class SegmentWrite:
    """A stream out: the result of step `step`, written to the array of each of `keys`: one Temporary, or the caller's results,
    several where it wants one value more than once. `dtype` is the arrays' element type, as wide as the step's result."""

    keys: tuple[Hashable, ...]
    dtype: str
    step: int
    combined: bool = False  # the step is a TRED: one vector each `every` points


@dataclass(frozen=True, slots=True)
class FusedSegment:
    """One vector stream operation. `steps` have their ALUs (numbers 0 to at most 15, each once, from 0 upwards) and times, as
    `stream_program.AluStep` says; they are in order of time, so that operands come from earlier ones. The earliest read or step is
    at time 0. A `reduced` segment runs over the domain without its innermost loop.

    Source indices are those of `reads` (`stream`) and `steps` (`alu`). A consumer of an ALU's result reads it 0, 4, 8 or 12 cycles
    after it appeared: `consumer.time - producer.time - latency`. Results at different times of one segment never wait: a MOV holds
    them. Drained reads come first. Segments are in an order that is right."""

    reads: tuple[SegmentRead, ...]
    steps: tuple[AluStep, ...]
    writes: tuple[SegmentWrite, ...]
    reduced: bool = False

    @property
    def alus(self) -> int:
        """How many ALUs the segment keeps busy."""
        return len(self.steps)
