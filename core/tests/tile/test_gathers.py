"""`tile.gather` as text, and what follows from its elements: bounds and marks that move along, facts of its source alone."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from tilefw.api.errors import IRError
from tilefw.passes.axis_info import AxisInfoAnalysis
from tilefw.passes.requirements import required
from tilefw.tile.dialect.gather_op import GatherOp
from tilefw.tile.offset_arithmetic import offset_arithmetic
from tilefw.tile.reference.interpret_ops import HANDLERS
from tilefw.tile.reference.value import EvaluatedValue
from tilefw.tile.text.module import parse

GOOD = """
func.func @f(%p: !tile.ptr<i32>) {
  %i = tile.iota 0 to 16
  %two = tile.constant 2 : tensor<16xi32>
  %x = tile.muli %i, %two : tensor<16xi32>
  %k = tile.addi %x, %i : tensor<16xi32>
  %base = tile.splat %p : !tile.ptr<i32> to tensor<16x!tile.ptr<i32>>
  %e = tile.expand_dims %k axis 0 : tensor<16xi32>
  %t = tile.expand_dims %k axis 1 : tensor<16xi32>
  %b = tile.eqi %k, %x : tensor<16xi32>
  %g = tile.gather %x[%k] axis 0 : tensor<16xi32>, tensor<16xi32>
  %at = tile.addptr %base, %g : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  tile.store %at, %k : tensor<16x!tile.ptr<i32>>
  func.return
}"""


def gather_of(text: str) -> GatherOp:
    (op,) = (op for op in parse(text).walk() if isinstance(op, GatherOp))
    return op


def test_text_is_read_as_it_is_printed() -> None:
    module = parse(GOOD)
    assert str(parse(str(module))) == str(module)
    assert gather_of(GOOD).axis == 0


@pytest.mark.parametrize(("before", "after", "words"), [
    ("%x[%k] axis 0", "%x[%k] axis 1", "axis 1 does not fit"), ("%x[%k] axis 0", "%x axis 0", "'['"),
    ("%g = ", "%w = tile.gather %base[%k] axis 0 : tensor<16x!tile.ptr<i32>>, tensor<16xi32>\n  %g = ", "takes no pointers"),
    ("%g = ", "%w = tile.gather %k[%e] axis 0 : tensor<16xi32>, tensor<1x16xi32>\n  %g = ", "axis 0 does not fit"),
    ("%g = ", "%w = tile.gather %e[%t] axis 1 : tensor<1x16xi32>, tensor<16x1xi32>\n  %g = ", "the dims but 1 differ"),
    ("%g = ", "%w = tile.gather %k[%b] axis 0 : tensor<16xi32>, tensor<16xi1>\n  %g = ", "a tile of i32 indices"),
])
def test_what_is_wrong_is_said(before: str, after: str, words: str) -> None:
    assert before in GOOD
    with pytest.raises(IRError, match=words.replace("[", r"\[")):
        parse(GOOD.replace(before, after))


def test_facts_are_those_of_the_source() -> None:
    module = parse(GOOD)
    (op,) = (op for op in module.walk() if isinstance(op, GatherOp))
    info = AxisInfoAnalysis(module)[op.results[0]]
    assert (info.low, info.high, info.divisibility, info.contiguity) == (0, 30, (2,), (1,))


def test_indices_are_no_arithmetic_of_offsets() -> None:
    module = parse(GOOD)
    (function,) = (op for op in module.walk() if isinstance(op, FuncOp))
    assert {op.name for op in offset_arithmetic(function)} == {"tile.muli"}


def test_its_capability_names_the_elements() -> None:
    assert "gather.int32" in {str(name) for name in required(parse(GOOD))}


class Frame(dict):
    programs = np.arange(2)


def test_bounds_move_with_the_elements_and_what_an_open_index_picks_is_open() -> None:
    op = gather_of(GOOD)
    x = EvaluatedValue(np.arange(16.0)[None], err=np.arange(16.0)[None] / 8, free=np.arange(16)[None] == 3)
    picked = np.stack([np.arange(16)[::-1], np.arange(16) - 32]).astype(np.int32)  # the second program's count modulo 16
    index = EvaluatedValue(picked, free=np.arange(16)[None] == 5)
    (found,) = HANDLERS[GatherOp](None, op, Frame({op.source: x, op.index: index}))
    assert found.err is not None and found.free is not None
    np.testing.assert_array_equal(found.x, [np.arange(16)[::-1], np.arange(16)])
    np.testing.assert_array_equal(found.err, found.x / 8)
    np.testing.assert_array_equal(found.free, (found.x == 3) | (np.arange(16) == 5))
