"""What the waves of a launch executed and where they accessed memory, in order: what a model of time reads.

Plain data that a simulator gives in `LaunchReport.trace` where `LaunchOptions.trace` asks for it. Nothing in it is about time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

CHUNK = 32
"""Bytes of a chunk of global memory, the unit in which accesses are recorded; lines of caches are one or several."""


@dataclass(slots=True)
class AccessTrace:
    """One access to memory by waves of a batch.

    `waves` is a mask [workgroups, waves] of those that made it; the rows of `chunks` and `passes` are theirs, in row-major order.
    `chunks` int64 [rows, n]: the numbers of the chunks of global memory that a wave touched, each once, -1 behind the last.
    `passes` int64 [rows]: how often shared memory is passed through for the wave, 0 where it is not touched. `nbytes` [rows]: what
    the wave's lanes asked for together, `size` what each lane asks for.
    `repeats` [rows] of an atomic access: the most lanes of the wave that want one address. Of an access with a memory order `words`
    are, by row, the global addresses that it is at, in order; `moment` is its place among all those of launches that run at once,
    and `changed` says whether memory holds another value since. None of other accesses. `order` is the access's memory order, or
    that of a fence, whose `kind` is `fence` and which touches nothing.
    """

    instruction: int
    kind: str
    waves: Any
    chunks: Any
    passes: Any
    nbytes: Any
    size: int = 4
    repeats: Any = None
    words: Sequence[tuple[int, ...]] | None = None
    moment: int = 0
    changed: bool = False
    order: str = "weak"


@dataclass(slots=True)
class BarrierTrace:
    """One instruction of waves of a batch at barriers that count: they arrive there, give one to an engine's copy, or ask for the
    end of a phase. A row of each array [rows] is one wave at one barrier: `workgroups` and `waves`, their numbers in the batch and
    in the workgroup; `owners`, the number in the grid of the workgroup that has the barrier; `addresses`, where it is in that one's
    shared memory; `ended`, how many phases it has ended by then.
    """

    instruction: int
    workgroups: Any
    waves: Any
    owners: Any
    addresses: Any
    ended: Any


@dataclass(slots=True)
class BlockRun:
    """One execution of a block of straight-line code: `count` instructions from number `start` on, by the waves of the mask `waves`
    [workgroups, waves], their accesses in order, and what they do at barriers that count. `filled` [workgroups, waves]: the part of
    each wave's lanes that execute it; None where all do, or where the code keeps that to itself."""

    start: int
    count: int
    waves: Any
    accesses: list[AccessTrace] = field(default_factory=list)
    filled: Any = None
    barriers: list[BarrierTrace] = field(default_factory=list)


@dataclass(slots=True)
class BatchTrace:
    """What a batch of workgroups did: `workgroups` are their numbers in the grid."""

    workgroups: tuple[int, ...]
    waves: int
    runs: list[BlockRun] = field(default_factory=list)


@dataclass(slots=True)
class ExecutionTrace:
    """A launch, or the part of it that ran: `instructions` are the program's decoded ones, `grid` the whole grid. `lanes`: of a
    wave."""

    instructions: Sequence[Any]
    grid: tuple[int, int, int]
    waves: int
    batches: list[BatchTrace] = field(default_factory=list)
    lanes: int = 32
