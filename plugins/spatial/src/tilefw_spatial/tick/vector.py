"""What an ALU of the vector unit does in one superlane: operands, the meaning of its row, its result in the pipe and on streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.isa import OPS, PUT_FLAG, TYPES, OperandKind, Use, WordField, alu_and_steps, latency_key
from tilefw_spatial.isa.conversions import lane_numbers
from tilefw_spatial.isa.meanings import immediate, meaning, modified
from tilefw_spatial.isa.types import planes, reinterpret, values
from tilefw_spatial.tick.point import Point
from tilefw_spatial.tick.superlane import LaneResult, LaneWord, Phase, Steps, Superlane

Array = NDArray[Any]
Operand = tuple[Array, bool]  # [1, lanes], and whether it is tainted


def compute(lane: Superlane, point: Point) -> Steps:
    """Any row of an ALU; a reduction over time has a result only at the last of each `every` points."""
    inst = point.inst
    row = OPS[inst.op][0]
    if row.name == "TRED":
        found = _reduced(lane, point)
        if found is None:
            return
        result = found
    else:
        operands = [_operand(lane, point, field) for field in row.operands]
        result = LaneResult(_full(lane, meaning(inst.op, inst.dtype, [x for x, _ in operands])), any(t for _, t in operands))
    yield Phase.ARRIVE, lane.machine.delays[latency_key(inst.op, inst.dtype)]
    lane.arrive(point, result)
    if inst.flags & PUT_FLAG:
        for plane, data in enumerate(planes(result.values)):
            lane.put(point, inst.dst + plane, LaneWord(data[0].copy(), result.tainted))


def _reduced(lane: Superlane, point: Point) -> LaneResult | None:
    """The result of a group of points of TRED, at its last; the start is taken at its first."""
    inst = point.inst
    first, start = OPS[inst.op][0].operands
    taken = point.burst.taken.setdefault(lane.number, [])
    starts = point.burst.starts.setdefault(lane.number, [])
    if not taken and _kind(point, start) is not OperandKind.LANE:
        starts.append(_operand(lane, point, start))
    taken.append(_operand(lane, point, first))
    if len(taken) < inst.step:
        return None
    points = np.concatenate([_full(lane, x) for x, _ in taken])
    begin = [np.broadcast_to(x, points.shape) for x, _ in starts]
    tainted = any(t for _, t in (*taken, *starts))
    taken.clear()
    starts.clear()
    return LaneResult(_full(lane, meaning(inst.op, inst.dtype, [points, *begin], inst.step)), tainted)


def _full(lane: Superlane, x: Array) -> Array:
    return np.ascontiguousarray(np.broadcast_to(x, (1, lane.machine.superlane_lanes)))


def _kind(point: Point, field: WordField) -> OperandKind:
    return OperandKind(point.inst.map >> 2 * "abc".index(field.part) & 3)


def _operand(lane: Superlane, point: Point, field: WordField) -> Operand:
    """An operand with its modifiers."""
    inst, position = point.inst, "abc".index(field.part)
    dtype = "int1" if field.use is Use.MASK else inst.dtype
    x, tainted = _found(lane, point, field, dtype)
    if TYPES[dtype].is_float:
        x = modified(x, bool(inst.map >> 6 + position & 1), bool(inst.map >> 9 + position & 1))
    return x, tainted


def _found(lane: Superlane, point: Point, field: WordField, dtype: str) -> Operand:
    value: int = getattr(point.inst, field.part)
    kind = _kind(point, field)
    if kind is OperandKind.STREAM:
        data, tainted = lane.take_planes(point, value, TYPES[dtype].nbytes)
        return values(dtype, data[:, None, :]), tainted
    if kind is OperandKind.ALU:
        return _forwarded(lane, point, value, dtype)
    if kind is OperandKind.IMMEDIATE:
        return immediate(dtype, point.inst.imm), False
    return lane_numbers(dtype, lane.machine.lanes)[None, lane.lanes], False


def _forwarded(lane: Superlane, point: Point, value: int, dtype: str) -> Operand:
    """Another ALU's result: the field holds its number in four bits and the delay in steps above."""
    alu, steps = alu_and_steps(value)
    found = lane.result(point, alu, steps * lane.machine.delay_step)
    if found is None:
        return np.zeros((1, lane.machine.superlane_lanes), TYPES[dtype].numpy), False
    return reinterpret(found.values, dtype), found.tainted
