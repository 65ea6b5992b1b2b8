"""A shape op's rule over indices names the same elements as the op's own declaration (`StructuralOp.elements`)."""

from __future__ import annotations

from collections.abc import Sequence
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

    def __init__(self, permutes: bool) -> None:
        self.permutes = permutes

    def numbers(self, numbers: Sequence[int]) -> _Word:
        return _Word(np.array(numbers))

    def const(self, pattern: int, type_: str) -> _Word:
        return _Word(np.array([pattern], np.uint64).view(np.int64))

    def numbered(self, lanes: int) -> _Word:
        return _Word(np.arange(lanes))

    def op(self, row: str, operands: tuple[_Word, _Word], result: str) -> _Word:
        meaning = {"addi": np.add, "muli": np.multiply, "divs": np.floor_divide, "rems": np.remainder}[row]
        return _Word(meaning(*(operand.lanes for operand in operands)))


def _math(lanes: int, permutes: bool = False) -> IndexMath[Any]:
    return IndexMath(_Numbers(permutes), Scopes(), lanes)  # type: ignore[arg-type]


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


@pytest.mark.parametrize(("lanes", "permutes"), [(1, False), (4, False), (4, True)])
@pytest.mark.parametrize("name", OPS)
def test_the_rule_of_an_op_names_the_elements_that_the_op_declares(name: str, lanes: int, permutes: bool) -> None:
    op = OPS[name]()
    source, result = types.shape_of(op.operands[0].type), types.shape_of(op.results[0].type)
    wanted = source_indices(type(op), source, result, tuple(op.properties.items())).reshape(result)
    math = _math(lanes, permutes)
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


SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=5).filter(lambda shape: prod(shape) % 8 == 0)


@given(SHAPES, st.integers(0, 40), st.booleans(), st.data())
def test_steps_of_lanes_are_what_vectors_of_numbers_are(shape: list[int], number: int, known: bool, data: st.DataObject) -> None:
    """Vectors of a tile with some dims flipped, seen in two shapes, whether where they begin is known or not."""
    begin = 8 * (number % (prod(shape) // 8))
    math, plain = _math(8, permutes=True), np.arange(begin, begin + 8)
    at = unflattened(Index(begin if known else _base(begin), 1, 0 if known and not begin else 8), shape, math)
    wanted = list(np.unravel_index(plain, shape))
    assert [list(np.broadcast_to(math.value(index).lanes, 8)) for index in at] == [list(each) for each in wanted]
    flipped = [data.draw(st.booleans()) for _ in shape]
    turned = [math.mirrored(index, size) if flip else index for index, size, flip in zip(at, shape, flipped, strict=True)]
    wanted = [size - 1 - each if flip else each for each, size, flip in zip(wanted, shape, flipped, strict=True)]
    flat = flat_index(tuple(turned), shape, math)
    numbers = np.ravel_multi_index(wanted, shape)
    assert list(np.broadcast_to(math.value(flat).lanes, 8)) == list(numbers)
    assert flat.vector is not None or flat.divisor == 0 or isinstance(flat.base, int) or not flat.base.lanes[0] % flat.divisor
    again = unflattened(flat, shape[::-1], math)
    wanted = list(np.unravel_index(numbers, shape[::-1]))
    assert [list(np.broadcast_to(math.value(index).lanes, 8)) for index in again] == [list(each) for each in wanted]
