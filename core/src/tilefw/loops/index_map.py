"""Row-major indices of tiles, and back: flat numbers and one index a dim."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilefw.loops.index import Index, IndexMath, fixed
from tilefw.tile.dialect.structural_op import StructuralOp

Indices = tuple[Index[Any], ...]


class TileIndices:
    """Index arithmetic as shape ops ask for it (`StructuralOp.operand_index`)."""

    def __init__(self, math: IndexMath[Any]) -> None:
        self._math = math

    def fixed(self, number: int) -> Index[Any]:
        """The index that is a number."""
        return fixed(number)

    def mirrored(self, index: Index[Any], size: int) -> Index[Any]:
        """size - 1 - index."""
        return self._math.mirrored(index, size)

    def regrouped(self, indices: Sequence[Index[Any]], old: tuple[int, ...], new: tuple[int, ...]) -> Indices:
        """The indices in a tile of shape `new` of what has `indices` in one of shape `old`, row by row."""
        return unflattened(flat_index(tuple(indices), old, self._math), new, self._math)


def operand_index(op: StructuralOp, at: Indices, math: IndexMath[Any]) -> Indices | None:
    """The index of the operand's element that the result of a shape op has at `at`; None for an op with several operands."""
    found = op.operand_index(at, TileIndices(math))
    return None if found is None else tuple(found)


def flat_index(at: Indices, shape: Sequence[int], math: IndexMath[Any]) -> Index[Any]:
    """The row-major index of an element in a tile of `shape`."""
    total = fixed(0)
    for dim, index in enumerate(at):
        total = math.add(total, math.scaled(index, prod(shape[dim + 1 :])))
    return total


def unflattened(flat: Index[Any], shape: Sequence[int], math: IndexMath[Any]) -> Indices:
    """The index, one a dim, of the element at a row-major index."""
    found: list[Index[Any]] = []
    for size in reversed(shape[1:]):
        flat, rest = math.divided(flat, size)
        found.append(rest)
    return (flat, *reversed(found)) if shape else ()
