"""Constants, ids and the shuffling of a vector's elements in the lane interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilefw.tile import numbers, types
from tilefw.tile.reference.value import Array, constant


def typed_constant(value: int | float, type: Any) -> Array:
    """A number as the interpreter holds it."""
    return constant(value, types.dtype_of(type)).x


def _constant(group: Any, op: Any) -> None:
    shape = types.shape_of(op.results[0].type)
    group.values[op.results[0]] = np.broadcast_to(typed_constant(op.value, op.results[0].type), (1, *shape) if shape else (1,))


def _constants(group: Any, op: Any) -> None:
    group.values[op.results[0]] = numbers.wrap(np.array([op.values]), types.dtype_of(op.results[0].type).bits)


def _splat(group: Any, op: Any) -> None:
    value = group.values[op.source]
    value = value.reshape(-1, 1)
    group.values[op.results[0]] = np.broadcast_to(value, (len(value), types.shape_of(op.results[0].type)[0]))


def _program_id(group: Any, op: Any) -> None:
    group.values[op.results[0]] = np.array([group.position[op.axis]], np.int32)


def _num_programs(group: Any, op: Any) -> None:
    group.values[op.results[0]] = np.array([group.grid[op.axis]], np.int32)


def _thread_id(group: Any, op: Any) -> None:
    group.values[op.results[0]] = np.arange(group.machine.threads, dtype=np.int32)[:, None]


def _pick(group: Any, op: Any) -> None:
    group.values[op.results[0]] = group.values[op.operands[0]][:, list(op.indices)]


def _join(group: Any, op: Any) -> None:
    parts = [group.values[v] for v in op.operands]
    rows = max(len(p) for p in parts)
    group.values[op.results[0]] = np.concatenate([np.broadcast_to(p, (rows, p.shape[1])) for p in parts], axis=1)


VALUE_HANDLERS: dict[str, Callable[[Any, Any], None]] = {
    "lane.constant": _constant, "lane.constants": _constants, "lane.splat": _splat, "lane.program_id": _program_id,
    "lane.num_programs": _num_programs, "lane.thread_id": _thread_id, "lane.pick": _pick, "lane.join": _join,
}
