"""Sums of offset tiles, in the widest of their integer types: offsets are signed, so narrower ones are sign extended."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.passes.rewriting import insert
from tilefw.tile import types
from tilefw.tile.dialect.elementwise_op import build


def widest(tiles: Sequence[SSAValue]) -> Attribute:
    """The widest element type among tiles of integers."""
    return max((types.element_of(t.type) for t in tiles), key=lambda t: types.dtype_of(t).bits)


def widened(value: SSAValue, element: Attribute, before: Operation) -> SSAValue:
    """The value with elements of `element`, extended before an op where it is narrower."""
    return value if types.element_of(value.type) == element else insert(build("exts", value, result=element), before)


def sum_of(tiles: Sequence[SSAValue], before: Operation) -> SSAValue | None:
    """The sum, made before an op; None of no tiles."""
    total: SSAValue | None = None
    for tile in tiles:
        wide = widened(tile, widest(tiles), before)
        total = wide if total is None else insert(build("addi", total, wide), before)
    return total
