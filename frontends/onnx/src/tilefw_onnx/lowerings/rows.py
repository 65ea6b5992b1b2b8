"""Rows of an array: some axes number the rows, the others a row's elements; a program has a tile of whole rows.

Reductions, softmax and the normalisations are written over such tiles: `row` is a column vector of row numbers, `column` a row
vector of numbers within a row, and any operand that broadcasts to the array has its offset from the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tilefw.api.errors import UnsupportedError
from tilefw.api.integers import ceil_div
from tilefw_onnx.lowerings.node import Node, NodeTensor
from tilefw_onnx.lowerings.places import View, axis_of, contiguous, next_power_of_2
from tilefw_onnx.lowerings.text import KernelText

_TILE = 2048  # elements of a program's tile at most, unless a row alone has more
_LONGEST = 16384


@dataclass(frozen=True, slots=True)
class RowView:
    """An array of `shape` whose axes `across` number a row's elements, and the others the rows."""

    shape: tuple[int, ...]
    across: tuple[int, ...]

    @property
    def along(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.across)

    @property
    def count(self) -> int:
        return prod(self.shape[axis] for axis in self.along)

    @property
    def length(self) -> int:
        return prod(self.shape[axis] for axis in self.across)

    def begin(self, node: Node) -> KernelText:
        """A kernel whose body has `row`, `column`, `known` (which rows there are) and `inside` (which elements)."""
        width = next_power_of_2(self.length)
        if width > _LONGEST:
            note = f"a row has {self.length} elements; kernels of this pack hold one in a tile of at most {_LONGEST}"
            raise UnsupportedError(f"{node.operator} along rows that long", code="TFW0992", note=note)
        height = min(next_power_of_2(self.count), max(1, _TILE // width))
        text = KernelText(node, grid=(max(1, ceil_div(self.count, height)), 1, 1), elements=height * width)
        text.add(
            f"row = (tl.program_id(0) * {height} + tl.arange(0, {height}))[:, None]",
            f"column = tl.arange(0, {width})[None, :]",
            f"known = row < {self.count}",
            f"inside = known & (column < {self.length})",
        )
        return text

    def offset(self, view: View) -> str:
        """The offset of each element of the tile in an operand, seen through `view`, which broadcasts to the array."""
        whole = view.broadcast(self.shape)
        row = View(whole.take(self.along).dims, view.start).offset("row")
        column = View(whole.take(self.across).dims).offset("column")
        return " + ".join(part for part in (row, column) if part != "0") or "row * 0"  # one element for all, as a tile

    def offset_in(self, tensor: NodeTensor) -> str:
        """The offset of each element of the tile in `tensor`, which broadcasts to the array."""
        return self.offset(contiguous(tensor.shape))

    def load(self, text: KernelText, tensor: NodeTensor, other: str = "") -> str:
        """Load an operand for the whole tile; 16-bit floats as fp32. Returns its variable."""
        return text.load(tensor, self.offset_in(tensor), "inside", other, wide=True)


def rows_of(tensor: NodeTensor, axes: Iterable[int]) -> RowView:
    rank = len(tensor.shape)
    return RowView(tensor.shape, tuple(sorted(axis_of(axis, rank) for axis in axes)))


def typed(text: KernelText, tensor: NodeTensor, value: str) -> str:
    """`value` in the element type of an output."""
    return f"({value}).to({text.pointer(tensor)}.dtype.element_ty)"
