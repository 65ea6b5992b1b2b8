"""Structural ops move elements and compute nothing. Each declares its traits once, in its class; passes and targets read them.

`tile.flip` reverses a dim. Its class tells which elements the result has (`elements`). From that alone follow its meaning in the
reference interpreter, its constants, the layouts of lanes that it takes and gives, and how a machine of streams moves it. For
machines that make code of indices it says them once more (`operand_index`). A class may add what more is known: what the axis
analysis keeps (`axis_info`), which ops it undoes or joins (`same_values`, `merged`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilefw.tile import types
from tilefw.tile.dialect.axis_info import AxisInfo, any_element, highest, lowest
from tilefw.tile.dialect.base import PURE, TileOp

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


I = TypeVar("I")


class IndexAlgebra(Protocol[I]):
    """Arithmetic on indices that are not negative: numbers, or what code computes them in."""

    def fixed(self, number: int) -> I:
        """The index that is a number."""
        ...

    def mirrored(self, index: I, size: int) -> I:
        """`size` - 1 - `index`."""
        ...

    def regrouped(self, indices: Sequence[I], old: Shape, new: Shape) -> Sequence[I]:
        """The indices in a tile of shape `new` of what has `indices` in one of shape `old`, row by row."""
        ...


class StructuralOp(TileOp):
    """An op without effect whose results are elements of its operands, moved or repeated."""

    traits = PURE
    capability: ClassVar[str | None] = None
    """What a target must serve for the op, as in `api/capabilities.py` (`shape.flip`); None when every target has it."""

    @property
    def moved_operands(self) -> Sequence[SSAValue]:
        """The operands whose elements the results have: all of them, unless some say only which elements move."""
        return self._operands

    def elements(self, *parts: Array) -> Sequence[Array]:
        """The results for operands given as arrays [programs, *shape]; the first dim counts programs and stays as it is."""
        raise NotImplementedError(self.name)

    def operand_index(self, at: Sequence[I], algebra: IndexAlgebra[I]) -> Sequence[I] | None:
        """Where in the one operand the element stands that the one result has at `at`, an index a dim: what `elements` says, for
        machines that make code of it. None for an op with several operands or results."""
        return None

    def axis_info(self, *operands: AxisInfo) -> AxisInfo:
        """What is known of each result: by default the range of all elements, and what divides each of them."""
        first, *others = operands
        low, high, divisor = first.low, first.high, any_element(first)
        for other in others:
            low, high, divisor = lowest(low, other.low), highest(high, other.high), min(divisor, any_element(other))
        ones = (1,) * max(1, len(types.shape_of(self.results[0].type)))
        return AxisInfo((divisor,) * len(ones), ones, ones, low, high)

    def same_values(self) -> Sequence[SSAValue] | None:
        """Values that exist already and equal the results, as the source of a double flip does; None when there are none."""
        return None

    def merged(self) -> Operation | None:
        """One op, not yet inserted, that does what this op and the one before it do; None when there is none."""
        return None


@dataclass(frozen=True, slots=True)
class IndexMap:
    """Element e of the result is element (`matrix` · e) XOR `constant` of the operand, over the bits of row-major flat indices.

    A matrix is a tuple of columns: the operand's index of each bit of the result's index.
    """

    matrix: tuple[int, ...]
    constant: int

    @property
    def in_place(self) -> bool:
        """Whether elements keep their index, but for the constant."""
        return self.matrix == tuple(1 << bit for bit in range(len(self.matrix)))


def index_map(op: Operation) -> IndexMap | None:
    """The map of a structural op from one tile to one tile; None for other ops, and where no such map exists.

    There is none when a dim is not a power of two, or when the indices are not linear over their bits (a rotation by one).
    """
    if not isinstance(op, StructuralOp) or len(op._operands) != 1 or len(op.results) != 1:
        return None
    (operand,), (made,) = op._operands, op.results
    source, result = operand.type, made.type
    if not types.is_tile(source) or not types.is_tile(result):
        return None
    return _derived(op.__class__, types.shape_of(source), types.shape_of(result), tuple(op.properties.items()))


@lru_cache(maxsize=1024)
def _derived(
    kind: type[StructuralOp], source: Shape, result: Shape, properties: tuple[tuple[str, Attribute], ...]
) -> IndexMap | None:
    if any(size & (size - 1) for size in (*source, *result)):
        return None
    index = source_indices(kind, source, result, properties)
    constant = int(index[0])
    matrix = tuple(int(index[1 << bit]) ^ constant for bit in range(len(index).bit_length() - 1))
    linear = np.array([constant])
    for column in matrix:
        linear = np.concatenate([linear, linear ^ column])
    return IndexMap(matrix, constant) if np.array_equal(index, linear) else None


def source_indices(
    kind: type[StructuralOp], source: Shape, result: Shape, properties: Sequence[tuple[str, Attribute]]
) -> Array:
    """For each element of the result, in row-major order, the flat index of the operand's element: int64 [elements]."""
    operand = Block(arg_types=[types.tile(source, types.i32)]).args[0]
    op = kind.create(operands=[operand], result_types=[types.tile(result, types.i32)], properties=dict(properties))
    (moved,) = op.elements(np.arange(prod(source)).reshape(1, *source))
    return moved.reshape(-1)
