"""What the instructions to come must know of a wave's past: results that have not arrived, and results that are too fresh.

The past is composed block by block. What a `Tracker` makes of one past and one block is found once and kept with the program: pasts
are numbers, equal ones are one number, and a run pays one look-up a block and past. Every wave has a past of its own;
mostly all waves that step together have the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tilefw.api.garbage_collection import paused
from tilefw.sim.engine.batch import Batch
from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction


@dataclass(frozen=True, slots=True)
class Found:
    """A fault that `instruction` meets with this past."""

    check: str
    code: str
    message: str
    instruction: Instruction
    other: Instruction
    note: str


class Tracker(Protocol):
    """Follows one kind of facts through the program. A past is any hashable value; there are finitely many."""

    @property
    def start(self) -> Hashable:
        """The past of a wave that begins."""
        ...

    def through(self, instructions: Sequence[Instruction], past: Any) -> tuple[Hashable, list[Found]]:
        """The past behind a block, and the faults within it."""
        ...


class FollowedBlock(Protocol):
    """A block of the program: instructions that run one after the other."""

    instructions: list[Instruction]


class History:
    """The pasts of one program, of all its trackers together, by number; 0 is the start."""

    def __init__(self, trackers: Sequence[Tracker], blocks: Sequence[FollowedBlock]) -> None:
        self._trackers = trackers
        self._blocks = blocks
        self._pasts: list[tuple[Hashable, ...]] = []
        self._numbers: dict[tuple[Hashable, ...], int] = {}
        self._known: dict[tuple[int, int], tuple[int, tuple[Found, ...]]] = {}
        self._number(tuple(tracker.start for tracker in trackers))

    def _number(self, past: tuple[Hashable, ...]) -> int:
        number = self._numbers.setdefault(past, len(self._pasts))
        if number == len(self._pasts):
            self._pasts.append(past)
        return number

    def through(self, block: int, past: int) -> tuple[int, tuple[Found, ...]]:
        """The past behind block number `block`, and the faults within it."""
        known = self._known.get((block, past))
        if known is None:
            with paused():  # what is found stays with the program
                known = self._known[block, past] = self._followed(block, past)
        return known

    def _followed(self, block: int, past: int) -> tuple[int, tuple[Found, ...]]:
        instructions = self._blocks[block].instructions
        results = [t.through(instructions, p) for t, p in zip(self._trackers, self._pasts[past], strict=True)]
        following = self._number(tuple(after for after, _ in results))
        return following, tuple(f for _, found in results for f in found)


class WaveHistories:
    """The past of each wave of a batch. Lanes of one wave that have gone different ways follow each other in it."""

    def __init__(self, batch: Batch, history: History) -> None:
        self._batch = batch
        self._history = history
        self._pasts = np.zeros(batch.frame.shape[:2], dtype=np.int32)
        self._running: list[tuple[int, Array]] = []

    def enter(self, mask: Array | None) -> None:
        """Waves of this mask (None: all) run from now on, together."""
        rows: Array = np.ones(self._pasts.shape, dtype=np.bool_) if mask is None else np.asarray(mask.any(axis=2))
        first = int(self._pasts[rows][0])
        if (self._pasts[rows] == first).all():
            self._running = [(first, rows)]
        else:
            self._running = [(past, rows & (self._pasts == past)) for past in np.unique(self._pasts[rows]).tolist()]

    def through(self, block: int) -> None:
        """They execute a block; its faults are reported."""
        for place, (past, rows) in enumerate(self._running):
            following, faults = self._history.through(block, past)
            if faults:
                self._report(faults, rows)
            if following != past:
                self._running[place] = following, rows

    def leave(self) -> None:
        """Others take over."""
        for past, rows in self._running:
            self._pasts[rows] = past
        self._running = []

    def _report(self, faults: Sequence[Found], rows: Array) -> None:
        reporter = self._batch.launch.diagnostics.reporter
        slot, wave = (int(i) for i in np.unravel_index(int(np.argmax(rows)), rows.shape))
        for found in faults:
            place = f" ({found.other.code})" if found.other.code else ""
            reporter.add(
                found.check, found.code, found.message, found.instruction, count=int(rows.sum()),
                where=(self._batch.workgroup(slot), wave, 0), other=f"`{found.other.text}`{place}", note=found.note,
            )
