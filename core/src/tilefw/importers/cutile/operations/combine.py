"""Reductions and scans: operations whose regions compute with scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.combine import combine_block
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.cutile.operations.control import run_block

if TYPE_CHECKING:
    from tilefw.importers.cutile.bytecode_translation import BytecodeTranslation
    from tilefw.importers.cutile.bytecode_tree import BytecodeOperation

meaning = Meanings()


def _combined(t: BytecodeTranslation, op: BytecodeOperation, b: Builder, groups: Sequence[RuntimeValue]) -> tuple[Any, ...]:
    """What the region gives. Its arguments are pairs: of each tile the element, then what was combined before it."""
    count = len(groups) // 2
    arguments = [value for pair in zip(groups[count:], groups[:count], strict=True) for value in pair]
    with t.within(b):
        return tuple(t.at(number) for number in run_block(t, op.regions[0], arguments).operands["operands"])


@meaning("reduce")
def reduce(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    tiles = t.listed(op)
    block, results = combine_block(t.b, [tile.dtype for tile in tiles], lambda b, values: _combined(t, op, b, values))
    return list(t.b.reduce(tiles, op.attributes["dim"], block, results))


@meaning("scan")
def scan(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    tiles = t.listed(op)
    block, results = combine_block(t.b, [tile.dtype for tile in tiles], lambda b, values: _combined(t, op, b, values))
    return list(t.b.scan(tiles, op.attributes["dim"], op.attributes["reverse"], block, results))
