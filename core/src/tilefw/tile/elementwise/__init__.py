"""The elementwise table: one row gives an op its name, types, folder, NumPy meaning, error bound, random inputs and docs.

`ROWS` is the table; `tile/dialect/elementwise_op.py` makes ops of its rows.
"""

from __future__ import annotations

from tilefw.tile.elementwise import cast, floating, integer
from tilefw.tile.elementwise.row import ElementwiseRow

__all__ = ["ROWS", "ElementwiseRow"]

ROWS: dict[str, ElementwiseRow] = {row.name: row for row in integer.ROWS + floating.ROWS + cast.ROWS}
"""The elementwise table: every row by its name."""
