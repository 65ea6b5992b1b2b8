"""Vector rows on columns of patterns: any number of elements, a lane each."""

from __future__ import annotations

from typing import Any

import numpy as np
from served import ISAS

from cdna3.lanes import WAVE, lanes, meaning
from tilefw.api.integers import ceil_div
from tilefw_amd.chips import Chip
from tilefw_amd.isa.row import Mode

CHAPTERS = ("vector_", "compare")
VECTOR = {
    name: row for isa in reversed(ISAS) for name, row in isa.rows.items()
    if getattr(row.build, "func", row.build).__module__.rpartition(".")[2].startswith(CHAPTERS)
}
"""The vector rows of all chips, those of the first where several have one; packed and matrix instructions aside."""


Column = np.ndarray | tuple[np.ndarray, ...]
"""Unsigned patterns or bool, and for a wide operand a tuple of its registers."""


def run(name: str, *columns: Column, mode: Mode | None = None, chip: Chip | None = None, **modifiers: Any) -> Any:
    """The results for columns of patterns: one column, or a tuple of them."""
    function = meaning(name, mode, chip, **modifiers)
    count = len(columns[0][0] if isinstance(columns[0], tuple) else columns[0])
    waves = ceil_div(count, WAVE)
    with np.errstate(all="ignore"):
        found = function(lanes(waves), *(_waves(c, waves) for c in columns))
    if not isinstance(found, tuple):
        return _column(found, waves, count)
    return tuple(_column(f, waves, count) for f in found)


def _waves(column: np.ndarray, waves: int) -> Any:
    if isinstance(column, tuple):
        return tuple(_waves(c, waves) for c in column)
    padded = np.zeros(waves * WAVE, column.dtype)
    padded[: len(column)] = column
    return padded.reshape(1, waves, WAVE)


def _column(found: np.ndarray, waves: int, count: int) -> np.ndarray:
    return np.broadcast_to(found, (1, waves, WAVE)).reshape(-1)[:count]
