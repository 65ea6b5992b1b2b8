"""Reductions, scans and mapped functions: operations whose regions compute with scalars."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.elementwise import map_elementwise
from tilefw.frontend.builtins.reduction import combined
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.combine import Combination
from tilefw.frontend.scalar_function import ScalarFunction
from tilefw.frontend.values import RuntimeValue
from tilefw.importers.triton_ir.operations.control import run_region

if TYPE_CHECKING:
    from tilefw.importers.triton_ir.translation import Translation
    from tilefw.importers.triton_ir.tree import TextOperation

meaning = Meanings()


def _inlined(t: Translation, s: TextOperation, b: Builder, arguments: Sequence[RuntimeValue]) -> tuple[Any, ...]:
    with t.within(b):
        return tuple(run_region(t, s.regions[0], arguments))


@meaning("tt.reduce")
def reduce(t: Translation, s: TextOperation) -> list[Any]:
    tiles = t.operands(s)
    axis = t.integer(s, "axis")

    def run(all: Sequence[RuntimeValue], made: Combination) -> list[RuntimeValue]:
        return t.b.reduce(all, axis, made.block, made.results)

    return list(combined(t.b, "reduce", tiles, lambda b, values: _inlined(t, s, b, values), run))


@meaning("tt.scan")
def scan(t: Translation, s: TextOperation) -> list[Any]:
    tiles = t.operands(s)
    axis, reverse = t.integer(s, "axis"), t.flag(s, "reverse")

    def run(all: Sequence[RuntimeValue], made: Combination) -> list[RuntimeValue]:
        return t.b.scan(all, axis, reverse, made.block, made.results)

    return list(combined(t.b, "associative_scan", tiles, lambda b, values: _inlined(t, s, b, values), run))


@meaning("tt.map_elementwise")
def map_function(t: Translation, s: TextOperation) -> list[Any]:
    function = ScalarFunction(SimpleNamespace(__name__="tt.map_elementwise"), lambda b, values: _inlined(t, s, b, values))
    found = map_elementwise(t.b, function, tuple(t.operands(s)), t.integer(s, "pack"))
    return list(found) if isinstance(found, tuple) else [found]
