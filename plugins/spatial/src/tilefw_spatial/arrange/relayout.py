"""Vectors brought to other lanes by the switch: each that is wanted has all of its elements in one that there is."""

from __future__ import annotations

from itertools import product

import numpy as np

from tilefw_spatial.arrange.item import Item
from tilefw_spatial.arrange.memory import Memory
from tilefw_spatial.arrange.views import access_pattern
from tilefw_spatial.graph import Axis
from tilefw_spatial.stream_program import AccessPattern, LaneStreamOp

NOTHING = -1  # in a map: the lane gets zero


def relayout(item: Item, memory: Memory) -> list[LaneStreamOp]:
    """The stream operations from the item's operand to the array that was made for the item, one for each vector of it."""
    (operand,) = item.operands
    source, target = memory.of(operand, operand.time), memory.views[item]
    chunk, only = Axis("chunk", item.lanes.chunks), Axis("chunk", 1)
    made: list[LaneStreamOp] = []
    for index in product(*(range(axis.extent) for axis in (*item.time, chunk))):
        fixed = dict(zip((*item.time, chunk), index, strict=True))
        read = access_pattern(source, only, (), {**{axis: fixed[axis] for axis in operand.time}, only: 0})
        write = access_pattern(target, chunk, (), fixed)
        lanes = _sources(item, fixed, index[-1])
        made.append(LaneStreamOp((1,), "PRM", item.value.dtype, _one(read), _one(write), lanes, item.value.place))
    return made


def _one(pattern: AccessPattern) -> AccessPattern:
    """A pattern of one point."""
    return AccessPattern(pattern.array, pattern.start, (0,))


def _sources(item: Item, fixed: dict[Axis, int], chunk: int) -> tuple[int, ...]:
    """The lane of the operand from which each lane of one vector comes."""
    width, axes = item.lanes.width, item.operands[0].lanes.product
    assert axes is not None, "the operand is along the product of its axes"
    first = chunk * width
    count = min(width, item.lanes.positions - first)
    code = np.zeros(count, np.int64)
    for axis in axes:
        index = item.lanes.index[axis][first : first + count] if axis in item.lanes.axes else np.int64(fixed[axis])
        code = code * axis.extent + index
    return (*code.tolist(), *(NOTHING,) * (width - count))
