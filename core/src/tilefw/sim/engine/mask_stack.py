"""The lane masks of waves with one program counter: which lanes are awake, and which were before each push not yet popped."""

from __future__ import annotations

import numpy as np

from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array

_ONE = np.uint64(1)


class MaskStack:
    """Of one batch. Lanes `awake` ([workgroups, waves, lanes]) are awake at the bottom; a wave pushes at most `depth` entries.

    A lane's stack is one word: bit 0 tells whether the lane is awake now, bit n whether it was n pushes ago.
    """

    def __init__(self, awake: Array, depth: int) -> None:
        self._bits: Array = awake.astype(np.uint64)
        self._pushes: Array = np.zeros(awake.shape[:2], dtype=np.int64)
        self._depth = depth

    def awake(self, frame: Frame) -> Array:
        """The lanes of a frame that are awake."""
        return (self._bits[frame.group, frame.wave, frame.lane] & _ONE).astype(np.bool_)

    def select(self, frame: Frame) -> None:
        """Narrow what executes in a frame, whole waves so far, to the lanes that are awake."""
        waves, awake = frame.view.active, self.awake(frame)
        if awake.all():
            frame.active, frame.merge = waves, frame.wave_merge
            return
        frame.active = awake if waves is None else awake & waves
        frame.merge = awake if frame.wave_merge is None else awake & frame.wave_merge

    def full(self, frame: Frame) -> Array:
        """Waves whose stack takes no further entry."""
        return self._pushes[frame.group, frame.wave] >= self._depth

    def empty(self, frame: Frame) -> Array:
        """Waves that have pushed nothing that is not popped."""
        return self._pushes[frame.group, frame.wave] == 0

    def push(self, frame: Frame, condition: Array) -> None:
        """Of the lanes that are awake those stay so in which the condition holds."""
        place = frame.group, frame.wave, frame.lane
        bits = self._bits[place]
        self._change(frame, place, bits << _ONE | (bits & _ONE & condition.astype(np.uint64)), 1)

    def pop(self, frame: Frame) -> None:
        """The lanes are awake that were before the last push."""
        place = frame.group, frame.wave, frame.lane
        self._change(frame, place, self._bits[place] >> _ONE, -1)

    def _change(self, frame: Frame, place: tuple[Array, Array, Array], bits: Array, pushes: int) -> None:
        """For the waves of the frame that execute."""
        waves = frame.view.active
        self._bits[place] = bits if waves is None else np.where(waves, bits, self._bits[place])
        self._pushes[place[:2]] += pushes if waves is None else np.where(waves, pushes, 0)
        self.select(frame)
