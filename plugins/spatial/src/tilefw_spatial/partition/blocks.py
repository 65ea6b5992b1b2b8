"""Stores divided into blocks of rows, so that chips can send one block while they make the next."""

from __future__ import annotations

from itertools import pairwise

from tilefw.api.integers import ceil_div
from tilefw_spatial.graph import Axis, Graph, Store
from tilefw_spatial.partition.axes import rows_axis
from tilefw_spatial.partition.restrict import Restriction, part_of

ROWS = 128
"""Rows of a block, the compiler's own tuning: more than weights take to load, and few beside what a link takes to send them."""


def in_blocks(graph: Graph, chips: int, columns: Axis | None = None) -> tuple[Graph, list[int]]:
    """The graph's stores in blocks of rows, and the chip that each of these belongs to: all chips have equally many."""
    blocks = Graph()
    owners: list[int] = []
    for store in graph.stores:
        for number, block in enumerate(_blocks(store, rows_axis(store, columns), chips)):
            blocks.stores.append(block)
            owners.append(number % chips)
    return blocks, owners


def in_tapered_blocks(store: Store, columns: Axis | None, last: int) -> list[Store]:
    """A store in blocks of rows, of which the last ones are ever shorter. The very last, for which all chips wait, has
    `last` rows: the cycles from one set of weights to the next, since a block of fewer rows only waits for its weights."""
    axis = rows_axis(store, columns)
    return [store] if axis is None else _divided(store, axis, _tapered(axis.extent, last))


def _tapered(extent: int, last: int) -> list[int]:
    """Where blocks begin and end: `last` rows, before these twice as many, and so on; blocks of about ROWS rows before them all."""
    ends = [extent]
    size = last
    while size < ROWS and ends[0] > size:
        ends.insert(0, ends[0] - size)
        size *= 2
    count = ceil_div(ends[0], ROWS)
    return [*(ends[0] * number // count for number in range(count)), *ends]


def _blocks(store: Store, axis: Axis | None, chips: int) -> list[Store]:
    if axis is None or axis.extent < chips:
        return [store]
    count = chips * ceil_div(axis.extent, chips * ROWS)
    count = min(count, axis.extent)
    return _divided(store, axis, [axis.extent * number // count for number in range(count + 1)])


def _divided(store: Store, axis: Axis, bounds: list[int]) -> list[Store]:
    parts = [Restriction(part_of(axis, begin, end)).store(store) for begin, end in pairwise(bounds)]
    return [part for part in parts if part is not None]
