"""Runs tile IR text on the reference interpreter with NumPy arrays: what the tests of this room share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilefw.tile.reference.interpret import RefReport, run
from tilefw.tile.reference.memory import RefBuffer, RefMemory


def launch(text: Any, args: Sequence[Any], grid: Sequence[int] = (1,), **options: Any) -> tuple[RefReport, list[RefBuffer]]:
    """The report and the buffers of the array arguments; an int in a tuple `(n,)` is an uninitialised buffer of n bytes."""
    memory = RefMemory()
    buffers: list[RefBuffer] = []
    bound: list[Any] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            bound.append(memory.of_array(arg))
            buffers.append(bound[-1])
        elif isinstance(arg, tuple):
            bound.append(memory.allocate(arg[0]))
            buffers.append(bound[-1])
        else:
            bound.append(arg)
    return run(text, None, grid, bound, memory=memory, **options), buffers
