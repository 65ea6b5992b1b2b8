"""What a plane of the matrix unit does in one superlane: LW, IW, MAC, DRN.

Weights of a column, and its accumulators, lie in the superlane of the column; activations come from all superlanes, and their sum
is complete when the last superlane has seen them: a product's delay is longer than the skew.
"""

from __future__ import annotations

import numpy as np

from tilefw_spatial.isa import ACCUMULATE_FLAG, HALF_FLAG, TYPES, latency_key
from tilefw_spatial.tick import exact
from tilefw_spatial.tick import findings as kinds
from tilefw_spatial.tick.plane import Accumulator, PlanePart, TickWeights
from tilefw_spatial.tick.point import Point
from tilefw_spatial.tick.superlane import Bytes, LaneWord, Phase, Steps, Superlane


def load(lane: Superlane, point: Point) -> Steps:
    """LW: sixteen streams are rows of K of this superlane's columns."""
    inst, nbytes = point.inst, TYPES[point.inst.dtype].nbytes
    streams = lane.machine.weight_streams
    data, tainted = lane.take_planes(point, inst.a, streams)
    plane = _plane(lane, point)
    buffer = plane.buffers.get(inst.imm)
    if buffer is None or buffer.source is not point.burst:
        if buffer is not None:
            buffer.replaced = True
        buffer = plane.buffers[inst.imm] = TickWeights(inst.dtype, point.burst, [[] for _ in range(lane.machine.superlane_lanes)])
    for first in range(0, streams, nbytes):
        for column, code in zip(buffer.columns, _codes(data[first : first + nbytes]), strict=True):
            column.append(exact.number(inst.dtype, code))
    buffer.tainted |= tainted
    buffer.filled = lane.time
    return
    yield


def install(lane: Superlane, point: Point) -> Steps:
    """IW: from then on products are with this buffer."""
    plane, inst, unit = _plane(lane, point), point.inst, point.queue.unit
    weights = plane.buffers.get(inst.imm)
    if weights is None:
        lane.report(kinds.WEIGHTS, f"buffer {inst.imm} of {unit} was never loaded", point)
    elif weights.dtype != inst.dtype or weights.filled >= lane.time:
        lane.report(kinds.WEIGHTS, f"buffer {inst.imm} of {unit} holds no whole {inst.dtype} weights", point)
    yield Phase.ARRIVE, lane.machine.delays["install_weights"]
    plane.installed = weights


def multiply(lane: Superlane, point: Point) -> Steps:
    """MAC: this superlane's activations now; the sums of its columns when all superlanes' have come."""
    inst = point.inst
    data, tainted = lane.take_planes(point, inst.a, TYPES[inst.dtype].nbytes)
    point.crossing[lane.number] = [exact.number(inst.dtype, code) for code in _codes(data)], tainted
    _occupy(lane, point)
    weights = _installed(lane, point)
    yield Phase.ARRIVE, lane.machine.delays[latency_key(inst.op, inst.dtype)]
    row = _row(lane, point)
    parts = [point.crossing[number] for number in range(lane.machine.superlanes)]
    activations = [x for part, _ in parts for x in part]
    begin = lane.machine.lanes // 2 if inst.flags & HALF_FLAG else 0
    taken = activations[begin : begin + inst.imm]
    words = [0] * lane.machine.superlane_lanes
    if weights is not None:
        words = [_sum(inst.dtype, exact.dot(taken, column[: len(taken)])) for column in weights.columns]
    bad = any(t for _, t in parts) or (weights is not None and weights.tainted)
    _accumulate(_plane(lane, point), point, row, words, bad)


def drain(lane: Superlane, point: Point) -> Steps:
    """DRN: the accumulator as it is now."""
    found = _plane(lane, point).accumulators.get(_row(lane, point))
    words = found.words if found else (0,) * lane.machine.superlane_lanes
    tainted = found is None or found.tainted
    yield Phase.ARRIVE, lane.machine.delays["drain"]
    for plane in range(4):
        data = np.array([word >> 8 * plane & 255 for word in words], np.uint8)
        lane.put(point, point.inst.dst + plane, LaneWord(data, tainted))


def _plane(lane: Superlane, point: Point) -> PlanePart:
    return lane.planes[point.queue.unit, point.queue.number]


def _codes(data: Bytes) -> list[int]:
    """Byte planes [b, lanes], lowest first, as codes."""
    return [int.from_bytes(bytes(data[:, i]), "little") for i in range(data.shape[1])]


def _occupy(lane: Superlane, point: Point) -> None:
    """A product of all types but int8 takes both planes of its side."""
    unit, pair = point.queue.unit, point.inst.dtype != "int8"
    for number in range(lane.machine.planes) if pair else (point.queue.number,):
        plane = lane.planes[unit, number]
        if plane.last_product == lane.time:
            lane.report(kinds.WEIGHTS, f"two products in plane {number} of {unit}", point)
        plane.last_product = lane.time


def _installed(lane: Superlane, point: Point) -> TickWeights | None:
    """What the product is with; None, and a finding, where that cannot be."""
    weights, inst, unit = _plane(lane, point).installed, point.inst, point.queue.unit
    if weights is None:
        lane.report(kinds.WEIGHTS, f"no weights are installed in {unit}", point)
        return None
    if weights.dtype != inst.dtype or weights.depth < inst.imm:
        message = f"{unit} has {weights.depth} rows of {weights.dtype} weights installed, {inst.imm} of {inst.dtype} are wanted"
        lane.report(kinds.WEIGHTS, message, point)
        return None
    if weights.replaced:
        lane.report(kinds.WEIGHTS, f"the weights that {point.queue.name} multiplies by are being overwritten", point)
    return weights


def _row(lane: Superlane, point: Point) -> int:
    """The accumulator of the point; outside of its bank is reported, and the bank's last taken instead."""
    size = lane.machine.accumulator_rows
    bank = point.inst.address // size
    if point.address // size == bank:
        return point.address
    lane.report(kinds.ROW, f"accumulator {point.address - bank * size} of a bank of {size} in {point.queue.unit}", point)
    return (bank + 1) * size - 1


def _sum(dtype: str, value: exact.Number) -> int:
    if dtype == "int8":
        assert isinstance(value, int)
        return exact.wrapped(value)
    return exact.rounded(value, 2 * exact.SCALE[dtype])


def _accumulate(plane: PlanePart, point: Point, row: int, words: list[int], bad: bool) -> None:
    if point.inst.flags & ACCUMULATE_FLAG:
        old = plane.accumulators.get(row, Accumulator((0,) * len(words), True))
        integer = point.inst.dtype == "int8"
        words = [exact.wrapped(a + b) if integer else exact.add(a, b) for a, b in zip(old.words, words, strict=True)]
        bad = bad or old.tainted
    plane.accumulators[row] = Accumulator(tuple(words), bad)
