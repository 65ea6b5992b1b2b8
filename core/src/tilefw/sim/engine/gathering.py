"""Waves that meet before they execute an instruction together (`Instruction.gathers`): the first to come wait for their group's
others.

Whole groups that come on one path pass at once. The path that goes on stays whole: under a seed its waves are not parted
again before it splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilefw.sim.engine.batch import Batch
from tilefw.sim.engine.divergence import DivergentPath
from tilefw.sim.floats import Array
from tilefw.sim.program import Instruction, Meeting


@dataclass(slots=True)
class _Arrived:
    """Threads `mask` that have come to `instruction` and go on at block `following` as whole groups of `waves`."""

    mask: Array
    instruction: Instruction
    waves: int
    following: int
    stack: tuple[int, ...]
    part: int


class Gathering:
    """The meetings of one batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._observers = batch.launch.diagnostics.observers
        self._meetings: list[_Arrived] = []

    @property
    def empty(self) -> bool:
        return not self._meetings

    def waiting(self) -> list[tuple[Instruction, Array]]:
        """Who waits, and at which instruction."""
        return [(meeting.instruction, meeting.mask) for meeting in self._meetings]

    def arrive(self, path: DivergentPath, instruction: Instruction, flow: Meeting) -> int | None:
        """A path comes to a meeting; the next block where nobody of its groups is missing."""
        batch = self._batch
        mask = batch.mask_of(path)
        for observe in self._observers.arrived:
            observe(batch, mask, instruction)
        following = path.block + 1
        meeting = next((m for m in self._meetings if (m.following, m.stack) == (following, path.stack)), None)
        if meeting is None:
            whole = self._whole(mask, flow.waves)
            if (whole == mask).all():
                return following
            meeting = _Arrived(mask & ~whole, instruction, flow.waves, following, path.stack, path.part)
            self._meetings.append(meeting)
            self._release(meeting, whole)
            return None
        together = meeting.mask | mask
        whole = self._whole(together, flow.waves)
        meeting.mask = together & ~whole
        meeting.part = path.part if path.part == meeting.part else 0
        self._release(meeting, whole)
        return None

    def _release(self, meeting: _Arrived, whole: Array) -> None:
        if whole.any():
            everyone = None if whole.all() else whole
            self._batch.paths.append(DivergentPath(meeting.following, everyone, meeting.stack, part=meeting.part))
        self._meetings = [m for m in self._meetings if m.mask.any()]

    def _whole(self, mask: Array, waves: int) -> Array:
        """What of a mask is groups of `waves` waves with all their threads."""
        groups, count, lanes = mask.shape
        last = count - count % waves
        expected = self._batch.alive[:, :last].reshape(groups, -1, waves * lanes)
        here = mask[:, :last].reshape(expected.shape)
        complete = (here == expected).all(axis=2) & here.any(axis=2)
        whole = np.zeros_like(mask)
        whole[:, :last] = mask[:, :last] & np.repeat(complete, waves, axis=1)[:, :, None]
        return whole
