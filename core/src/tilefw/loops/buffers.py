"""The program's own memory: buffers of stored tiles, given addresses where none is in use any more."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tilefw.api.dtypes import DTYPES
from tilefw.api.errors import CapacityError
from tilefw.api.integers import round_up

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
_BYTES = {d.ir: max(1, d.storage_bits // 8) for d in DTYPES.values()}


def bytes_of(element: str) -> int:
    """How many bytes an element takes in memory."""
    return _BYTES[element]


@dataclass(frozen=True, slots=True)
class TileBuffer:
    """A tile in the program's own memory, row by row, from byte `offset` on. With a `panel`, as many columns of all rows come
    before the next columns. Where `moved` is there, an i64 of the machine, it begins so many bytes further."""

    offset: int
    shape: tuple[int, ...]
    element: str
    panel: int = 0
    moved: Any = None

    @property
    def nbytes(self) -> int:
        """Its size."""
        return prod(self.shape) * bytes_of(self.element)


class Scratch:
    """Gives buffers their offsets. A place is free again once the position that its buffer was asked until has passed."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.high = 0
        self._live: list[tuple[int, int, TileBuffer, str]] = []  # begin, last position, buffer, label

    def allocate(
        self, shape: tuple[int, ...], element: str, now: int, until: int, label: str = "", panel: int = 0
    ) -> TileBuffer:
        """A buffer in use from position `now` to `until`. Raises CapacityError TFW0659, with what is in use, where no room is."""
        self._live = [entry for entry in self._live if entry[1] >= now]
        size = round_up(max(1, prod(shape) * bytes_of(element)), ALIGNMENT)
        offset = 0
        for begin, _, buffer, _ in sorted(self._live, key=lambda entry: entry[0]):
            if offset + size <= begin:
                break
            offset = max(offset, begin + round_up(max(1, buffer.nbytes), ALIGNMENT))
        made = TileBuffer(offset, shape, element, panel)
        if self.capacity is not None and offset + size > self.capacity:
            listed = ", ".join(f"{name or 'a tile'} {list(b.shape)} of {b.element}" for _, _, b, name in self._live)
            raise CapacityError(
                f"the program's tiles need {offset + size} bytes at once, and there are {self.capacity}", code="TFW0659",
                note=f"in use: {listed}" if listed else None, help="smaller tiles take less",
                resource="memory of its own", needed=offset + size, available=self.capacity, unit="bytes",
            )
        self._live.append((offset, until, made, label))
        self.high = max(self.high, offset + size)
        return made
