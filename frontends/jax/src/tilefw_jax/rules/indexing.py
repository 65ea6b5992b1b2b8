"""Gathers of windows; scatters by memory where it can combine, and as reductions over the updates that reach an element where
these are few or combine otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from tilefw.api.errors import UnsupportedError
from tilefw.graph.builder import GraphValue, shape_of
from tilefw.graph.index_maps import linear_map
from tilefw.graph.scattering import is_scattered, scattered
from tilefw_jax.element_types import kind_of, static_shape
from tilefw_jax.known_values import KnownValueBuilder
from tilefw_jax.rules.attributes import integers
from tilefw_jax.rules.bodies import Functions, applied, gives_argument, only_operator, scalar_body
from tilefw_jax.rules.combining import Combination, combined, constant, neutral_number
from tilefw_jax.rules.moves import clamped
from tilefw_jax.rules.pointwise import POINTWISE_ROWS, row_for

Values = Sequence[GraphValue]
_FEW = 1 << 16  # elements by updates that are looked through: every target can, and sums have one order


def _along(b: KnownValueBuilder, value: GraphValue, dims: Sequence[int], shape: Sequence[int]) -> GraphValue:
    """A tensor whose dims are some of a shape's, repeated along the others."""
    own = shape_of(value)
    rows = [[int(d == dims[k]) for d in range(len(shape))] for k in range(len(own))]
    return b.view(value, linear_map(rows, [0] * len(own), len(shape)), shape)


def _component(b: KnownValueBuilder, indices: GraphValue, vector: int, place: int) -> GraphValue:
    """One coordinate of each tuple of indices; the tuples' dim falls away."""
    shape = shape_of(indices)
    if vector == len(shape):
        return indices
    starts = [place if dim == vector else 0 for dim in range(len(shape))]
    sizes = [1 if dim == vector else extent for dim, extent in enumerate(shape)]
    return b.reshape(b.slice(indices, starts, sizes), [extent for dim, extent in enumerate(shape) if dim != vector])


def gather(b: KnownValueBuilder, op: Any, values: Values) -> GraphValue:
    """`stablehlo.gather`: windows at computed places, which are moved inside."""
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    source, indices = values
    own, shape, sizes = shape_of(source), static_shape(op.results[0].type), integers(op, "slice_sizes")
    offsets = list(numbers.offset_dims)
    batch = [dim for dim in range(len(shape)) if dim not in offsets]
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [dim for dim in range(len(own)) if dim not in gone]
    rows = [[0] * len(shape) for _ in own]
    for dim, offset in zip(kept, offsets, strict=True):
        rows[dim][offset] = 1
    tuples = [dim for dim in range(len(shape_of(indices))) if dim != numbers.index_vector_dim]
    for dim, place in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        rows[dim][batch[tuples.index(place)]] = 1
    found = []
    for place, dim in enumerate(numbers.start_index_map):
        start = _component(b, indices, numbers.index_vector_dim, place)
        coordinate = _along(b, clamped(b, start, kind_of(op.operands[1].type), own[dim] - sizes[dim]), batch, shape)
        if sizes[dim] > 1:
            coordinate = b.map("addi", coordinate, b.iota(shape, offsets[kept.index(dim)]))
        found.append(coordinate)
        rows[dim] = [0] * len(shape)
    map = linear_map(rows, [0] * len(own), len(shape))
    return b.gather(source, found, list(numbers.start_index_map), map) if found else b.view(source, map, shape)


def scatter(b: KnownValueBuilder, op: Any, values: Values, functions: Functions) -> list[GraphValue]:
    """`stablehlo.scatter` of one tensor: each element is combined with those updates whose windows have it."""
    if len(values) != 3:
        raise UnsupportedError("several tensors scattered at once", code="TFW0992")
    source, indices, updates = values
    block, kind = op.regions[0].blocks[0], kind_of(op.operands[0].type)
    if not prod(shape_of(updates)) or not prod(shape_of(source)):
        return [source]
    row = None if gives_argument(block, 1) else _combining_row(block, kind)
    if row != "" and _scatters_to_computed(op) and prod(shape_of(source)) * prod(shape_of(indices)) > _FEW:
        return [_by_memory(b, op, values, kind, row)]
    reach = _UpdateReach(b, op, source, indices, updates)
    if gives_argument(block, 1):
        return [_replaced(b, reach, source)]
    number = neutral_number(only_operator(block), kind)
    if number is None:
        raise UnsupportedError(f"updates of {kind} that are combined by another function than one operator", code="TFW0992")
    terms = b.map("select", reach.reached, reach.read(), number)

    def tensors(held: Values, more: Values) -> Values:
        return applied(b.map, partial(constant, b), block, [*held, *more], functions)

    neutral = [b.full(number, source)]
    how = Combination(scalar_body(block, functions), tensors, neutral, neutral, operator=True, neutral=True)
    axes = list(range(len(shape_of(source)), len(shape_of(terms))))
    return list(tensors([source], combined(b, how, [terms], axes)))


def _combining_row(block: Any, kind: str) -> str:
    """The row of the elementwise table by which a body combines updates; the empty word for one that memory has not."""
    operator = only_operator(block)
    row = row_for(POINTWISE_ROWS[operator], kind) if operator in POINTWISE_ROWS else ""
    return row if is_scattered(row) else ""


def _scatters_to_computed(op: Any) -> bool:
    """Whether indices say where updates go at all."""
    from jaxlib.mlir.dialects import stablehlo

    return bool(stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"]).scattered_dims_to_operand_dims)


def _by_memory(b: KnownValueBuilder, op: Any, values: Values, kind: str, row: str | None) -> GraphValue:
    """Every element of an update goes to the place that its tuple of indices and its own place in the window say."""
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    source, indices, updates = values
    own, sizes, vector = shape_of(source), shape_of(updates), numbers.index_vector_dim
    windows = list(numbers.update_window_dims)
    batch = [dim for dim in range(len(sizes)) if dim not in windows]
    gone = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    rows = [[0] * len(sizes) for _ in own]
    within = dict(zip([dim for dim in range(len(own)) if dim not in gone], windows, strict=True))
    for dim, window in within.items():
        rows[dim][window] = 1
    tuples = [dim for dim in range(len(shape_of(indices))) if dim != vector]
    for dim, place in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        rows[dim][batch[tuples.index(place)]] = 1
    starts, inside = {}, None
    for place, dim in enumerate(numbers.scattered_dims_to_operand_dims):
        starts[dim] = start = b.cast(_component(b, indices, vector, place), "int64", kind_of(op.operands[1].type))
        size = sizes[within[dim]] if dim in within else 1
        one = b.map("andi", b.map("ges", start, 0), b.map("les", start, own[dim] - size))
        inside = one if inside is None else b.map("andi", inside, one)
    found = {}
    for dim, start in starts.items():
        asked = b.cast(b.map("select", inside, start, -(1 << 31)), "int32")  # of a window that is not inside no element is
        coordinate = _along(b, asked, batch, sizes)
        found[dim] = b.map("addi", coordinate, b.iota(sizes, within[dim])) if dim in within else coordinate
        rows[dim] = [0] * len(sizes)
    axes = sorted(found)
    map = linear_map(rows, [0] * len(own), len(sizes))
    return scattered(b, source, updates, [found[dim] for dim in axes], axes, map, kind, row)


def _replaced(b: KnownValueBuilder, reach: _UpdateReach, source: GraphValue) -> GraphValue:
    """Each element, or the last update that reaches it."""
    shape, rank = reach.shape, len(shape_of(source))
    order, step = b.full(0, b.iota((1,), 0)), 1
    for dim in reversed(range(rank, len(shape))):
        order = b.map("addi", order, b.map("muli", b.iota(shape, dim), step))
        step *= shape[dim]
    last = b.map("select", reach.reached, order, -1)
    axes = list(range(rank, len(shape)))
    smallest = [b.full(-(1 << 31), last)]
    how = Combination(
        lambda s, x, y: [s("maxs", x, y)], lambda held, more: [b.map("maxs", held[0], more[0])], smallest, smallest,
        operator=True, neutral=True,
    )
    (winner,) = combined(b, how, [last], axes)
    return b.map("select", b.map("ges", winner, 0), reach.chosen(winner), source)


class _UpdateReach:
    """Which updates reach which elements: tensors of the source's dims with those of the tuples of indices behind."""

    def __init__(self, b: KnownValueBuilder, op: Any, source: GraphValue, indices: GraphValue, updates: GraphValue) -> None:
        from jaxlib.mlir.dialects import stablehlo

        numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        self.b, self.updates = b, updates
        own, given, vector = shape_of(source), shape_of(indices), numbers.index_vector_dim
        rank, tuples = len(own), [dim for dim in range(len(given)) if dim != vector]
        self.own, self.counts = own, [given[dim] for dim in tuples]
        self.shape = (*own, *self.counts)
        self.behind = list(range(rank, len(self.shape)))
        self.windows, sizes = list(numbers.update_window_dims), shape_of(updates)
        self.batch = [dim for dim in range(len(sizes)) if dim not in self.windows]
        gone = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
        self.kept = [dim for dim in range(rank) if dim not in gone]
        self.extents = {dim: sizes[window] for dim, window in zip(self.kept, self.windows, strict=True)}
        self.offsets: dict[int, GraphValue] = {}  # of an element in an update's window, by the source's dims
        reached: GraphValue | None = None
        for place, dim in enumerate(numbers.scattered_dims_to_operand_dims):
            start = b.cast(_component(b, indices, vector, place), "int64", kind_of(op.operands[1].type))
            size = self.extents.get(dim, 1)
            inside = b.map("andi", b.map("ges", start, 0), b.map("les", start, own[dim] - size))
            start = b.map("select", inside, start, -size)  # a window that is not inside reaches nothing
            offset = b.map("subi", b.iota(self.shape, dim), _along(b, b.cast(start, "int32"), self.behind, self.shape))
            self.offsets[dim] = offset
            one = b.map("ltu", offset, size)
            reached = one if reached is None else b.map("andi", reached, one)
        for dim, place in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
            one = b.map("eqi", b.iota(self.shape, dim), b.iota(self.shape, rank + tuples.index(place)))
            reached = one if reached is None else b.map("andi", reached, one)
        for dim, extent in self.extents.items():  # a window that begins at 0 and is not whole
            if dim not in self.offsets and extent < own[dim]:
                one = b.map("lts", b.iota(self.shape, dim), extent)
                reached = one if reached is None else b.map("andi", reached, one)
        self.reached = reached if reached is not None else b.broadcast(b.map("eqi", b.iota((1,), 0), 0), self.shape)

    def read(self) -> GraphValue:
        """The update of each tuple for each element; where none reaches it, any."""
        return self._gathered(self.shape, {dim: self.behind[k] for k, dim in enumerate(self.batch)}, {}, self.offsets)

    def chosen(self, winner: GraphValue) -> GraphValue:
        """For each element the update of the tuple whose number `winner` gives."""
        b, rest = self.b, _as_place(self.b, winner)
        coordinates: dict[int, GraphValue] = {}
        for k in reversed(range(len(self.batch))):
            count = self.counts[k]
            coordinates[self.batch[k]] = b.map("rems", rest, count) if k else rest
            rest = b.map("divs", rest, count)
        wide = [dim for dim in self.offsets if self.extents.get(dim, 1) > 1]
        offsets = {dim: self._offset_of(self.offsets[dim], winner) for dim in wide}
        return self._gathered(self.own, {}, coordinates, offsets)

    def _offset_of(self, offset: GraphValue, winner: GraphValue) -> GraphValue:
        """The offset in the winner's window: that tuple's, read from all."""
        b, flat = self.b, _as_place(self.b, winner)
        count = prod(self.counts)
        joined = b.reshape(offset, (*self.own, count))
        rank = len(self.own)
        rows = [[int(d == k) for d in range(rank)] for k in range(rank)] + [[0] * rank]
        return b.gather(joined, [flat], [rank], linear_map(rows, [0] * (rank + 1), rank))

    def _gathered(
        self, shape: Sequence[int], along: dict[int, int], coordinates: dict[int, GraphValue], offsets: dict[int, GraphValue]
    ) -> GraphValue:
        """Updates at places: dims along the shape's, coordinates that are computed, offsets in the windows."""
        b, sizes = self.b, shape_of(self.updates)
        rows = [[0] * len(shape) for _ in sizes]
        found = dict(coordinates)
        for dim, place in along.items():
            rows[dim][place] = 1
        for dim, window in zip(self.kept, self.windows, strict=True):
            if sizes[window] == 1:
                continue
            if dim in offsets:
                found[window] = b.map("maxs", b.map("mins", offsets[dim], sizes[window] - 1), 0)
            elif sizes[window] < shape[dim]:
                found[window] = b.map("mins", b.iota(shape, dim), sizes[window] - 1)
            else:
                rows[window][dim] = 1
        rows = [[0] * len(shape) if dim in found else row for dim, row in enumerate(rows)]
        map = linear_map(rows, [0] * len(sizes), len(shape))
        axes = sorted(found)
        return b.gather(self.updates, [found[dim] for dim in axes], axes, map) if found else b.view(self.updates, map, shape)


def _as_place(b: KnownValueBuilder, value: GraphValue) -> GraphValue:
    """A number that may be -1, as a place."""
    return b.map("maxs", value, 0)
