"""The kernel of a pointwise group with sums of products, as a convolution of each channel alone: tiles of lines along the last dim.

Neighbours along a line are neighbours in memory, also where a window reads. A tile of element numbers would divide each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from tilefw.api.integers import ceil_div
from tilefw.graph.emit.looped_sums import SummingText
from tilefw.graph.emit.tile_text import Coordinates, NotOneKernelError
from tilefw.runtime.jit import next_power_of_2
from tilefw.tile import types

_TILE = 256  # elements of a program's tile, unless a line alone has more
_LONGEST = 2048
_SHORTEST = 4


class LinesText(SummingText):
    """Each program has a tile of whole lines: `row` is a column vector of their numbers, `column` numbers a line's elements."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        both = frozenset({"row", "column"})
        masks = {both: "inside", frozenset({"row"}): "known", frozenset({"column"}): "within"}
        super().__init__(name, inputs, masks)
        shape = types.shape_of(outputs[0].type)
        length = shape[-1] if shape else 0
        if not _SHORTEST <= length <= _LONGEST or any(prod(types.shape_of(value.type)) != prod(shape) for value in outputs):
            raise NotOneKernelError("lines too short or too long, or outputs of several sizes")
        count, width = prod(shape[:-1]), next_power_of_2(length)
        height = max(1, min(next_power_of_2(max(count, 1)), _TILE // width))
        self.grid, self.elements = ceil_div(count, height), height * width
        self.lengths.update(row=height, column=width)
        self.lines += [
            f"row = (tl.program_id(0) * {height} + tl.arange(0, {height}))[:, None]", f"column = tl.arange(0, {width})[None, :]",
            f"known = row < {count}", f"within = column < {length}", "inside = known & within",
        ]
        whole = (*self.spread("row", shape[:-1]), "column")
        self.remember(shape, whole, f"row * {length} + column")
        for value in outputs:
            self.store(value, self.reshaped(shape, whole, types.shape_of(value.type)))

    def tile(self, coordinates: Coordinates) -> str:
        used = self.used(*coordinates)
        return f"[{self.lengths['row'] if 'row' in used else 1}, {self.lengths['column'] if 'column' in used else 1}]"

    def special(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """A contraction."""
        return self.summed(op, value, coordinates)
