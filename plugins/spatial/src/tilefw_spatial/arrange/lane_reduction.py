"""Reductions across lanes: vectors combined with copies of themselves, rotated by quarters of a group of lanes, then by quarters of
that, …

Groups are as many neighbouring lanes as the axis has indices. After the last step every lane of a group holds the group's result:
its users find it at every index of the axis.
"""

from __future__ import annotations

from tilefw_spatial.arrange.collapse import collapsed
from tilefw_spatial.arrange.item import Item
from tilefw_spatial.arrange.memory import Memory, dense_order
from tilefw_spatial.arrange.region import LaneRegion
from tilefw_spatial.arrange.vector import Chain, VectorEmitter
from tilefw_spatial.arrange.views import ArrayView, access_pattern, whole
from tilefw_spatial.chain import Apply, Input, Node, NodeResult
from tilefw_spatial.graph import Axis, Reduce
from tilefw_spatial.stream_program import LaneStreamOp, StreamOp

RADIX = 4  # vectors that one step combines: all rotate in one pass through the switch


def steps_of(item: Item) -> int:
    """How many steps a reduction across lanes takes."""
    op = item.value.op
    assert isinstance(op, Reduce)
    left, steps = op.axes[0].extent, 0
    while left > 1:
        left //= min(RADIX, left)
        steps += 1
    return steps


def lane_reduction(item: Item, memory: Memory, chain: Chain) -> list[StreamOp]:
    """The stream operations from the item's operand to the array that was made for the item."""
    op = item.value.op
    assert isinstance(op, Reduce) and item.across_lanes
    [operand], width = item.operands, op.axes[0].extent
    return _LaneReduction(item, operand, memory, chain).stream_ops(op, width)


class _LaneReduction:
    def __init__(self, item: Item, operand: Item, memory: Memory, chain: Chain) -> None:
        self._item, self._memory, self._chain = item, memory, chain
        self._region = LaneRegion(operand.lanes.chunks, item.time)
        self._chunk = Axis("chunk", operand.lanes.chunks)
        self._loops = (whole(self._chunk), *(whole(axis) for axis in item.time))
        self._source = memory.of(operand, item.time)
        self._made: list[StreamOp] = []
        self._lanes = operand.lanes.width
        self._lone = not item.lanes.axes  # one group; all others are to hold the same

    def stream_ops(self, op: Reduce, width: int) -> list[StreamOp]:
        current = self._source
        if self._lone and width < self._lanes:
            current = self._rotated(current, tuple(lane % width for lane in range(self._lanes)))
        left = width
        while left > 1:
            radix = min(RADIX, left)
            left //= radix
            others = [self._rotated(current, self._rotation(width, left * number)) for number in range(1, radix)]
            current = self._combined(op, [current, *others], last=left == 1)
        return self._made

    def _rotation(self, width: int, shift: int) -> tuple[int, ...]:
        """The source of each lane where every group of `width` lanes rotates by `shift`; a lone group is repeated in all lanes."""
        groups = [0 if self._lone else lane // width for lane in range(self._lanes)]
        return tuple(group * width + (lane + shift) % width for lane, group in enumerate(groups))

    def _new(self) -> ArrayView:
        return self._memory.temporary(self._item.value.dtype, dense_order(self._region.outer, self._region.chunks))

    def _rotated(self, view: ArrayView, lanes: tuple[int, ...]) -> ArrayView:
        made = self._new()
        domain = tuple(loop.points for loop in self._loops)
        read, write = (access_pattern(place, self._chunk, self._loops, {}) for place in (view, made))
        value = self._item.value
        self._made.append(LaneStreamOp(domain, "PRM", value.dtype, read, write, lanes, value.place))
        return made

    def _combined(self, op: Reduce, parts: list[ArrayView], last: bool) -> ArrayView:
        value = self._item.value
        result = self._memory.views[self._item] if last else self._new()
        emitter = VectorEmitter(self._region, self._memory, self._chunk, {"result": result, **dict(enumerate(parts))})
        nodes: list[Node] = [Input(number, value.dtype) for number in range(len(parts))]
        while len(nodes) > 1:
            pairs = zip(nodes[::2], nodes[1::2], strict=True)
            nodes = [Apply(op.kind.value, pair, value.dtype, place=value.place) for pair in pairs]
        for fused in self._chain([NodeResult("result", nodes[0])]):
            self._made.append(collapsed(emitter.stream_op(fused, self._loops, (), {})))
        return result
