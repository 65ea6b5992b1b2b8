"""The elementwise table: one row gives an op its name, types, folder, NumPy meaning, error bound, random inputs and docs.

`ROWS` is the table; `build("addf", x, y)` makes an op of the tile dialect; `op_classes("lane")` makes the same rows as
ops of another dialect.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Attribute, Operation, SSAValue

from tilefw.tile.elementwise import cast, floating, integer
from tilefw.tile.elementwise.op import ElementwiseOp, Rounding, op_class
from tilefw.tile.elementwise.row import Row

__all__ = ["OPS", "ROWS", "ElementwiseOp", "Row", "build", "op_classes"]

ROWS: dict[str, Row] = {row.name: row for row in integer.ROWS + floating.ROWS + cast.ROWS}
"""The elementwise table: every row by its name."""


@cache
def op_classes(dialect: str) -> dict[str, type[ElementwiseOp]]:
    """The op class of every row, named `<dialect>.<row>`."""
    return {name: op_class(row, dialect) for name, row in ROWS.items()}


OPS = op_classes("tile")


def build(
    name: str, *operands: SSAValue | Operation, result: Attribute | None = None, rounding: Rounding | None = None
) -> ElementwiseOp:
    """The op of row `name` on `operands`; casts name their `result`, as a full type or an element type. Not yet inserted."""
    return OPS[name](*operands, result=result, rounding=rounding)
