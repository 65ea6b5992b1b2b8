"""The expansions' face for plugins: elementwise rows that a chip lacks, written in rows that it has, whatever kind of chip it is.

A plugin brings an `ExpansionBuilder` (what the rows are made on: registers, nodes of a graph, arrays) and calls `Legal(chip,
rules)` with a row and its operands; `rules` are `RULES`, under those that the plugin knows better. `missing(chip)` tells what stays
unserved.
"""

from tilefw.simt.expand.base import BASE_ROWS
from tilefw.simt.expand.builder import CASTS, TYPES, ExpansionBuilder, Legal, Rule, key
from tilefw.simt.expand.missing import RowsOfChip, missing
from tilefw.simt.expand.rules import RULES
from tilefw.simt.expand.series import interpolated
from tilefw.simt.expand.transcendental import polynomial

__all__ = [
    "BASE_ROWS", "CASTS", "RULES", "TYPES", "ExpansionBuilder", "Legal", "RowsOfChip", "Rule", "interpolated", "key", "missing",
    "polynomial",
]
