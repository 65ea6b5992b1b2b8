"""The kernel of a pointwise group with sums of products, as a convolution of each channel alone: tiles of lines along the last dim.

Neighbours along a line are neighbours in memory, also where a window reads. A tile of element numbers would divide each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilefw.graph.emit.row_tiles import RowTilesText
from tilefw.graph.emit.tile_text import NotOneKernelError, count_of
from tilefw.tile import types

_TILE = 256  # elements of a program's tile, unless a line alone has more
_LONGEST = 2048
_SHORTEST = 4


class LinesText(RowTilesText):
    """The rows are lines of the outputs."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        shape = types.shape_of(outputs[0].type)
        length = shape[-1] if shape else 0
        if not _SHORTEST <= length <= _LONGEST:
            raise NotOneKernelError("lines too short or too long")
        super().__init__(name, inputs, count_of(outputs) // length, length, _TILE)
        whole = (*self.spread("row", shape[:-1]), "column")
        self.remember(shape, whole, f"row * {length} + column")
        for value in outputs:
            self.store(value, self.reshaped(shape, whole, types.shape_of(value.type)))
