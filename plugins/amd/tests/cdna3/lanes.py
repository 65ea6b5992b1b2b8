"""Runs the meaning of a row on NumPy arrays: one wave or several, without encoding and without a program around it."""

from __future__ import annotations

from typing import Any

import numpy as np
from served import having

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.testing.executing import executing_lanes
from tilefw_amd.chips import Chip
from tilefw_amd.isa.row import Mode, Modifiers
from tilefw_amd.isa.set import instruction_set

WAVE = 64


def lanes(waves: int = 1, hardware: bool = False) -> NumpyLanes:
    return executing_lanes(WAVE, waves, hardware=hardware)


def meaning(name: str, mode: Mode | None = None, chip: Chip | None = None, **modifiers: Any) -> Any:
    """The row's meaning on a chip, the first that has it where none is named, with those modifiers written."""
    given, chip = Modifiers(modifiers), chip or having(name)
    given.mode, given.form, given.chip = mode or Mode(), None, chip
    return instruction_set(chip).rows[name].build(given)


def registers(words: np.ndarray) -> tuple[np.ndarray, ...]:
    """[waves, registers, lanes] of 32 bits as values of the algebra."""
    return tuple(np.ascontiguousarray(words[None, :, i, :], dtype=np.uint32) for i in range(words.shape[1]))


def stacked(values: Any) -> np.ndarray:
    """The inverse of `registers`."""
    values = values if isinstance(values, tuple) else (values,)
    return np.stack([np.broadcast_to(v[0], (v.shape[1], WAVE)) for v in values], axis=1)
