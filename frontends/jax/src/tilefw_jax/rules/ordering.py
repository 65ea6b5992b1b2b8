"""Sorting: by keys where the comparison is one of keys (`comparisons.py`); by any other, each element's rank is a count of those
before it, and the results are gathered by rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import GraphValue, shape_of
from tilefw.graph.index_maps import linear_map
from tilefw.graph.ordering import order_key, places_in_order, taken_along
from tilefw_jax.element_types import kind_of
from tilefw_jax.known_values import KnownValueBuilder
from tilefw_jax.rules.attributes import integer
from tilefw_jax.rules.bodies import Functions, applied
from tilefw_jax.rules.combining import constant
from tilefw_jax.rules.comparisons import compared_keys

Values = Sequence[GraphValue]
_LONGEST = 4096  # elements of a row, each of which is compared with all


def sort(b: KnownValueBuilder, op: Any, values: Values, functions: Functions) -> list[GraphValue]:
    """`stablehlo.sort`, always stable."""
    axis, block = integer(op, "dimension"), op.regions[0].blocks[0]
    keys = compared_keys(b, block, values)
    if keys is not None:
        order = places_in_order(b, keys, axis)
        return [taken_along(b, value, order, axis) for value in values]

    def before(ones: Values, others: Values) -> GraphValue:
        pairs = [value for pair in zip(ones, others, strict=True) for value in pair]
        return applied(b.map, partial(constant, b), block, pairs, functions)[0]

    order = _order(b, values, axis, before)
    return [taken_along(b, value, order, axis) for value in values]


def _order(b: KnownValueBuilder, values: Values, axis: int, before: Any) -> GraphValue:
    """Which element of its row comes to each place."""
    shape = shape_of(values[0])
    length = shape[axis]
    if length < 2 or not prod(shape):
        return b.iota(shape, axis)
    if length > _LONGEST:
        raise UnsupportedError(
            f"rows of {length} elements to sort by a comparison that is none of keys, of at most {_LONGEST}", code="TFW0992"
        )
    wide = (*shape[:axis], *shape[axis + 1 :], length, length)  # in each row, all elements beside all
    ones, others = ([_beside(b, value, axis, wide, place) for value in values] for place in (1, 2))
    mine, theirs = b.iota(wide, len(wide) - 2), b.iota(wide, len(wide) - 1)
    equal = b.map("xori", b.map("ori", before(others, ones), before(ones, others)), 1)
    first = b.map("ori", before(others, ones), b.map("andi", equal, b.map("lts", theirs, mine)))
    ranks = b.reduce("addi", b.cast(first, "int32", "int1"), [len(wide) - 1], keep=True)
    hit = b.map("eqi", b.transpose(b.broadcast(ranks, wide), [*range(len(wide) - 2), len(wide) - 1, len(wide) - 2]),
                b.iota(wide, len(wide) - 2))
    found = b.reduce("addi", b.map("select", hit, theirs, 0), [len(wide) - 1])
    rank = len(shape)
    return b.transpose(found, [*range(axis), rank - 1, *range(axis, rank - 1)])


def _beside(b: KnownValueBuilder, value: GraphValue, axis: int, wide: Sequence[int], place: int) -> GraphValue:
    """A tensor whose axis is one of the last two dims of a shape, and that is repeated along the other."""
    rank, along = len(shape_of(value)), len(wide) - 3 + place
    rows = [[0] * len(wide) for _ in range(rank)]
    rest = [dim for dim in range(rank) if dim != axis]
    for k, dim in enumerate(rest):
        rows[dim][k] = 1
    rows[axis][along] = 1
    return b.view(value, linear_map(rows, [0] * rank, len(wide)), wide)


def top_k(b: KnownValueBuilder, op: Any, values: Values, _functions: Functions) -> list[GraphValue]:
    """`chlo.top_k`: the largest of each row and their places in the total order of floats, as XLA has it: NaN at the end that its
    sign says, 0 before -0; the first among equals."""
    (value,), axis = values, len(shape_of(values[0])) - 1
    key = order_key(b, value, kind_of(op.operands[0].type), falling=True, total=True)
    order = places_in_order(b, [key], axis, integer(op, "k"))
    return [taken_along(b, value, order, axis), order]


ORDERING = {"stablehlo.sort": sort, "chlo.top_k": top_k}
