"""The elementwise table: one row gives an op its name, types, folder, NumPy meaning, error bound, random inputs and docs.

`ROWS` is the table; `tile/dialect/elementwise_op.py` makes ops of its rows.
"""

from __future__ import annotations

from tilefw.tile.elementwise import cast, floating, integer
from tilefw.tile.elementwise.row import Row

__all__ = ["ROWS", "Row"]

ROWS: dict[str, Row] = {row.name: row for row in integer.ROWS + floating.ROWS + cast.ROWS}
"""The elementwise table: every row by its name."""
