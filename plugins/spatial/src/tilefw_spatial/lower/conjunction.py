"""Conjunctions of a compile-time constant and a loaded mask: `inside & (index != padding)`."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw_spatial.lower.constant_tile import ConstantTile, both
from tilefw_spatial.lower.tiles import Data, Entry


def conjunction(row: str, entries: Sequence[Entry]) -> tuple[ConstantTile, Data] | None:
    """The constant part of a row's result and the one that depends on data; None where it is no such conjunction."""
    if row != "andi" or any(entry.dtype.bits != 1 for entry in entries):
        return None
    tile: ConstantTile | None = None
    data: list[Data] = []
    for entry in entries:
        part: Entry | None = entry
        if isinstance(entry, Data):
            part, rest = entry.apart or (None, entry)
            data.append(rest)
        if isinstance(part, ConstantTile):
            tile = part if tile is None else both(tile, part)
    return (tile, data[0]) if tile is not None and len(data) == 1 else None
