"""The kernel of a rows group: whole rows of a tensor in one tile; reductions, scans and sorts along them, what they are made of and
what uses them.

Softmax and the normalisations are such groups. The rows are those of the first one's operand: its axes number a row's
elements, its other dims the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from tilefw.graph.dialect.combining_ops import GraphReduceOp, GraphScanOp, numbers_of
from tilefw.graph.dialect.moving_ops import GraphSortOp
from tilefw.graph.emit.reductions import in_order, reduced, scanned
from tilefw.graph.emit.row_tiles import RowTilesText
from tilefw.graph.emit.tile_text import Coordinates, NotOneKernelError, squeezed
from tilefw.tile import types

Combining = GraphReduceOp | GraphScanOp | GraphSortOp
_TILE = 2048  # elements of a program's tile at most, unless a row alone has more
_LONGEST = 16384


class RowsText(RowTilesText):
    """The rows are those of `anchor`, a reduction, scan or sort."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], anchor: Combining) -> None:
        self.shape, self.axes = types.shape_of(anchor.operands[0].type), walked(anchor)
        along = [extent for dim, extent in enumerate(self.shape) if dim not in self.axes]
        self.length, self.count = prod(self.shape[axis] for axis in self.axes), prod(along)
        if self.length > _LONGEST:
            raise NotOneKernelError(f"rows of {self.length} elements")
        super().__init__(name, inputs, self.count, self.length, _TILE)
        self.padded = self.lengths["column"] != self.length
        self.rows = self.spread("row", along)
        self.across = self.spread("column", [self.shape[axis] for axis in self.axes])
        self.whole = self._whole(self.shape, self.axes)
        if self.axes == tuple(range(len(self.shape) - len(self.axes), len(self.shape))):
            self.remember(self.shape, self.whole, f"row * {self.length} + column")
        for value in outputs:
            self.store(value, self._places(types.shape_of(value.type)))

    def _whole(self, shape: Sequence[int], axes: Sequence[int]) -> Coordinates:
        rows, across = iter(self.rows), iter(self.across)
        return tuple(next(across) if dim in axes else next(rows) for dim in range(len(shape)))

    def _places(self, shape: tuple[int, ...]) -> Coordinates:
        if prod(shape) == prod(self.shape) and (self.length > 1 or len(shape) == len(self.shape)):
            return self.reshaped(self.shape, self.whole, shape)
        if prod(shape) == self.count:
            return self.spread("row", shape)
        raise NotOneKernelError("an output that is neither rows nor one element a row")

    def special(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """A reduction or a scan of the same rows, asked for at their places; or a contraction."""
        if not isinstance(op, Combining):
            return self.summed(op, value, coordinates)
        shape, axes = types.shape_of(op.operands[0].type), walked(op)
        if _turned(self.shape, self.axes) != _turned(shape, axes):
            raise NotOneKernelError("a reduction or a scan of other rows")
        kept = types.shape_of(value.type)
        places = self.reshaped(self.shape, self.whole, shape)
        due = self.spread("row", kept) if isinstance(op, GraphReduceOp) else places
        if squeezed(kept, coordinates) != squeezed(kept, due):
            raise NotOneKernelError("a reduction or a scan at other places")
        held = [self.value(operand, places) for operand in op.operands]
        if isinstance(op, GraphReduceOp):
            results = reduced(self, op, held, self.padded)
        elif isinstance(op, GraphScanOp):
            results = scanned(self, op, held, self.padded)
        else:
            results = in_order(self, op, held, self.padded)
        self._known.update({(result, coordinates): name for result, name in zip(op.results, results, strict=True)})
        return results[[result is value for result in op.results].index(True)]


def walked(op: Combining) -> tuple[int, ...]:
    """The axes that number the elements of a row."""
    return (op.axis.value.data,) if isinstance(op, GraphSortOp) else numbers_of(op.axes)


def _turned(shape: Sequence[int], axes: Sequence[int]) -> list[tuple[int, bool]]:
    """The dims other than 1, and whether each is reduced."""
    return [(extent, dim in axes) for dim, extent in enumerate(shape) if extent != 1]
