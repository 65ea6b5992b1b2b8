"""Atomics of lane IR in NumPy, also of all ranks' copies at once: one access after the other, each as its kind says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.simt.lane.atomics import CAS, MULTICAST_KINDS, MULTICAST_LOADS
from tilefw.testing.lane_memory import LaneGlobalMemory
from tilefw.tile import numbers
from tilefw.tile.reference.value import Array

Step = Callable[[Array, Array, Array], Array]  # of the old value, the operand and what is expected, in raw bytes


def access(memory: LaneGlobalMemory, kind: str, dtype: DType, at: int, operand: Array, expected: Array) -> Array:
    """Make one of an element whose bytes are `operand`; the bytes that were there, of all ranks' copies those of the last one."""
    places, size = memory.copies(at) if kind in MULTICAST_KINDS else (at,), len(operand)
    found = [memory.read(np.array([place]), size)[0] for place in places]
    if kind in MULTICAST_LOADS:
        return _over_ranks(MULTICAST_LOADS[kind], dtype, found)
    change = _step(kind.removeprefix("multicast_"), dtype)
    for place, old in zip(places, found, strict=True):
        memory.write(np.array([place]), change(old, operand, expected).reshape(1, size))
    return found[-1]


def _over_ranks(kind: str, dtype: DType, found: Sequence[Array]) -> Array:
    """What the copies hold, combined: floats are added up exactly and rounded once."""
    if kind == "add" and dtype.is_float:
        total = np.sum([numbers.from_bytes(one, dtype) for one in found], axis=0)
        return numbers.to_bytes(numbers.round_to(total, dtype), dtype)
    step = _step(kind, dtype)
    return reduce(lambda before, more: step(before, more, more), found)


def _step(kind: str, dtype: DType) -> Step:
    """What memory becomes."""
    if kind == CAS:
        return lambda old, new, expected: new if np.array_equal(old, expected) else old
    return lambda old, operand, _: numbers.to_bytes(_combined(kind, dtype, old, operand), dtype)


def _combined(kind: str, dtype: DType, old: Array, operand: Array) -> Any:
    x, y = numbers.from_bytes(old, dtype), numbers.from_bytes(operand, dtype)
    if kind == "add":
        return numbers.round_to(x + y, dtype) if dtype.is_float else numbers.wrap(x + y, dtype.bits)
    if kind in _ORDERED:
        place = _ORDERED[kind]
        larger = place(old) >= place(operand)
        return x if larger == kind.startswith("max") else y
    return _ROWS[kind](x, y)


def holds(comparison: str, old: Array, awaited: Any) -> bool:
    """Whether the row `comparison` of anything that was there with what is awaited holds."""
    x, y = np.asarray(old), np.asarray(awaited)
    if comparison.endswith("u"):
        unsigned = np.dtype(f"u{y.dtype.name}")
        x, y = x.astype(unsigned), y.astype(unsigned)
    return bool(_COMPARISONS[comparison[:2]](x, y).any())


def _signed(raw: Array) -> int:
    return int.from_bytes(raw.tobytes(), "little", signed=True)


def _unsigned(raw: Array) -> int:
    return int.from_bytes(raw.tobytes(), "little")


def _of_float(raw: Array) -> int:
    """A float's place among all, minus zero before zero: its code, turned round where it has a sign."""
    code = _signed(raw)
    return code if code >= 0 else -(code + (1 << 8 * len(raw) - 1)) - 1


_ORDERED: dict[str, Callable[[Array], int]] = {
    f"{name}{letter}": place for name in ("max", "min") for letter, place in (("s", _signed), ("u", _unsigned), ("f", _of_float))
}
_COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
_ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    **dict.fromkeys(("xchg", "store"), lambda _, operand: operand),
}
