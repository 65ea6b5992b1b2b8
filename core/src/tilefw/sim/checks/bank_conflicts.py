"""bank_conflicts: counts the extra passes that shared memory needs because lanes of one pass want different words of one bank.

A pass serves as many lanes of a wave as fill all banks once: of 64 lanes that read 4 bytes from 32 banks each half of the wave.
Banks have 32 bits; how many there are is the chip's.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tilefw.sim.algebra.lanes import NumpyLanes
from tilefw.sim.checks.check import Check
from tilefw.sim.compiled.bank_passes import WORDS, passes
from tilefw.sim.compiled.pricing import LazyFunction, address_of, numbers
from tilefw.sim.engine.state import LaunchState
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Access, Piece

BANK_BYTES = 4


class BankConflicts(Check):
    """Counts; it reports nothing."""

    name = "bank_conflicts"

    def __init__(self, launch: LaunchState) -> None:
        super().__init__(launch)
        self._compiled = LazyFunction(passes, 0, len(WORDS))

    def access(self, lanes: NumpyLanes, access: Access) -> None:
        if access.space not in ("shared", "generic") or access.engine:
            return
        for piece in access.pieces:
            if piece.region is lanes.batch.memory.region("shared"):
                if self._compiled.ready():
                    self._add(self._compiled_conflicts(lanes, piece, access.size))
                else:
                    self._compiled.plainly(partial(self._plain, lanes, piece, access.size))

    def _plain(self, lanes: NumpyLanes, piece: Piece, size: int) -> None:
        self._add(_conflicts(lanes, piece, size))

    def _add(self, conflicts: int) -> None:
        self.launch.diagnostics.counters.add("bank_conflicts", conflicts)

    def _compiled_conflicts(self, lanes: NumpyLanes, piece: Piece, size: int) -> int:
        """What `_conflicts` gives."""
        banks, words = lanes.launch.chip.shared_banks, _words(size)
        together = _lanes_of_pass(lanes.frame.shape[2], size, banks)
        everyone = piece.lanes is None
        index = np.ascontiguousarray(np.broadcast_to(piece.index, lanes.frame.shape) if everyone else piece.index)
        threads = numbers(index.size) if piece.lanes is None else np.flatnonzero(piece.lanes)
        counts = np.empty(banks, dtype=np.uint32)
        wanted, extra = np.empty(banks * together * words, dtype=np.int64), np.zeros(1, dtype=np.int64)
        self._compiled.call(
            [
                address_of(index), address_of(threads), piece.region.stride, together, banks, words, address_of(counts),
                address_of(wanted), address_of(extra),
            ],
            index.size, 0,
        )
        return int(extra[0])


def _conflicts(lanes: NumpyLanes, piece: Piece, size: int) -> int:
    """The extra passes of an access to shared memory."""
    index = np.full(lanes.frame.shape, -1, dtype=np.int64)
    if piece.lanes is None:
        index[...] = piece.index % piece.region.stride
    else:
        index[piece.lanes] = piece.index % piece.region.stride
    cycles = _cycles(index.reshape(-1, lanes.frame.shape[2]), size, lanes.launch.chip.shared_banks)
    return int(np.maximum(cycles - 1, 0).sum())


def _words(size: int) -> int:
    return max(1, size // BANK_BYTES)


def _lanes_of_pass(lanes: int, size: int, banks: int) -> int:
    return min(lanes, max(1, banks * BANK_BYTES // size))


def passes_of(index: Array, size: int, banks: int) -> Array:
    """How often shared memory is passed through for each row [waves, lanes] of byte offsets, -1 for lanes that do not take part."""
    return _cycles(index, size, banks).sum(axis=1)


def _cycles(index: Array, size: int, banks: int) -> Array:
    """The same by part of a row that fills all banks once: 1 without conflicts, 0 where nobody takes part."""
    words, per_pass = _words(size), _lanes_of_pass(index.shape[1], size, banks)
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
