"""The kernel of a pointwise group: one tile of element numbers; sums of products, if any, are added up term by term in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from tilefw.api.integers import ceil_div
from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.emit.scalar_text import spelled
from tilefw.graph.emit.tile_text import Coordinates, NotOneKernelError, TileText, clamped, place_text
from tilefw.graph.index_maps import bounds, rows_of
from tilefw.runtime.jit import next_power_of_2
from tilefw.tile import types

_BLOCK = 256


class PointwiseText(TileText):
    """Each program has a block of elements of the outputs, which have one number of elements."""

    def __init__(self, name: str, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        super().__init__(name, inputs, {frozenset({"index"}): "inside"})
        counts = {prod(types.shape_of(value.type)) for value in outputs}
        if len(counts) != 1:
            raise NotOneKernelError("outputs of several sizes")
        (count,) = counts
        block = min(_BLOCK, next_power_of_2(max(count, 1)))
        self.grid, self.elements = ceil_div(count, block), block
        self.lines += [f"index = tl.program_id(0) * {block} + tl.arange(0, {block})", f"inside = index < {count}"]
        self._summed: set[Operation] = set()
        self._in_loop = False
        for value in outputs:
            self.store(value, self.spread("index", types.shape_of(value.type)))

    def special(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """A contraction, summed where it stands; once, as nobody wants it twice."""
        if not isinstance(op, ContractOp) or op in self._summed or self._in_loop:
            raise NotOneKernelError(f"{op.name} in kernel {self.name}")
        self._summed.add(op)
        kind = types.dtype_of(value.type)
        double = 64 in (kind.bits, types.dtype_of(op.left.type).bits)
        wide = spelled(kind.name) if not kind.is_float else "tl.float64" if double else "tl.float32"
        total = self.statement(f"tl.zeros([{self.elements}], {wide})")
        outer, known = self.lines, dict(self._known)
        self.lines, self._in_loop = [], True
        places = (*coordinates, *self.spread("step", op.summed))
        left, right = (
            self._side(operand, map.data, op, places) for operand, map in zip(op.operands, (op.left_map, op.right_map), strict=True)
        )
        inner, self.lines, self._known, self._in_loop = self.lines, outer, known, False
        inner.append(f"{total} += {left}.to({wide}) * {right}.to({wide})")
        self.lines += [f"for step in range({prod(op.summed)}):", *(f"    {line}" for line in inner)]
        return self.statement(f"{total}.to({spelled(kind.name)})")

    def body(self, block: Block, arguments: list[str], coordinates: Coordinates) -> list[str]:
        """Factors are not computed again in each term of a sum."""
        if self._in_loop and arguments:
            raise NotOneKernelError(f"a factor of a sum in kernel {self.name}")
        return super().body(block, arguments, coordinates)

    def _side(self, operand: SSAValue, map: Any, op: ContractOp, places: Coordinates) -> str:
        """One factor; 0 where the map leaves the tensor."""
        shape, found, tests = types.shape_of(operand.type), [], []
        for terms, extent in zip(rows_of(map), shape, strict=True):
            text = place_text(*terms, places)
            low, high = bounds(terms, op.extents)
            if low < 0 or high >= extent:
                tests.append(f"({text} >= 0) & ({text} < {extent})")
                text = clamped(self, text, extent)
            found.append(text)
        held = self.value(operand, tuple(found))
        return self.statement(f"tl.where({' & '.join(tests)}, {held}, 0)") if tests else held
