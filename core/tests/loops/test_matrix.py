"""The matrix unit gets products of its own types and sizes; all others are loops."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from tilefw.loops.effects import Effects
from tilefw.loops.function import lower_function
from tilefw.loops.machine import TileProduct
from tilefw.loops.text_machine import TextMachine, TextValue
from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.sim.row_meanings import ROW_MEANINGS
from tilefw.tile.nested_ops import nested_ops
from tilefw.tile.text.module import parse


class _Writer(TextMachine):
    rows = ROW_MEANINGS
    lanes = 16
    matrix_tile = (16, 16, 16)
    matrix_types = frozenset({("i8", "i32")})

    def multiply(self, product: TileProduct[TextValue]) -> None:
        self.write(f"mma.{product.operand_type}", product.sums, product.left, product.right)


@pytest.mark.parametrize(("word", "depth", "served"), [("", 16, True), ("unsigned ", 16, False), ("", 8, False)])
def test_bytes_with_signs_in_whole_tiles_go_to_the_unit(word: str, depth: int, served: bool) -> None:
    left, right, sums = (f"tensor<{shape}>" for shape in (f"16x{depth}xi8", f"{depth}x16xi8", "16x16xi32"))
    module = parse(f"""builtin.module {{
func.func @k(%x: !tile.ptr<i32>) {{
%zero = tile.constant 0 : i32
%one = tile.constant 1 : i32
%row = tile.constant 16 : i32
%a = tile.constant -56 : {left}
%b = tile.constant 3 : {right}
%c = tile.constant 0 : {sums}
%d = tile.dot %a, %b, %c {word}: {left}, {right}, {sums}
tile.store_block %x, %d at (%zero, %zero : i32, i32) strides (%row, %one : i32, i32) : !tile.ptr<i32>, {sums}
func.return
}}
}}""", "test.mlir")
    (function,) = [op for op in nested_ops(module) if isinstance(op, FuncOp)]
    machine = _Writer()
    lower_function(function, machine, Effects(), AxisInfoAnalysis(function))
    assert any("mma.i8" in line for line in machine.lines) == served
