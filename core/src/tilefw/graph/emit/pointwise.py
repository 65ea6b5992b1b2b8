"""The kernel of a pointwise group: one tile of element numbers; sums of products, if any, are added up term by term in a loop."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilefw.graph.emit.looped_sums import SummingText
from tilefw.graph.emit.tile_text import Coordinates, count_of
from tilefw.tile import types

_BLOCK = 256


class PointwiseText(SummingText):
    """Each program has a block of elements of the outputs, which have one number of elements."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        super().__init__(name, inputs, {frozenset({"index"}): "inside"})
        self.in_blocks(count_of(outputs), _BLOCK)
        for value in outputs:
            self.store(value, self.spread("index", types.shape_of(value.type)))

    def tile(self, coordinates: Coordinates) -> str:
        return f"[{self.elements}]"
