"""Contractions that are no product of matrices: their few terms are added up in a loop, all elements of a kernel's tile at once."""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from tilefw.graph.dialect.combining_ops import ContractOp
from tilefw.graph.emit.scalar_text import spelled
from tilefw.graph.emit.tile_text import Coordinates, NotOneKernelError, TileText, clamped, place_text, squeezed
from tilefw.graph.index_maps import bounds, rows_of
from tilefw.tile import types

_WRITTEN_OUT = 32  # terms at most that are written one behind the other, with their places as numbers
_GATHERED = 16  # operations that a term takes whose factors do not lie beside each other: an address and a load for each element


class SummingText(TileText):
    """A kernel that has such contractions. A subclass says the shape of a tile at coordinates."""

    def tile(self, coordinates: Coordinates) -> str:
        """The shape of the tile of elements at these coordinates, as text."""
        raise NotImplementedError

    def special(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """A contraction."""
        return self.summed(op, value, coordinates)

    def summed(self, op: Operation, value: SSAValue, coordinates: Coordinates) -> str:
        """A contraction's elements, summed where they are asked for; once, as nobody wants them twice. Raises NotOneKernelError for
        any other op, and within another sum."""
        done, loop = self.sums
        if not isinstance(op, ContractOp) or op in done or loop:
            raise NotOneKernelError(f"{op.name} in kernel {self.name}")
        kind = types.dtype_of(value.type)
        double = 64 in (kind.bits, types.dtype_of(op.left.type).bits)
        wide = spelled(kind.name) if not kind.is_float else "tl.float64" if double else "tl.float32"
        total = self.statement(f"tl.zeros({self.tile(coordinates)}, {wide})")
        count, outer, known = prod(op.summed), self.lines, dict(self._known)
        self.lines, self.sums, self.trips = [], (done | {op}, True), count
        # `step` is gone behind the loop: no tensor of one element is to be remembered as walked by it.
        terms = self.spread("step", op.summed) if count > 1 else ("0",) * len(op.summed)
        places = (*coordinates, *terms)
        left, right = (
            self._side(operand, map.data, op, places) for operand, map in zip(op.operands, (op.left_map, op.right_map), strict=True)
        )
        inner, self.lines, self._known, self.sums, self.trips = self.lines, outer, known, (done | {op}, False), 1
        if _is_divided(op, coordinates):
            self.scattered.add(op)
        self.operations += count * self.count_at(coordinates) * (_GATHERED if op in self.scattered else 1)
        inner.append(f"{total} += {left}.to({wide}) * {right}.to({wide})")
        steps = f"tl.static_range({count})" if count <= _WRITTEN_OUT else f"range({count})"
        self.lines += [f"for step in {steps}:", *(f"    {line}" for line in inner)]
        return self.statement(f"{total}.to({spelled(kind.name)})")

    def body(self, block: Block, arguments: list[str], coordinates: Coordinates) -> list[str]:
        """Factors are not computed again in each term of a sum."""
        if self.sums[1] and arguments:
            raise NotOneKernelError(f"a factor of a sum in kernel {self.name}")
        return super().body(block, arguments, coordinates)

    def _side(self, operand: SSAValue, map: Any, op: ContractOp, places: Coordinates) -> str:
        """One factor; 0 where the map leaves the tensor."""
        shape, found, tests, leaving = types.shape_of(operand.type), [], [], []
        for dim, (terms, extent) in enumerate(zip(rows_of(map), shape, strict=True)):
            text = place_text(*terms, places)
            low, high = bounds(terms, op.extents)
            if low < 0 or high >= extent:
                tests += [f"({text} >= 0)"] * (low < 0) + [f"({text} < {extent})"] * (high >= extent)
                leaving.append(dim)
            found.append(text)
        if tests and operand in self.pointers:  # neighbours stay neighbours where the mask keeps off what is outside
            return self.load(self.pointers[operand], operand, tuple(found), tests)
        for dim in leaving:
            found[dim] = clamped(self, found[dim], shape[dim])
        held = self.value(operand, tuple(found))
        return self.statement(f"tl.where({' & '.join(tests)}, {held}, 0)") if tests else held


def _is_divided(op: ContractOp, coordinates: Coordinates) -> bool:
    """Whether neighbours along the last dim are told by dividing a number, so that they are not known to be neighbours."""
    _, texts = squeezed(types.shape_of(op.result.type), coordinates)
    return bool(texts) and any(sign in texts[-1] for sign in ("//", "%"))
