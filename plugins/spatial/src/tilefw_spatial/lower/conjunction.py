"""Truth values that are what the compiler knows and what data says together: `inside & (index != padding)`."""

from __future__ import annotations

from collections.abc import Sequence

from tilefw_spatial.lower.known import KnownTile, both
from tilefw_spatial.lower.tiles import Data, Entry


def conjunction(row: str, entries: Sequence[Entry]) -> tuple[KnownTile, Data] | None:
    """The known part of a row's result and the one that depends on data; None where it is no such conjunction."""
    if row != "andi" or any(entry.dtype.bits != 1 for entry in entries):
        return None
    known: KnownTile | None = None
    data: list[Data] = []
    for entry in entries:
        part: Entry | None = entry
        if isinstance(entry, Data):
            part, rest = entry.apart or (None, entry)
            data.append(rest)
        if isinstance(part, KnownTile):
            known = part if known is None else both(known, part)
    return (known, data[0]) if known is not None and len(data) == 1 else None
