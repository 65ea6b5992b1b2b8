"""One access of the lanes that run now, resolved to regions: what checks that watch memory are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tilefw.sim.floats import Array
from tilefw.sim.memory.regions import Region

AccessKind = Literal["read", "write", "atomic"]


@dataclass(slots=True)
class Piece:
    """Lanes of one access that lie in one region: byte offsets into its data; `lanes` None when it is every lane and the
    offsets keep the address's own (broadcastable) shape, else a full mask whose true lanes the flat offsets belong to. `turns`: the
    flat offsets in the order in which an atomic's lanes go, None where that is their own."""

    region: Region
    index: Array
    lanes: Array | None
    turns: Array | None = None

    def offsets(self, frame: tuple[int, ...]) -> Array:
        """The flat offsets by lane, in a frame of this shape."""
        return np.broadcast_to(self.index, frame).reshape(-1) if self.lanes is None else self.index


@dataclass(slots=True)
class Access:
    """A load, store or atomic of `size` bytes in each acting lane. `values` are what a store writes, of the frame's shape or one
    that broadcasts to it; None for loads and atomics. `space` is the one that the instruction names ("generic" included).
    `element`: the bytes that an atomic takes as one, 0 of others. `engine`: a unit of its own makes it for the waves, chunk by
    chunk spread over their lanes, and sees memory by its own view."""

    space: str
    pieces: list[Piece]
    size: int
    kind: AccessKind
    order: str = "weak"
    scope: str = "workgroup"
    values: Array | None = None
    engine: bool = False
    element: int = 0

    @property
    def strong(self) -> bool:
        """Whether its memory order is more than weak."""
        return self.order != "weak"
