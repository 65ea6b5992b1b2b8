"""Reductions, scans and mapped functions: operations whose regions compute with scalars."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tilefw.frontend.builder import Builder
from tilefw.frontend.builtins.elementwise import map_elementwise
from tilefw.frontend.builtins.registry import Meanings
from tilefw.frontend.combine import combine_block
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
    block, results = combine_block(t.b, [tile.dtype for tile in tiles], lambda b, values: _inlined(t, s, b, values))
    return list(t.b.reduce(tiles, t.integer(s, "axis"), block, results))


@meaning("tt.scan")
def scan(t: Translation, s: TextOperation) -> list[Any]:
    tiles = t.operands(s)
    block, results = combine_block(t.b, [tile.dtype for tile in tiles], lambda b, values: _inlined(t, s, b, values))
    return list(t.b.scan(tiles, t.integer(s, "axis"), t.flag(s, "reverse"), block, results))


@meaning("tt.map_elementwise")
def map_function(t: Translation, s: TextOperation) -> list[Any]:
    function = ScalarFunction(SimpleNamespace(__name__="tt.map_elementwise"), lambda b, values: _inlined(t, s, b, values))
    found = map_elementwise(t.b, function, tuple(t.operands(s)), t.integer(s, "pack"))
    return list(found) if isinstance(found, tuple) else [found]
