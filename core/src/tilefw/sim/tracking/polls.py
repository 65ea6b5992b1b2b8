"""Polls: loads and atomics that wait for what somebody else does to a word of memory, as far as they have found nothing new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilefw.sim.engine.frame import Frame
from tilefw.sim.floats import Array
from tilefw.sim.memory.access import Piece
from tilefw.sim.memory.regions import Region, gather
from tilefw.sim.program import Instruction

# Loads whose last values are kept; a launch that makes others meanwhile does more than poll.
_KEPT = 1024


@dataclass(frozen=True, slots=True)
class Poll:
    """One poll of `size` bytes a lane, by the lanes of a frame."""

    instruction: Instruction
    frame: Frame
    pieces: Sequence[Piece]
    size: int

    @property
    def key(self) -> tuple[int, bytes]:
        """What is the same for two polls of one word by one instruction."""
        places = (piece.region.base.to_bytes(8, "little") + piece.index.tobytes() for piece in self.pieces)
        return self.instruction.index, b"".join(places)

    def words(self) -> Iterator[tuple[int, Region, int]]:
        """The workgroup's number in its batch, the region, and the offset: each word of global memory once for a workgroup."""
        slots = np.broadcast_to(self.frame.group, self.frame.shape)
        for piece in self.pieces:
            if not piece.region.base:
                continue
            index = piece.offsets(self.frame.shape)
            mine = slots.reshape(-1) if piece.lanes is None else slots[piece.lanes]
            for slot, offset in dict.fromkeys(zip(mine.tolist(), index.reshape(-1).tolist(), strict=True)):
                yield slot, piece.region, offset

    def value(self, region: Region, offset: int) -> int:
        """What a word holds now."""
        return int(gather(region, np.array([offset], np.int64), self.size)[0])


class PolledLoads:
    """What strong loads found: one that finds the same at the same place again waits for a change."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, bytes], bytes] = {}

    def again(self, instruction: Instruction, pieces: Sequence[Piece], raw: Array) -> bool:
        """Whether the instruction has loaded `raw` from these places when it last loaded from them."""
        if len(pieces) != 1:
            return False
        key, value = (instruction.index, id(pieces[0].region), pieces[0].index.tobytes()), raw.tobytes()
        before = self._found.get(key)
        if before is None and len(self._found) >= _KEPT:
            self._found.clear()
        self._found[key] = value
        return before == value
