"""Kernels by tiles of rows: each program has a tile of whole rows, of a tensor or of lines along its last dim."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilefw.api.integers import ceil_div
from tilefw.graph.emit.looped_sums import SummingText
from tilefw.graph.emit.tile_text import Coordinates
from tilefw.runtime.jit import next_power_of_2


class RowTilesText(SummingText):
    """`row` is a column vector of the numbers of `count` rows, `column` numbers the elements of one, of which it has `length`. A
    tile has at most `most` elements, unless a row alone has more. With `planes` there are so many times `count` rows, and a
    program's are of one plane, whose number is `plane`."""

    def __init__(
        self, name: str, inputs: Sequence[SSAValue], count: int, length: int, most: int, planes: int | None = None
    ) -> None:
        both = frozenset({"row", "column"})
        super().__init__(name, inputs, {both: "inside", frozenset({"row"}): "known", frozenset({"column"}): "within"})
        width = next_power_of_2(length)
        height = max(1, min(next_power_of_2(max(count, 1)), most // width))
        tiles = ceil_div(count, height)
        self.grid, self.elements = tiles, height * width
        self.lengths.update(row=height, column=width)
        first = f"tl.program_id(0) * {height} + "
        if planes is not None:
            self.grid *= planes
            self.lines.append(f"plane = tl.program_id(0) // {tiles}" if tiles > 1 else "plane = tl.program_id(0)")
            first = f"tl.program_id(0) % {tiles} * {height} + " if tiles > 1 else ""
        self.lines += [
            f"row = ({first}tl.arange(0, {height}))[:, None]", f"column = tl.arange(0, {width})[None, :]",
            f"known = row < {count}", f"within = column < {length}", "inside = known & within",
        ]

    def tile(self, coordinates: Coordinates) -> str:
        used = self.used(*coordinates)
        return f"[{self.lengths['row'] if 'row' in used else 1}, {self.lengths['column'] if 'column' in used else 1}]"
