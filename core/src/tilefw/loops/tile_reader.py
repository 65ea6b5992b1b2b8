"""A tile as a unit that takes products whole reads it: vectors of its rows, read or made where the unit wants them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from xdsl.ir import SSAValue

from tilefw.loops.buffers import TileBuffer
from tilefw.loops.index import Index, fixed
from tilefw.loops.index_map import Indices
from tilefw.loops.limits import Limits, limits_along
from tilefw.loops.lowering import TileLowering
from tilefw.loops.machine import V
from tilefw.tile import types


@dataclass(frozen=True, slots=True)
class LoweredTile(Generic[V]):
    """The last two dims of `value`, at the indices `front` of the others; from `buffer`, where it has been written there. `cast`
    makes elements of what they are in the product."""

    lowering: TileLowering[V]
    value: SSAValue
    front: Indices
    cast: Callable[[V], V]
    buffer: TileBuffer | None = None

    def each(
        self, rows: int, lanes: int, across: int, take: Callable[[V, V, Sequence[Sequence[V]]], None],
        first: V | int = 0, count: int = 0,
    ) -> None:
        """Inside loops over all groups of `rows` rows and `across` vectors, what `take` does with the numbers of their first row
        and column, and with the vectors of each row. Rows are those from `first` on, `count` of them, and counted from there."""
        lowering, elements = self.lowering, self.lowering.elements
        *_, height, width = types.shape_of(self.value.type)
        math = elements.math(lanes)
        limits: Limits = ()
        if self.buffer is None and lanes > 1:
            limits = limits_along((self.value,), len(self.front) + 1, elements.buffers)
        with lowering.counting(count or height, rows) as row:
            lines = [math.add(math.add(Index(first), row), fixed(k)) for k in range(rows)]

            def write(column: Index[V], inside: bool) -> None:
                places = [math.add(column, fixed(k * lanes)) for k in range(across)]
                if inside:
                    elements.inside.update((place.base, limits) for place in places if not isinstance(place.base, int))
                along = [Index(place.base, int(lanes > 1), place.divisor) for place in places]
                found = [[self._vector(line, place, lanes) for place in along] for line in lines]
                take(math.value(row), math.value(column), found)

            lowering.split_at(limits, width, lanes * across, write)

    def at(self, row: V | int, column: V | int, lanes: int) -> V:
        """One vector; its column is a multiple of its lanes."""
        with self.lowering.region():
            return self._vector(Index(row), Index(column, int(lanes > 1), lanes), lanes)

    def _vector(self, row: Index[V], column: Index[V], lanes: int) -> V:
        elements = self.lowering.elements
        index, math = (*self.front, row, column), elements.math(lanes)
        found = elements.at(self.value, index, math) if self.buffer is None else elements.read(self.buffer, index, math)
        found = self.cast(found)
        return found if found.lanes == lanes else self.lowering.machine.repeated(found, lanes)
