"""Regions as stream operations of the vector unit: their nodes for the chains, their arrays and access patterns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tilefw.api import Place
from tilefw.api.integers import round_up
from tilefw_spatial.arrange.item import Item
from tilefw_spatial.arrange.memory import Memory, Order, dense_order
from tilefw_spatial.arrange.normal import Reindex, bits_of
from tilefw_spatial.arrange.region import LaneRegion, Regions
from tilefw_spatial.arrange.views import ArrayView, Loop, access_pattern
from tilefw_spatial.chain import Apply, Combined, FusedSegment, Input, Literal, Node, NodeResult, Temporary
from tilefw_spatial.graph import Axis, Constant, Elementwise, Reduce
from tilefw_spatial.stream_program import AccessPattern, Array, MatrixStreamOp, Read, VectorStreamOp, Write

Chain = Callable[[Sequence[NodeResult]], Sequence[FusedSegment]]


@dataclass(frozen=True, slots=True, eq=False)
class Drain:
    """Key of a product's sums as they come from the accumulators of one side."""

    number: int


@dataclass(frozen=True, slots=True)
class Copied:
    """Key of a value that exists already and is needed again in an array of its own."""

    item: Item


@dataclass(slots=True)
class Nodes:
    """A region's items as nodes of a chain, each once; `drains` is how many sides the drained product comes from."""

    region: LaneRegion
    regions: Regions
    drains: int = 0
    made: dict[Item, Node] = field(default_factory=dict)

    def node(self, item: Item) -> Node:
        """The item's node; items of the region are asked for in their order, so that operands are there."""
        if item not in self.made:
            self.made[item] = self._new(item)
        return self.made[item]

    def _new(self, item: Item) -> Node:
        value, op = item.value, item.value.op
        if item is self.region.drained:
            return self._drained(value.dtype)
        if isinstance(op, Constant) and not value.axes:
            return Literal(int(bits_of(op.data)), value.dtype)
        made_here = self.regions.region_of.get(item) is self.region or self.regions.inlined(item)
        own = item in self.region.items if item.inputs else made_here
        if own and isinstance(op, Elementwise):
            row = "castf_rtz" if op.rounding == "rtz" else op.row
            return Apply(row, tuple(self.node(part) for part in item.operands), value.dtype, op.fusion, value.place)
        if own and isinstance(op, Reduce):
            operand, *initial = (self.node(part) for part in item.operands)
            every = prod(axis.extent for axis in op.axes)
            return Combined(op.kind, operand, every, value.dtype, initial[0] if initial else None, value.place)
        if own:
            return Input(Copied(item), value.dtype)
        inner = frozenset(self.region.inner)
        return Input(item, value.dtype, reduced=bool(inner) and not inner & frozenset(item.time))

    def _drained(self, dtype: str) -> Node:
        sums = tuple(Input(Drain(number), dtype, drained=True) for number in range(self.drains))
        return sums[0] if len(sums) == 1 else Apply("addf" if dtype == "fp32" else "addi", sums, dtype, fusion=False)


def fused_segments_of(region: LaneRegion, regions: Regions, chain: Chain, drains: int = 0) -> Sequence[FusedSegment]:
    """The region as fused segments."""
    nodes = Nodes(region, regions, drains)
    for item in region.items:
        nodes.node(item)
    return chain([NodeResult(item, nodes.node(item)) for item in regions.wanted(region)])


def padding(weights: Array, order: Order, chain: Chain) -> list[VectorStreamOp]:
    """Zeros where weights that stream operations make are filled up to what one cycle loads: no product counts them, but they are
    loaded."""
    size = round_up(order.rows, order.groups)
    domain = (order.vectors // size, size - order.rows)
    if not domain[1]:
        return []
    (fused,) = chain([NodeResult(weights, Literal(0, weights.dtype))])
    pattern = AccessPattern(weights, order.rows, (size, 1))
    return [VectorStreamOp(domain, [], list(fused.steps), [Write(write.step, pattern) for write in fused.writes])]


@dataclass(slots=True)
class VectorEmitter:
    """Stream operations of one region's segments, all over the same loops."""

    region: LaneRegion
    memory: Memory
    chunk: Axis
    scratch: dict[Hashable, ArrayView] = field(default_factory=dict)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return (*self.region.outer, *self.region.inner)

    def view(self, key: Hashable) -> ArrayView:
        """The vectors that a segment's key names."""
        if key in self.scratch:
            return self.scratch[key]
        if isinstance(key, Temporary):
            order = dense_order(self.region.outer if key.reduced else self.axes, self.region.chunks)
            self.scratch[key] = self.memory.temporary(key.dtype, order)
            return self.scratch[key]
        if isinstance(key, Copied):
            item = key.item
            if item.inputs:
                return self.memory.placed(item, dense_order(self.axes, self.region.chunks))
            assert isinstance(item.value.op, Reindex)
            return self.memory.of(item.operands[0], self.axes).renamed(item.value.op.reindexing)
        assert isinstance(key, Item)
        return self.memory.of(key, self.axes)

    def stream_op(
        self, fused: FusedSegment, outer: tuple[Loop, ...], inner: tuple[Loop, ...], fixed: Mapping[Axis, int],
        drains: tuple[MatrixStreamOp, ...] = (),
    ) -> VectorStreamOp:
        """One segment over the loops; `fixed` axes have one index."""
        loops = outer if fused.reduced else (*outer, *inner)
        reads = [Read(self._read(read.key, loops, fixed), read.time) for read in fused.reads]
        writes = [
            Write(write.step, access_pattern(self.view(key), self.chunk, outer if write.combined else loops, fixed))
            for write in fused.writes for key in write.keys
        ]
        taken = drains if any(read.drained for read in fused.reads) else ()
        return VectorStreamOp(tuple(loop.points for loop in loops), reads, list(fused.steps), writes, taken, self._place())

    def _read(self, key: Hashable, loops: tuple[Loop, ...], fixed: Mapping[Axis, int]) -> AccessPattern:
        if isinstance(key, Drain):
            drained = self.region.drained
            assert drained is not None
            return AccessPattern(Array("accumulators", drained.value.dtype, 0, "temp"), 0, (0,) * len(loops))
        return access_pattern(self.view(key), self.chunk, loops, fixed)

    def _place(self) -> Place | None:
        return next((item.value.place for item in self.region.items if item.value.place), None)
