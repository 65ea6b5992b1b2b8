"""A stock op that is right at a glance is right for xDSL too, and what is wrong with one is said as xDSL says it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation

from tilefw.api.errors import IRError
from tilefw.tile.text import module as text
from tilefw.tile.text.stock_ops import plainly_right

_TEXT = "func.func @add(%0 : i32) {\n  func.return\n}\n"


def _parts() -> tuple[ModuleOp, FuncOp, ReturnOp]:
    module = text.parse(_TEXT)
    function = next(op for op in module.body.block.ops if isinstance(op, FuncOp))
    ending = function.body.block.last_op
    assert isinstance(ending, ReturnOp)
    return module, function, ending


def test_a_kernels_module_function_and_return_are_right_at_a_glance() -> None:
    assert all(plainly_right(op, ()) for op in _parts())


def _named_twice(module: ModuleOp, function: FuncOp, ending: ReturnOp) -> Operation:
    module.body.block.add_op(function.clone())
    return module


def _of_other_types(module: ModuleOp, function: FuncOp, ending: ReturnOp) -> Operation:
    function.properties["function_type"] = FunctionType.from_lists([], [])
    return function


def _without_a_name(module: ModuleOp, function: FuncOp, ending: ReturnOp) -> Operation:
    del function.properties["sym_name"]
    return function


def _of_unknown_properties(module: ModuleOp, function: FuncOp, ending: ReturnOp) -> Operation:
    function.properties["colour"] = StringAttr("red")
    return function


def _of_odd_arguments(module: ModuleOp, function: FuncOp, ending: ReturnOp) -> Operation:
    function.properties["arg_attrs"] = ArrayAttr([StringAttr("x")])
    return function


def _returning_nothing(module: ModuleOp, function: FuncOp, ending: ReturnOp) -> Operation:
    function.properties["function_type"] = FunctionType.from_lists([i32], [i32])
    return ending


def _returning_early(module: ModuleOp, function: FuncOp, ending: ReturnOp) -> Operation:
    function.body.block.add_op(ReturnOp())
    return ending


def _of_two_blocks(module: ModuleOp, function: FuncOp, ending: ReturnOp) -> Operation:
    module.body.add_block(Block())
    return module


_MISTAKES = [
    _named_twice, _of_other_types, _without_a_name, _of_unknown_properties, _of_odd_arguments, _returning_nothing, _of_two_blocks,
]


@pytest.mark.parametrize("spoil", _MISTAKES)
def test_what_is_wrong_is_refused(spoil) -> None:
    parts = _parts()
    assert not plainly_right(spoil(*parts), ())
    with pytest.raises(IRError) as raised:
        text.verify(parts[0])
    assert raised.value.code == "TFW0402"


def test_a_return_that_is_not_last_is_left_to_xdsl() -> None:
    assert not plainly_right(_returning_early(*_parts()), ())


@pytest.mark.parametrize("branches", [
    "{ scf.yield %y : f32 } else { scf.yield %x : i32 }", "{ scf.yield %x : i32 } else { scf.yield %x, %x : i32, i32 }",
    "{ scf.yield %x : i32 }",
])
def test_branches_yield_what_the_op_gives(branches: str) -> None:
    with pytest.raises(IRError, match=r"a branch of scf\.if yields"):
        text.parse(f"func.func @k(%c: i1, %x: i32, %y: f32) {{\n  %r = scf.if %c -> (i32) {branches}\n  func.return\n}}\n")
