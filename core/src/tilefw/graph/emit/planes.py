"""The kernel of a pointwise group with sums of products whose windows lie in planes, as a convolution of each channel alone.

A program has a tile of lines of one plane: only the plane's number is divided, once a program, so that whatever a window reads is a
block of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from tilefw.graph.emit.row_tiles import RowTilesText
from tilefw.graph.emit.tile_text import NotOneKernelError, count_of
from tilefw.tile import types

_TILE = 256  # elements of a program's tile, unless a line alone has more
_LONGEST = 2048
_SMALLEST = 32  # elements of a plane: below, programs would have too little to do


class PlanesText(RowTilesText):
    """The rows are lines of the outputs' planes, which are their last two dims."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        shape = types.shape_of(outputs[0].type)
        if len(shape) < 3 or min(shape[-2:]) < 2 or shape[-1] > _LONGEST or prod(shape[-2:]) < _SMALLEST:
            raise NotOneKernelError("planes too small, or lines too long")
        *leading, height, width = shape
        super().__init__(name, inputs, height, width, _TILE, planes=count_of(outputs) // (height * width))
        whole = (*self.spread("plane", leading), "row", "column")
        self.remember(shape, whole, f"plane * {height * width} + row * {width} + column")
        for value in outputs:
            self.store(value, self.reshaped(shape, whole, types.shape_of(value.type)))
