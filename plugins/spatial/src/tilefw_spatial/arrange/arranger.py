"""The stages of `arrange` in order, and the stream operations of each region."""

from __future__ import annotations

from functools import partial

from tilefw.api import UnsupportedError
from tilefw_spatial.arrange.choose import chosen
from tilefw_spatial.arrange.collapse import collapsed
from tilefw_spatial.arrange.item import Item, reachable
from tilefw_spatial.arrange.lane_reduction import lane_reduction
from tilefw_spatial.arrange.matrix import Products, activations_order, parts_of, shared, tiles, weights_order
from tilefw_spatial.arrange.memory import Memory, Order, dense_order
from tilefw_spatial.arrange.normal import NormalTarget, Relayout, normal
from tilefw_spatial.arrange.region import LaneRegion, Regions
from tilefw_spatial.arrange.relayout import relayout
from tilefw_spatial.arrange.replicas import Replicas
from tilefw_spatial.arrange.transfers import transfers
from tilefw_spatial.arrange.vector import Chain, VectorEmitter, fused_segments_of, padding
from tilefw_spatial.arrange.views import ArrayView, whole
from tilefw_spatial.chain import chain as standard
from tilefw_spatial.graph import Axis, Dot, Graph
from tilefw_spatial.machine import SIDES, Machine
from tilefw_spatial.stream_program import MatrixStreamOp, StreamOp, StreamProgram, VectorStreamOp


def arrange(graph: Graph, machine: Machine, chain: Chain | None = None, *, replicas: bool = True) -> StreamProgram:
    """The stream operations and arrays of a launch on a machine. `chain` makes fused segments of a region's results
    (`tilefw_spatial.chain.chain`). `replicas`: what the host fills may be there twice, for stream operations that run at one
    time."""
    return stream_program(*chosen(normal(graph), machine), machine, chain, replicas=replicas)


def stream_program(
    targets: list[NormalTarget], roots: list[Item], machine: Machine, chain: Chain | None = None, *, replicas: bool = True
) -> StreamProgram:
    """The same for stores in normal form of which the lanes are chosen: `roots` has the item of each."""
    if chain is None:
        chain = partial(standard, machine=machine)
    return Arranger(machine, chain, targets, roots).program(replicas)


class Arranger:
    """Stream operations for items whose lanes are chosen: `roots` has the item of each target."""

    def __init__(self, machine: Machine, chain: Chain, targets: list[NormalTarget], roots: list[Item]) -> None:
        self._machine, self._chain, self._targets, self._roots = machine, chain, targets, roots
        self._items = reachable(roots)
        self._regions = Regions(self._items, roots)
        self._memory = Memory()
        self._weights = _weights(self._items, machine)
        self._stream_ops: list[StreamOp] = []
        self._second: list[VectorStreamOp | MatrixStreamOp] = []  # of stream operations that may run at one time

    def program(self, replicas: bool) -> StreamProgram:
        """All stream operations in an order that is right."""
        for region in self._regions.ordered():
            self._region(region)
        self._stores()
        second = Replicas(self._machine.lanes)
        if replicas:
            second.give(self._second)
        return StreamProgram(
            self._stream_ops, [*self._memory.arrays, *second.arrays], [self._memory.views[item].array for item in self._roots]
        )

    def _region(self, region: LaneRegion) -> None:
        axes = (*region.outer, *region.inner)
        for item in self._regions.wanted(region):
            loops = axes if not region.inner or set(item.time) & set(region.inner) else region.outer
            order = self._weights.get(item)
            view = self._memory.made(item, order or dense_order(loops, region.chunks))
            if order is not None:
                self._stream_ops += padding(view.array, order, self._chain)
        if region.lane_reduction is not None and isinstance(region.lane_reduction.value.op, Relayout):
            self._stream_ops += relayout(region.lane_reduction, self._memory)
            return
        if region.lane_reduction is not None:
            self._stream_ops += lane_reduction(region.lane_reduction, self._memory, self._chain)
            return
        chunk = Axis("chunk", region.chunks)
        if region.drained is not None:
            self._drained(region, region.drained, chunk)
            return
        emitter = VectorEmitter(region, self._memory, chunk)
        outer = (whole(chunk), *(whole(axis) for axis in region.outer))
        inner = (whole(*region.inner),) if region.inner else ()
        for fused in fused_segments_of(region, self._regions, self._chain):
            self._stream_ops.append(collapsed(emitter.stream_op(fused, outer, inner, {})))

    def _drained(self, region: LaneRegion, dot: Item, chunk: Axis) -> None:
        products = Products(dot, self._operand(dot, 0), self._operand(dot, 1), chunk, self._machine)
        found = tiles(dot, chunk, self._machine)
        share = shared(len(found), parts_of(dot, self._machine))
        assignments = list(share.alternating())
        self._apart(region, sum(tile.rows.points for tile in found[: share.east.start]) if share.east else 0)
        fused_segments = {
            count: fused_segments_of(region, self._regions, self._chain, count)
            for count in {len(sides) for _, sides in assignments}
        }
        emitters = {count: VectorEmitter(region, self._memory, chunk) for count in fused_segments}
        for position, (number, sides) in enumerate(assignments):
            tile = found[number]
            sums = products.stream_ops(tile, sides)
            made = [
                emitters[len(sides)].stream_op(fused, (tile.rows,), (), tile.fixed, sums) for fused in fused_segments[len(sides)]
            ]
            self._stream_ops += [*sums, *made]
            self._second += made if sides == ("E",) else []
            self._second += sums if position // len(SIDES) % 2 else []  # the second of a side's planes

    def _apart(self, region: LaneRegion, vectors: int) -> None:
        """What the two sides make at the same time lies in slices of its own: the first `vectors` are one side's."""
        for item in self._regions.wanted(region):
            if item not in self._weights:
                self._memory.views[item].array.segment = vectors

    def _operand(self, dot: Item, number: int) -> ArrayView:
        item = dot.operands[number]
        if item.inputs:
            return self._memory.operand(item, (weights_order, activations_order)[number](dot, self._machine))
        return self._memory.of(item, ())

    def _stores(self) -> None:
        """Results go to the host in the order of the stores: of two that write one element the later wins."""
        for number, (target, item) in enumerate(zip(self._targets, self._roots, strict=True)):
            order: Order = self._memory.orders[item]
            array = self._memory.views[item].array
            array.role, array.rank = "out", number
            array.transfers += transfers(target.access, item.lanes, order.strides, order.chunk, once=True)


def _weights(items: list[Item], machine: Machine) -> dict[Item, Order]:
    """The order that products ask of weights which stream operations make. Raises UnsupportedError where two ask for different
    ones."""
    orders: dict[Item, Order] = {}
    for dot in items:
        if not isinstance(dot.value.op, Dot) or dot.operands[0].inputs:
            continue
        weights, order = dot.operands[0], weights_order(dot, machine)
        before = orders.setdefault(weights, order)
        if (before.strides, before.chunk) != (order.strides, order.chunk):
            raise UnsupportedError(
                "two products take one computed tile as weights in two orders", code="TFW0670", place=dot.value.place,
                help="store the tile and load it in a kernel of its own, or compute it once for each product",
            )
    return orders
