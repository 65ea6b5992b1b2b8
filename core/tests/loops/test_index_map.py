"""A shape op's rule over indices names the same elements as the op's own declaration (`StructuralOp.elements`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Block

from tilefw.loops.index import Index, IndexMath, Scopes, fixed
from tilefw.loops.index_map import flat_index, operand_index, unflattened
from tilefw.tile import types
from tilefw.tile.dialect import ops
from tilefw.tile.dialect.structural_op import source_indices


@dataclass(frozen=True, eq=False)
class _Word:
    """An i64 in some lanes."""

    lanes: np.ndarray[Any, Any]


class _Numbers:
    """i64 arithmetic on NumPy arrays: all that index arithmetic asks of a machine."""

    def const(self, pattern: int, type_: str) -> _Word:
        return _Word(np.array([pattern], np.uint64).view(np.int64))

    def numbered(self, lanes: int) -> _Word:
        return _Word(np.arange(lanes))

    def op(self, row: str, operands: tuple[_Word, _Word], result: str) -> _Word:
        meaning = {"addi": np.add, "muli": np.multiply, "divs": np.floor_divide, "rems": np.remainder}[row]
        return _Word(meaning(*(operand.lanes for operand in operands)))


def _math(lanes: int) -> IndexMath[Any]:
    return IndexMath(_Numbers(), Scopes(), lanes)  # type: ignore[arg-type]


def _base(number: int) -> _Word:
    return _Word(np.array([number]))


def _tile(*shape: int) -> Any:
    return Block(arg_types=[types.tile(shape, types.i32)]).args[0]


OPS = {
    "trans": lambda: ops.TransOp(_tile(4, 8, 2), [2, 0, 1]),
    "flip": lambda: ops.FlipOp(_tile(4, 8), 1),
    "expand_dims": lambda: ops.ExpandDimsOp(_tile(4, 8), 1),
    "broadcast": lambda: ops.BroadcastOp(_tile(4, 1), (4, 16)),
    "reshape, merged": lambda: ops.ReshapeOp(_tile(4, 8, 2), (4, 16)),
    "reshape, split": lambda: ops.ReshapeOp(_tile(64), (4, 1, 16)),
    "reshape, across": lambda: ops.ReshapeOp(_tile(6, 10), (15, 4)),
}


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("name", OPS)
def test_the_rule_of_an_op_names_the_elements_that_the_op_declares(name: str, lanes: int) -> None:
    op = OPS[name]()
    source, result = types.shape_of(op.operands[0].type), types.shape_of(op.results[0].type)
    wanted = source_indices(type(op), source, result, tuple(op.properties.items())).reshape(result)
    math = _math(lanes)
    size = result[-1]
    found = np.empty_like(wanted)
    for outer in np.ndindex(result[:-1]):
        for first in range(0, size - size % lanes, lanes):
            last = Index(first, 1 if lanes > 1 else 0, lanes if lanes > 1 and first % lanes == 0 else first)
            at = operand_index(op, (*map(fixed, outer), last), math)
            assert at is not None
            found[(*outer, slice(first, first + lanes))] = math.value(flat_index(at, source, math)).lanes
    whole = size - size % lanes
    assert np.array_equal(found[..., :whole], wanted[..., :whole])


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_unflattening_undoes_flattening(shape: list[int], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, prod(shape) - 1))
    math = _math(1)
    at = unflattened(fixed(number), shape, math)
    assert [index.number for index in at] == list(np.unravel_index(number, shape))
    assert flat_index(at, shape, math).number == number


def test_a_vector_that_stays_in_a_row_keeps_one_quotient() -> None:
    math = _math(8)
    row, column = math.divided(Index(_base(24), 1, 8), 16)
    assert row.uniform and column.stride == 1
    row, column = math.divided(Index(_base(24), 1, 8), 4)
    assert list(math.value(row).lanes) == [6, 6, 6, 6, 7, 7, 7, 7] and column.vector is not None
