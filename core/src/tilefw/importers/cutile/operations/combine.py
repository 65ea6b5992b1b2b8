"""Reductions and scans: operations whose regions compute with scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.reduction import combined
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.combine import Combination
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
    axis = op.attributes["dim"]

    def run(all: Sequence[RuntimeValue], made: Combination) -> list[RuntimeValue]:
        return t.b.reduce(all, axis, made.block, made.results)

    return list(combined(t.b, "reduce", t.listed(op), lambda b, values: _combined(t, op, b, values), run))


@meaning("scan")
def scan(t: BytecodeTranslation, op: BytecodeOperation) -> list[Any]:
    axis, reverse = op.attributes["dim"], op.attributes["reverse"]

    def run(all: Sequence[RuntimeValue], made: Combination) -> list[RuntimeValue]:
        return t.b.scan(all, axis, reverse, made.block, made.results)

    return list(combined(t.b, "associative_scan", t.listed(op), lambda b, values: _combined(t, op, b, values), run))
