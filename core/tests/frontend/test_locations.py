"""Every op carries the line and column that made it; inlined ops also the chain of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc

TEXT = """@tilefw.jit
def helper(y):
    return y * y


@tilefw.jit
def outer(y):
    return helper(y) - 1


@tilefw.jit
def kernel(x_ptr, n):
    total = 0
    for i in range(n):
        if i > 3:
            total += outer(i)
    while total > 9:
        total = total // 2
    tl.store(x_ptr + n,
             total)
"""
FIRST = 5  # lines of the prelude before the text


def line_of(location: Any) -> int:
    assert isinstance(location, FileLineColLoc)
    return location.line.data - FIRST + 1


def test_every_op_has_a_location(module_of: Callable[..., Any]) -> None:
    module = module_of(TEXT, {"x_ptr": "*fp32", "n": "i32"})
    for op in module.walk():
        if op is not module:
            assert isinstance(op.location, FileLineColLoc | CallSiteLoc), op


def test_ops_stand_at_the_lines_that_made_them(module_of: Callable[..., Any]) -> None:
    module = module_of(TEXT, {"x_ptr": "*fp32", "n": "i32"})
    lines = {}
    for op in module.walk():
        if isinstance(op.location, FileLineColLoc):
            lines.setdefault(op.name, set()).add(line_of(op.location))
    assert lines["tile.gts"] == {15, 17}
    assert lines["scf.for"] == {14}
    assert lines["scf.while"] == {17}
    assert lines["scf.if"] == {15}
    assert lines["tile.divs"] == {18}
    assert lines["tile.addptr"] == {19}
    assert lines["tile.store"] == {19}
    assert lines["func.func"] == {12}


def test_inlined_ops_carry_their_calls(module_of: Callable[..., Any]) -> None:
    module = module_of(TEXT, {"x_ptr": "*fp32", "n": "i32"})
    (multiply,) = [op for op in module.walk() if op.name == "tile.muli"]
    chain, location = [], multiply.location
    while isinstance(location, CallSiteLoc):
        chain.append(line_of(location.callee))
        location = location.caller
    assert [*chain, line_of(location)] == [3, 8, 16]


def test_columns_count_from_one(module_of: Callable[..., Any]) -> None:
    module = module_of(TEXT, {"x_ptr": "*fp32", "n": "i32"})
    (store,) = [op for op in module.walk() if op.name == "tile.store"]
    assert store.location.column.data == 5


def test_names_of_numbers_alone_are_no_names_of_values(module_of: Callable[..., Any]) -> None:
    body = "_2 = _0 + _0_1\n    for _3 in range(_2):\n        tl.store(x_ptr + _3, _3 + _2)\n"
    module = module_of(f"@tilefw.jit\ndef kernel(x_ptr, _0, _0_1):\n    {body}", {"x_ptr": "*i32", "_0": "i32", "_0_1": "i32"})
    blocks = [block for op in module.walk() for region in op.regions for block in region.blocks]
    values = [value for block in blocks for value in (*block.args, *(result for op in block.ops for result in op.results))]
    assert {value.name_hint for value in values if value.name_hint} <= {"x_ptr"}
    for value in values:
        value.name_hint = value.name_hint  # as passes hand names on
