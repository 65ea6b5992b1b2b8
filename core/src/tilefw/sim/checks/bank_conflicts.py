"""bank_conflicts: counts the extra passes that shared memory needs because lanes of one pass want different words of one bank.

A pass serves as many lanes of a wave as fill all banks once: of 64 lanes that read 4 bytes from 32 banks each half of the wave.
Banks have 32 bits; how many there are is the chip's.
"""

from __future__ import annotations

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece

_BANK_BYTES = 4


class BankConflicts(Check):
    """Counts; it reports nothing."""

    name = "bank_conflicts"

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        if access.space in ("shared", "generic") and not access.engine:
            _count_conflicts(lanes, access.pieces, access.size)


def _count_conflicts(lanes: NumpyLanes, pieces: list[Piece], size: int) -> None:
    """Add this access's conflicts to the counter `bank_conflicts`."""
    for piece in pieces:
        if piece.region is not lanes.batch.memory.region("shared"):
            continue
        index = np.full(lanes.frame.shape, -1, dtype=np.int64)
        if piece.lanes is None:
            index[...] = piece.index % piece.region.stride
        else:
            index[piece.lanes] = piece.index % piece.region.stride
        cycles = _cycles(index.reshape(-1, lanes.wave_size), size, lanes.launch.chip.shared_banks)
        lanes.launch.diagnostics.counters.add("bank_conflicts", int(np.maximum(cycles - 1, 0).sum()))


def passes_of(index: Array, size: int, banks: int) -> Array:
    """How often shared memory is passed through for each row [waves, lanes] of byte offsets, -1 for lanes that do not take part."""
    return _cycles(index, size, banks).sum(axis=1)


def _cycles(index: Array, size: int, banks: int) -> Array:
    """The same by part of a row that fills all banks once: 1 without conflicts, 0 where nobody takes part."""
    words = max(1, size // _BANK_BYTES)
    per_pass = min(index.shape[1], max(1, banks * _BANK_BYTES // size))
    rows = index.reshape(-1, per_pass)
    first = np.where(rows >= 0, rows >> 2, -1)
    wanted = np.where(first[..., None] >= 0, first[..., None] + np.arange(words), -1).reshape(len(rows), per_pass * words)
    wanted = np.sort(wanted, axis=1)
    fresh = np.ones_like(wanted, dtype=np.bool_)
    fresh[:, 1:] = wanted[:, 1:] != wanted[:, :-1]
    fresh &= wanted >= 0
    row, column = np.nonzero(fresh)
    load = np.bincount(row * banks + wanted[row, column] % banks, minlength=len(rows) * banks).reshape(-1, banks)
    return load.max(axis=1).reshape(len(index), index.shape[1] // per_pass)
