"""The kernel of a pointwise group with sums of products whose windows lie in planes, as a convolution of each channel alone.

A program has a tile of lines of one plane: only the plane's number is divided, once a program, so that whatever a window reads is a
block of memory.
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
_SMALLEST = 32  # elements of a plane: below, programs would have too little to do


class PlanesText(SummingText):
    """`plane` is the number of the program's plane, `row` a column vector of its lines, `column` numbers the elements of one."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        shape = types.shape_of(outputs[0].type)
        _check(shape, outputs)
        *leading, height, width = shape
        rows, row, column = frozenset({"row"}), "row", "column"
        super().__init__(name, inputs, {rows | {column}: "inside", rows: "known", frozenset({column}): "within"})
        self.lengths[column] = next_power_of_2(width)
        self.lengths[row] = max(1, min(next_power_of_2(height), _TILE // self.lengths[column]))
        tiles = ceil_div(height, self.lengths[row])
        self.grid, self.elements = prod(leading) * tiles, prod(self.lengths.values())
        first = f"tl.program_id(0) % {tiles} * {self.lengths[row]} + " if tiles > 1 else ""
        self.lines += [
            f"plane = tl.program_id(0) // {tiles}" if tiles > 1 else "plane = tl.program_id(0)",
            f"row = ({first}tl.arange(0, {self.lengths[row]}))[:, None]", f"column = tl.arange(0, {self.lengths[column]})[None, :]",
            f"known = row < {height}", f"within = column < {width}", "inside = known & within",
        ]
        whole = (*self.spread("plane", leading), row, column)
        self.remember(shape, whole, f"plane * {height * width} + row * {width} + column")
        for value in outputs:
            self.store(value, self.reshaped(shape, whole, types.shape_of(value.type)))

    def tile(self, coordinates: Coordinates) -> str:
        used = self.used(*coordinates)
        return f"[{', '.join(str(self.lengths[word] if word in used else 1) for word in ('row', 'column'))}]"

    def special(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """A contraction."""
        return self.summed(op, value, coordinates)


def _check(shape: Sequence[int], outputs: Sequence[SSAValue]) -> None:
    """Raise NotOneKernelError where the outputs have no planes of such a size."""
    if len(shape) < 3 or min(shape[-2:]) < 2 or shape[-1] > _LONGEST or prod(shape[-2:]) < _SMALLEST:
        raise NotOneKernelError("planes too small, or lines too long")
    if any(prod(types.shape_of(value.type)) != prod(shape) for value in outputs):
        raise NotOneKernelError("outputs of several sizes")
