"""Products on the matrix unit: tiles of weights, the sides they run on, and the stream operations that drain them.

A tile is one vector of the result's lanes for all rows that the accumulators hold: activations' vectors (K along their lanes) times
weights (K in time). Each side has half of the tiles; one left over has its K split over both, and the stream operation that drains
it adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product, zip_longest
from math import prod

from tilefw.api.integers import ceil_div, round_up
from tilefw_spatial.arrange.item import Item
from tilefw_spatial.arrange.memory import Order, dense_order, strides_of
from tilefw_spatial.arrange.views import ArrayView, Loop, access_pattern, whole
from tilefw_spatial.graph import Axis, Dot
from tilefw_spatial.isa import TYPES
from tilefw_spatial.machine import SIDES, Machine
from tilefw_spatial.stream_program import MatrixStreamOp, Product

_SPLIT = 0.1  # what each block costs of the whole: its weights are loaded again, and it is drained by itself


@dataclass(frozen=True, slots=True, eq=False)
class DotShape:
    """A dot's axes by their part: `batch` differ for both operands, `bands` for weights only, `rows` for activations only, and
    `depth` is contracted."""

    batch: tuple[Axis, ...]
    bands: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    depth: tuple[Axis, ...]

    @property
    def k(self) -> int:
        return prod(axis.extent for axis in self.depth)


def shape_of(dot: Item) -> DotShape:
    """The parts of a dot's axes in time."""
    op = dot.value.op
    assert isinstance(op, Dot)
    weights, activations = (frozenset(part.value.axes) for part in dot.operands)
    time = dot.time
    return DotShape(
        tuple(axis for axis in time if axis in weights & activations),
        tuple(axis for axis in time if axis in weights - activations),
        tuple(axis for axis in time if axis not in weights),
        op.contracted,
    )


def in_tiles(dot: Item) -> tuple[Axis, ...]:
    """A dot's axes in time, so that the rows of a tile follow one another."""
    shape = shape_of(dot)
    return (*shape.batch, *shape.bands, *shape.rows)


def weights_order(dot: Item, machine: Machine) -> Order:
    """The order of a dot's weights: the rows of K of one tile follow one another, from a multiple of what one cycle loads."""
    shape = shape_of(dot)
    weights = dot.operands[0]
    groups = machine.weight_streams // TYPES[weights.value.dtype].nbytes
    inner, rows = strides_of(shape.depth)
    chunk = round_up(rows, groups)
    outer, vectors = strides_of((*shape.batch, *shape.bands), chunk * weights.lanes.chunks)
    return Order({**outer, **inner}, chunk if weights.lanes.chunks > 1 else 0, vectors, groups, rows)


def activations_order(dot: Item, _: Machine) -> Order:
    """The order of a dot's activations: the rows of one part of K follow one another."""
    shape = shape_of(dot)
    return dense_order((*shape.batch, *shape.rows), dot.operands[1].lanes.chunks)


@dataclass(frozen=True, slots=True, eq=False)
class DotTile:
    """One tile: `fixed` indices of batch, bands and the chunk of lanes; its rows as a loop."""

    fixed: Mapping[Axis, int]
    rows: Loop


def tiles(dot: Item, chunk: Axis, machine: Machine) -> list[DotTile]:
    """All tiles of a product, in the order of its vectors in memory; those of one set of weights follow one another."""
    shape = shape_of(dot)
    outer = (chunk, *shape.batch, *shape.bands)
    rows = whole(*shape.rows)
    size = min(machine.accumulator_rows, ceil_div(rows.end, _blocks(dot, prod(axis.extent for axis in outer), rows.end, machine)))
    blocks = [Loop(rows.axes, begin, min(begin + size, rows.end)) for begin in range(0, rows.end, size)]
    found = [
        DotTile(dict(zip(outer, index, strict=True)), block)
        for index in product(*(range(axis.extent) for axis in outer)) for block in blocks
    ]
    return found if len(found) % 2 == 0 or parts_of(dot, machine) > 1 else _evened(found, machine.delays["load_weights"])


def _blocks(dot: Item, count: int, rows: int, machine: Machine) -> int:
    """In how many blocks of rows `count` tiles are done soonest, where each plane takes a tile of its own: few tiles keep few
    planes busy, and blocks of few rows wait for their weights."""
    planes = machine.planes_apart(dot.operands[0].value.dtype)
    if planes == 1:
        return 1
    pitch = machine.pitch

    def cycles(blocks: int) -> float:
        rounds = ceil_div(count * blocks, planes * len(SIDES))
        return rounds * max(ceil_div(rows, blocks), pitch) * (1 + _SPLIT * blocks)

    return min((1, 2, 4), key=cycles)


def parts_of(dot: Item, machine: Machine) -> int:
    """Products of one tile: parts of K."""
    return ceil_div(shape_of(dot).k, machine.depth(dot.operands[0].value.dtype))


def _evened(found: list[DotTile], least: int) -> list[DotTile]:
    """An odd number of tiles whose K cannot be split, with the rows of the middle one in two halves; of fewer than `least`
    rows each, loading the weights would take longer than multiplying by them."""
    half = len(found) // 2
    tile = found[half]
    middle = (tile.rows.begin + tile.rows.end) // 2
    if tile.rows.points < 2 * least:
        return found
    rows = (Loop(tile.rows.axes, tile.rows.begin, middle), Loop(tile.rows.axes, middle, tile.rows.end))
    return [*found[:half], *(DotTile(tile.fixed, part) for part in rows), *found[half + 1 :]]


@dataclass(slots=True)
class Products:
    """The matrix stream operations of one dot."""

    dot: Item
    weights: ArrayView
    activations: ArrayView
    chunk: Axis
    machine: Machine

    def stream_ops(self, tile: DotTile, sides: tuple[str, ...]) -> tuple[MatrixStreamOp, ...]:
        """A tile's stream operations: one, or one on each of two sides, each with half of K."""
        parts = self._products(tile)
        half = ceil_div(len(parts), len(sides))
        shares = [parts[n * half : (n + 1) * half] for n in range(len(sides))]
        dtype = self.dot.operands[0].value.dtype
        return tuple(
            MatrixStreamOp(dtype, tile.rows.points, share, side, place=self.dot.value.place)
            for share, side in zip(shares, sides, strict=True)
        )

    def _products(self, tile: DotTile) -> list[Product]:
        shape = shape_of(self.dot)
        depth, lanes = self.machine.depth(self.dot.operands[0].value.dtype), self.machine.lanes
        fixed = {axis: index for axis, index in tile.fixed.items() if axis is not self.chunk}
        first = access_pattern(self.weights, self.chunk, (), {**tile.fixed, **dict.fromkeys(shape.depth, 0)}).start
        made: list[Product] = []
        for begin in range(0, shape.k, depth):
            part = Axis("k", self.dot.operands[1].lanes.chunks)
            rows = access_pattern(self.activations, part, (tile.rows,), {**fixed, part: begin // lanes})
            half = begin % lanes // depth
            made.append(Product(rows, half, self.weights.array, first + begin, min(depth, shape.k - begin)))
        return made


@dataclass(frozen=True, slots=True)
class MatrixShare:
    """The tiles of each side by number, and that which both sides share, if there is one."""

    west: range
    east: range
    both: int | None = None

    def alternating(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Tiles with their sides, the sides alternating."""
        for west, east in zip_longest(self.west, self.east):
            if west is not None:
                yield west, ("W",)
            if east is not None:
                yield east, ("E",)
        if self.both is not None:
            yield self.both, SIDES


def shared(count: int, parts: int) -> MatrixShare:
    """The sides of `count` tiles of `parts` products each: the first half is one side's, so that the results of either side
    lie together; of an odd number the middle one has its K split, if it has more than one product."""
    half = count // 2
    if count % 2 and parts > 1:
        return MatrixShare(range(half), range(half + 1, count), half)
    return MatrixShare(range(count - half), range(count - half, count))
