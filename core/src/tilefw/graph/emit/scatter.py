"""The kernels of a scatter: one stores the source, the next combines each update with the element that it goes to, by atomics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue

from tilefw.graph.dialect.combining_ops import numbers_of
from tilefw.graph.dialect.moving_ops import ScatterOp
from tilefw.graph.emit.pointwise import PointwiseText
from tilefw.graph.emit.tile_text import TileText, check_counted, place_text
from tilefw.graph.index_maps import rows_of
from tilefw.tile import types

_BLOCK = 256
_ATOMICS: Mapping[str, str] = {
    "addf": "add", "addi": "add", "maxs": "max", "mins": "min", "andi": "and", "ori": "or", "xori": "xor",
}


class ScatterText(TileText):
    """Each program has a block of updates."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], op: ScatterOp) -> None:
        super().__init__(name, inputs, {frozenset({"index"}): "inside"})
        self.before = PointwiseText("scattered", inputs, [op.source])
        shape = types.shape_of(op.updates.type)
        check_counted(shape)
        check_counted(types.shape_of(op.source.type))
        self.in_blocks(prod(shape), _BLOCK)
        self._combine(op, shape)

    def _combine(self, op: ScatterOp, shape: Sequence[int]) -> None:
        coordinates, extents = self.spread("index", shape), types.shape_of(op.source.type)
        found = [place_text(factors, offset, coordinates) for factors, offset in rows_of(op.map.data)]
        for axis, index in zip(numbers_of(op.axes), op.indices, strict=True):
            asked = self.value(index, coordinates)
            found[axis] = self.statement(f"{asked}.to(tl.int32)") if types.dtype_of(index.type).bits < 32 else asked
        places = tuple(found)
        tests = [f"({place} >= 0) & ({place} < {extent})" for place, extent in zip(places, extents, strict=True)]
        meant = self.statement(" & ".join(["inside", *tests]))
        mask, outside = meant, 0
        if op.trusted is not None:  # as of a gather: a stop, or an address that a simulator's check of bounds tells
            mask, outside = "inside", -1
            for axis in numbers_of(op.axes):
                self.require_element(tests[axis], axis, extents[axis], mask)
        where = self.statement(f"tl.where({meant}, {self.flat(extents, places)}, {outside}).to(tl.int32)")
        update = self.value(op.updates, coordinates)
        self.outputs.append("y0_ptr")
        self.lines.append(f"tl.atomic_{_ATOMICS[op.row.data]}(y0_ptr + {where}, {update}, mask={mask}, sem='relaxed')")
