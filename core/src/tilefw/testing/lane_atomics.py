"""Atomics of lane IR in NumPy: the accesses of a workgroup one after the other, in an order that lowered code must not rely on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilefw.api.dtypes import DType
from tilefw.simt.lane.atomics import CAS
from tilefw.tile import numbers
from tilefw.tile.reference.value import Array

Step = Callable[[Array, Array, Array], Array]  # of the old value, the operand and what is expected, in raw bytes


def step(kind: str, dtype: DType) -> Step:
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
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "xchg": lambda _, operand: operand,
}
